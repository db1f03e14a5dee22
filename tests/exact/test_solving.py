"""What a solve is made of: scores of guards, and the factor that makes them log-probabilities."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pdcl.algorithm.guard_search import UNSEEN, Guards
from pdcl.algorithm.heads import temperature
from pdcl.methods import exact_solving
from pdcl.methods.exact_solving import Past, past_scores, solved
from pdcl.past.statistics import Running

DOUBLE = torch.float64


def past(samples: int = 400, kind: str = "classification") -> Past:
    """Three outputs, the middle one without samples; guards are other samples of the same two classes."""
    random = torch.Generator().manual_seed(0)
    y = 2 * (torch.arange(2 * samples) % 2)
    x = torch.randn(2 * samples, 2, generator=random, dtype=DOUBLE) + y[:, None] - 9
    features = torch.cat([x, torch.ones(2 * samples, 1, dtype=DOUBLE)], 1)
    sums = Running(3, 3, exact=True)
    sums.include(features[:samples], y[:samples])
    guards = Guards(features[samples:], y[samples:], torch.zeros(samples).long(), torch.zeros(0, samples).bool(), kind)
    return Past([sums.moments(0)], 3, guards, torch.tensor([0, -1, 0]))


@pytest.mark.parametrize("head", ["lda", "ridge"])
def test_an_output_without_samples_is_below_all_others_on_guards(head: str) -> None:
    """Its own score would be 0, and scores of discriminant analysis are mostly negative."""
    known = past()
    found = solved(replace(known, head=head), [])
    scores = past_scores(known, found.W)
    assert known.seen.tolist() == [True, False, True]
    assert bool((scores[:, 1] == UNSEEN).all())
    assert bool((found.W[:, 1] == 0).all())
    assert float(known.guards.wrong(scores).mean()) < 0.15


def test_of_many_guards_three_thousand_choose_the_temperature_and_all_of_them_would_choose_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def counted(scores: torch.Tensor, targets: torch.Tensor) -> float:
        asked.append(len(scores))
        return temperature(scores, targets)

    monkeypatch.setattr(exact_solving, "temperature", counted)
    known = past(5000)  # every second one is of one class
    found = solved(known, [])
    assert asked[0] == 3000
    scores = past_scores(known, found.W)[:, [0, 2]]
    assert found.factor == pytest.approx(temperature(scores, known.guards.targets // 2), rel=0.1)
    solved(past(1000), [])
    assert asked[1] == 1000
