"""What a broken row advises is computed: places by the planner's curve, and the strictest limit that would be kept."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pdcl.judging.remedies import Held
from pdcl.judging.verdicts import judge_task
from pdcl.limits.limit import Limit

THEN = np.repeat([1.0, 0.0], [20, 380])
NOW = np.repeat([1.0, 0.0, 1.0], [20, 280, 100])
RISE, SHARE = Limit("+2pt", rise=0.02), Limit("5%", value=0.05)


def test_a_broken_row_says_how_many_places_and_which_limit() -> None:
    """error(40) = .30, error(1000) = .05, limit .07: a and c from the two points, then n from error(n) = .07."""
    row = judge_task("legacy", RISE, THEN, NOW, held=Held(40, 1000))
    assert row.verdict == "BROKEN"
    c = (0.30 - 0.05) / (40**-0.6 - 1000**-0.6)
    wanted = (c / (0.07 - (0.05 - c * 1000**-0.6))) ** (1 / 0.6)
    assert f"more memory (at least {int(np.ceil(wanted)):,} places for it; it had 40)" in row.advice
    assert row.sentence.startswith("BROKEN by 23.0 points; more memory (at least ")


@pytest.mark.parametrize(
    ("limit", "pattern", "made"),
    [
        (RISE, r"\+([\d.]+)pt would", lambda x: Limit("r", rise=x / 100)),
        (SHARE, r"\(([\d.]+)% would", lambda x: Limit("v", value=x / 100)),
    ],
)
def test_the_looser_limit_would_be_kept_and_a_tenth_less_would_not(limit, pattern, made) -> None:  # type: ignore[no-untyped-def]
    row = judge_task("legacy", limit, THEN, NOW)
    found = float(re.search(pattern, row.sentence)[1])  # type: ignore[index]
    assert judge_task("legacy", made(found), THEN, NOW).verdict == "kept"
    assert judge_task("legacy", made(found - 0.1), THEN, NOW).verdict != "kept"


def test_a_limit_below_what_all_samples_gave_needs_something_else_than_memory() -> None:
    row = judge_task("legacy", Limit("1%", value=0.01), THEN, NOW, held=Held(40, 1000))
    assert row.advice[0] == "more memory won't do (all 1,000 samples of it gave 5.0 %)"


def test_rows_that_are_kept_or_undecided_give_no_advice() -> None:
    for limit in (Limit("+60pt", rise=0.6), Limit("+25pt", rise=0.25)):
        row = judge_task("legacy", limit, THEN, NOW, held=Held(40, 1000))
        assert (row.verdict == "BROKEN", row.advice) == (False, ())


def test_a_multiple_of_what_was_gets_no_looser_limit_and_a_loss_no_places() -> None:
    losses = np.full(400, 0.1), np.full(400, 3.0)
    assert judge_task("a", Limit("1.1x", "loss", value=0.01, factor=1.1), *losses, held=Held(4, 9)).advice == ()
    row = judge_task("a", Limit("0.5", "loss", value=0.5), *losses, held=Held(4, 9))
    assert re.fullmatch(r"looser limit \([\d.]+ would be kept\)", row.advice[0])


def test_a_multiple_of_an_error_rate_gets_no_looser_limit_but_places() -> None:
    row = judge_task("a", Limit("1.5x>=7%", value=0.07, factor=1.5), THEN, NOW, held=Held(40, 1000))
    assert (row.verdict, row.limit, len(row.advice)) == ("BROKEN", pytest.approx(0.075), 1)
    assert row.advice[0].startswith("more memory (at least ")


def heart(wrong: float, looked: int, passes: float = 5.0) -> Held:
    return Held(40, 1000, wrong, looked, passes)


def test_a_row_whose_stored_samples_are_learned_by_heart_says_so_and_what_else_helps() -> None:
    row = judge_task("legacy", SHARE, None, NOW, held=heart(1, 40))
    assert row.stored == 1 / 40
    assert row.sentence.startswith(
        "BROKEN by 25.0 points; 2.5 % on stored samples, learned by heart: weights hardly help; "
    )
    assert "fewer epochs or the method exact" in row.advice
    assert "the method exact" in judge_task("legacy", SHARE, None, NOW, held=heart(1, 40, passes=1.0)).advice


@pytest.mark.parametrize("held", [heart(10, 40), heart(0, 4), heart(0, 0), None])
def test_stored_samples_with_errors_of_their_own_or_too_few_of_them_are_not_by_heart(held: Held | None) -> None:
    """Held-back samples have 30 % errors. 10 of 40 stored ones is nearly that; 0 of 4 may be luck."""
    row = judge_task("legacy", SHARE, None, NOW, held=held)
    assert (row.verdict, row.stored) == ("BROKEN", None)
    assert "by heart" not in row.sentence
    assert "exact" not in row.sentence


def test_stored_samples_that_are_not_memorised_pass_for_learned_by_heart_as_rarely_as_stated() -> None:
    """Both kinds have the same error rate. 200 draws for each rate and size, at most 1 in 100 of them."""
    chance = np.random.default_rng(0)
    for rate in (0.1, 0.3, 0.6):
        for looked in (5, 20, 100):
            false = 0
            for _ in range(200):
                now = (chance.random(60) < rate).astype(float)
                row = judge_task(
                    "a", Limit("1%", value=0.01), None, now, held=heart(chance.binomial(looked, rate), looked)
                )
                false += row.stored is not None
            assert false <= 2, (rate, looked)
