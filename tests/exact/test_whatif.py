"""Sliders and prices, beside learners to whom the other limit was stated from the beginning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import pdcl
from pdcl.methods.exact_limits import known_past

Drawn = Callable[..., tuple[Any, Any]]


def _learned(drawn: Drawn, tolerance: Any, **options: Any) -> Any:
    learner: Any = pdcl.learner("exact", features="random:80", tolerance=tolerance, rho=1e-2, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in range(3):
            learner.learn(*drawn([2 * task, 2 * task + 1], 600, task), name=str(task))
    return learner


def _errors(learner: Any) -> list[float]:
    """Of every task on its guards."""
    guards = known_past(learner).guards
    wrong = (guards.features @ learner.solution.W).argmax(1) != guards.targets
    return [float(wrong[guards.tasks == task].double().mean()) for task in range(3)]


def test_a_slider_shows_the_errors_of_a_learner_with_that_limit(drawn: Drawn) -> None:
    learner = _learned(drawn, {"0": "10%", "1": "50%"})
    first, second = learner.other_limits()
    assert (first["name"], first["unit"], first["tasks"]) == ("0", "error", ["0", "1", "2"])
    assert (second["name"], second["limit"]) == ("1", pytest.approx(0.5))
    assert first["limits"] == sorted(first["limits"])
    assert first["limit"] in first["limits"]
    assert {round(100 * (each - 0.1)) for each in first["limits"]} == {-5, -3, -2, -1, 0, 1, 2, 5, 10}
    for place in (0, 2, 8):
        other = _learned(drawn, {"0": f"{100 * first['limits'][place]:.6f}%", "1": "50%"})
        assert first["errors"][place] == pytest.approx(_errors(other))
    assert first["errors"][0][0] < first["errors"][8][0]


def test_a_slider_of_a_limit_in_loss_is_a_factor(drawn: Drawn) -> None:
    learner = _learned(drawn, {"0": "1.2x"})
    (slider,) = learner.other_limits()
    assert slider["unit"] == "loss"
    factors = [each / slider["limit"] for each in slider["limits"]]
    assert factors == sorted(factors)
    assert factors[4] == pytest.approx(1.0)
    assert slider["errors"][4] == pytest.approx(_errors(learner))
    other = _learned(drawn, {"0": f"{1.2 * factors[8]:.12f}x"})
    assert slider["errors"][8] == pytest.approx(_errors(other))


def test_a_slider_never_offers_to_be_always_wrong(drawn: Drawn) -> None:
    limits = _learned(drawn, {"0": "90%"}).other_limits()[0]["limits"]
    assert [round(100 * each) for each in limits] == [85, 87, 88, 89, 90, 91, 92, 95]


def test_no_more_sliders_than_a_page_can_hold_and_the_dearest_ones(drawn: Drawn) -> None:
    learner: Any = pdcl.learner("exact", features="raw", tolerance="+1pt", rho=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in range(15):
            learner.learn(*drawn([task % 6, (task + 1) % 6], 200, task), name=str(task))
        shown = [int(each["name"]) for each in learner.other_limits()]
    duals = learner.final_duals()[:14]
    assert len(shown) == 12
    assert shown == sorted(shown)
    assert min(duals[task] for task in shown) >= max(duals[task] for task in set(range(14)) - set(shown))


def test_what_one_point_wins_is_the_mean_error_of_two_learners(drawn: Drawn) -> None:
    learner = _learned(drawn, {"0": "8%"})
    looser = _learned(drawn, {"0": "11%"})
    fall = (sum(_errors(learner)) - sum(_errors(looser))) / 3
    assert learner.room_gains(0, 0.03) == pytest.approx(fall)
    assert learner.room_gains(1, 0.03) is None
    assert learner.room_gains(2, 0.03) is None


@pytest.mark.parametrize("options", [{"tolerance": None}, {"tolerance": "2x", "guard": 0, "witness": 0}])
def test_without_limits_or_guards_there_are_no_sliders(options: dict[str, Any], drawn: Drawn) -> None:
    learner = _learned(drawn, **options)
    assert learner.other_limits() == []
    assert isinstance(learner.report().duals, list)
    assert pdcl.learner("exact", tolerance="5%").other_limits() == []
    assert torch.isfinite(learner.solution.W).all()
