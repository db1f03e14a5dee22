"""Sliders of an exact model's page: every place of a slider is what a learner with that limit has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import pdcl
from pdcl.reports.life import life


def drawn(classes: list[int], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.tensor(classes)[torch.randint(len(classes), (1500,), generator=generator)]
    means = torch.randn(6, 8, generator=torch.Generator().manual_seed(9))
    return means[y] + 1.2 * torch.randn(1500, 8, generator=generator), y


def learned(limit: str) -> Any:
    learner = pdcl.learner("exact", features="raw", tolerance={"first": limit, "*": "60%"}, head="ridge", rho=0.01)
    for task, name in enumerate(("first", "second", "third")):
        learner.learn(*drawn([2 * task, 2 * task + 1], task), name=name)
    return learner


@pytest.fixture(scope="module")
def model() -> Any:
    return learned("20%")


def guard_errors(learner: Any) -> torch.Tensor:
    from pdcl.methods.exact_limits import known_past
    from pdcl.methods.exact_solving import past_scores

    past = known_past(learner)
    wrong = past.guards.wrong(past_scores(past, learner.solution.W))
    return torch.stack([wrong[past.guards.tasks == task].mean() for task in range(3)])


def test_each_place_is_what_a_learner_with_that_limit_has(model: Any) -> None:
    slider, second = model.other_limits()
    assert (slider["name"], second["name"]) == ("first", "second")
    assert slider["tasks"] == ["first", "second", "third"]
    for limit, errors in zip(slider["limits"], slider["errors"], strict=True):
        if limit in (slider["limit"], max(slider["limits"])):
            other = learned(f"{100 * limit:.6g}%")
            assert torch.tensor(errors).double().allclose(guard_errors(other), atol=1e-6)
    first = [errors[0] for errors in slider["errors"]]
    assert first[0] < first[-1] - 0.02


def test_a_learner_without_limits_has_none() -> None:
    learner = pdcl.learner("exact", features="raw")
    learner.learn(*drawn([0, 1], 0))
    assert learner.other_limits() == []


def test_in_a_browser_a_moved_slider_shows_the_errors_of_its_place(model: Any, tmp_path: Path, look: Any) -> None:
    slider = model.other_limits()[0]
    page = tmp_path / "life.html"
    page.write_text(life(model.save(tmp_path / "model")))
    with look() as seen:
        seen.open(page.as_uri())
        card = seen.page.locator('[data-slider="first"]')
        assert card.locator("output").inner_text() == "20.0 %"
        card.locator("input").fill("0")
        assert card.locator("output").inner_text() == f"{100 * slider['limits'][0]:.1f} %"
        cells = card.locator("tbody tr").nth(0).locator("td").all_inner_texts()
        assert cells[1] == f"{100 * slider['errors'][0][0]:.1f} %"
        assert cells[0] != cells[1]
        assert seen.said == []
