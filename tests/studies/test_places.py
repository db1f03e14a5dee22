"""The planner: a curve that is known is found again, and what runs can't tell is not told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdcl
from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.judging.places import Curve, fit
from pdcl.lab.studies.places import Need, memory_for, plan, total
from pdcl.past.held_back import allowed


def _true(n: float, a: float = 0.03, c: float = 0.8) -> float:
    return a + c * n**-0.6


def test_a_known_curve_gives_back_its_places() -> None:
    curve = fit([(n, _true(n)) for n in (20, 50, 120)])
    assert (curve.a, curve.c) == (pytest.approx(0.03), pytest.approx(0.8))
    assert curve.off < 1e-9
    for n in (30, 80, 400):
        assert curve.places(_true(n)) == pytest.approx(n)


def test_noise_of_a_point_moves_the_answer_little_where_the_curve_is_steep() -> None:
    rng = np.random.default_rng(0)
    answers = [fit([(n, _true(n) + rng.normal(0, 0.005)) for n in (20, 50, 120)]).places(0.12) for _ in range(200)]
    assert 25 < np.median([each or np.inf for each in answers]) < 60


def test_a_limit_below_what_memory_can_mend_is_out_of_reach_with_the_number() -> None:
    need = Need("a", "2%", 0.02, fit([(n, _true(n)) for n in (20, 50)]), 500)
    assert need.places is None
    assert need.sentence == "out of reach: a = 3.0 %"


def test_more_places_than_the_task_has_samples_are_out_of_reach() -> None:
    need = Need("a", "4%", 0.031, fit([(n, _true(n)) for n in (20, 50)]), 500)
    assert need.sentence == "out of reach: more than the 500 samples that it has"


def _need(written: str, places: int) -> Need:
    return Need("a", written, _true(places - 0.5), fit([(n, _true(n)) for n in (20, 50)]), 500)


def test_alike_limits_need_the_largest_of_all_for_every_task_and_places_for_witnesses() -> None:
    """Memory of exactly so many places leaves each task, the newest too, what the neediest one needs."""
    stream = pdcl.stream("digits")
    found = total(stream, [_need("+5pt", places) for places in (10, 20, 40, 100)])
    assert (found.alike, found.largest) == (True, 100)
    memory = memory_for(500, 5, 10)
    assert f"in all: {memory} places: 5 tasks, the newest too, × the largest need (100)" in found.sentence
    assert f"and {memory - 500} for witnesses" in found.sentence
    left = {m: m - 5 * allowed(None, None, True, m, 5, classes=10).witnesses for m in (memory - 1, memory)}
    assert left[memory] >= 500 > left[memory - 1]


def test_a_small_memory_has_no_witnesses_to_count() -> None:
    said = total(pdcl.stream("digits"), [_need("+5pt", 20)] * 4).sentence
    assert said.startswith("in all: 100 places: 5 tasks")
    assert "witnesses" not in said


def test_unequal_limits_lie_between_the_sum_of_needs_and_an_even_memory() -> None:
    needs = [_need("+5pt", 10), _need("+2pt", 20), _need("+2pt", 30), Need("d", "1%", 0.01, _need("1%", 9).curve, 9)]
    said = total(pdcl.stream("digits"), needs).sentence
    assert said.startswith("in all: 90 to 150 places: at best the sum of needs, the newest task counted as the largest")
    assert said.endswith("and 1 limit out of reach or unknown")


def test_a_stream_of_a_plugin_can_be_planned_for(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "import pdcl\n@pdcl.register_stream('own-digits')\ndef load(): return pdcl.stream('digits', per_class=30)\n"
    )
    words = ["--tolerance", "+5pt", "--memory", "20,40", "--epochs", "1", "--plugin", str(file)]
    assert main(["tolerance", "own-digits", "--plan", *words]) == 0
    assert "runs: even on own-digits" in capsys.readouterr().out


def test_an_answer_beyond_the_sizes_tried_says_so() -> None:
    curve = fit([(n, _true(n)) for n in (20, 50)])
    assert Need("a", "5%", 0.08, curve, 500).sentence == "102 places (beyond what was tried)"
    assert Need("a", "5%", 0.3, curve, 500).sentence == "7 places (below what was tried)"
    assert Need("a", "5%", _true(40), curve, 500).sentence in ("40 places", "41 places")


def test_errors_that_rise_with_memory_tell_nothing() -> None:
    curve = fit([(10, 0.02), (20, 0.05), (40, 0.2)])
    assert not curve.falls
    assert Need("a", "10%", 0.1, curve, 500).sentence.startswith("can't be told")
    assert Need("a", "30%", 0.3, curve, 500).places == 10


def test_a_plan_covers_every_past_task_and_touches_no_test_data(capsys: Any) -> None:
    stream = pdcl.stream("digits")
    found = plan(stream, "+5pt", [20, 60], seeds=(0,), epochs=1)
    assert [need.name for need in found] == [task.name for task in stream.tasks[:-1]]
    assert all(len(need.curve.points) == 2 for need in found)
    assert [n for n, _ in found[0].curve.points] == [4, 12]
    assert all(need.samples < len(task.data) for need, task in zip(found, stream.tasks, strict=False))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--plan"], "needs a limit"),
        (["--memory", "10,20"], "no effect without --plan"),
        (["--plan", "--tolerance", "0.05"], "is a loss"),
        (["--plan", "--tolerance", "+2pt", "--memory", "100"], "two sizes"),
        (["--plan", "--tolerance", "+2pt", "--memory", "few"], "whole numbers"),
        (["--tolerance", "+2%"], "write +2pt"),
    ],
)
def test_what_makes_no_plan_is_one_line_before_any_run(words: list[str], said: str, capsys: Any) -> None:
    assert main(["tolerance", "digits", *words]) == 1
    seen = capsys.readouterr()
    assert said in seen.err
    assert (seen.err.count("\n"), seen.out) == (1, "")
    with pytest.raises(UsageError, match="two sizes"):
        plan(pdcl.stream("digits"), "5%", [50, 50])
    assert Curve(0.0, 0.0, 0.0, ((10, 0.0),)).places(0.0) == 10
