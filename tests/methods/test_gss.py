"""GSS: what it keeps points in more directions than a random choice does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lab.methods.gss import GSS, POOL, draw_some, duels
from pdcl.learning.batches import batches
from pdcl.streams.task_list import from_tasks


def highest_cosines(learner: GSS, x: Tensor, y: Tensor) -> Tensor:
    """For each sample, the largest cosine between its gradient and another's."""
    found = learner.gradients(x, y)
    cosines = found.inner(found) / (found.norms()[:, None] * found.norms())
    return cosines.fill_diagonal_(-1).amax(1)


def test_kept_gradients_are_less_alike_than_random_ones() -> None:
    # Of twelve classes one makes up most of the data, so that random choices hold many nearly equal gradients.
    random = np.random.default_rng(0)
    y = np.where(random.random(2000) < 0.6, 0, random.integers(1, 12, 2000))
    x = (1 + 0.2 * random.normal(size=(2000, 12)) + np.eye(12)[y]).astype(np.float32)
    stream = from_tasks([(x, y, x, y)])
    # The rate leaves the network as it is: what was diverse when it was chosen still is.
    learner = GSS("linear", memory=8, references=8, lr=1e-9)
    learner.prepare(stream.spec)
    data = stream.tasks[0].data
    for batch in batches(data, 0, 5, torch.arange(len(data)), learner.place):
        learner.step(batch)
    kept = highest_cosines(learner, learner.held["x"], learner.held["y"]).mean()
    others = []
    for seed in range(100):
        chosen = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:8]
        others.append(highest_cosines(learner, *data.fetch(chosen)).mean())
    # Below all of 100 random sets: by chance in 1 of 101 cases.
    assert kept < min(others)


def test_first_sample_has_nothing_to_compare_with_and_the_next_has_it(learner, batch) -> None:
    made = learner("gss", memory=50)
    made.step(batch(size=5))
    scores = made.held["score"]
    assert scores[0] == pytest.approx(0.1)
    assert scores[1] == pytest.approx(
        1 + float(made.cosines(made.gradients(*_rows(made, 1)), torch.tensor([0]))), abs=1e-5
    )


def test_batch_gate_gives_the_first_batch_one_score(learner, batch) -> None:
    made = learner("gss", memory=50, gate="batch")
    made.step(batch(size=5))
    assert made.held["score"].tolist() == pytest.approx([0.1] * 5)
    made.step(batch(1, size=5))
    assert len(made.held["score"][5:].unique()) == 1


def test_references_are_drawn_uniformly_among_the_possible() -> None:
    possible = torch.tensor([[True, True, True, True, False], [True, False, False, False, False]])
    generator = torch.Generator().manual_seed(0)
    counts = sum(draw_some(possible, 2, generator).float() for _ in range(2000))
    # Binomial(2000, 1/2): five standard deviations are 112.
    assert (counts[0, :4] - 1000).abs().max() < 112
    assert counts[0, 4] == 0
    assert counts[1].tolist() == [2000, 0, 0, 0, 0]


def test_duels_follow_their_probabilities() -> None:
    generator = torch.Generator().manual_seed(0)
    scores, wins = torch.tensor([0.5, 1.5]), torch.zeros(2)
    for _ in range(4000):
        slots, _ = duels(scores, torch.tensor([0.5]), generator)
        wins[slots] += 1
    # Slot 0 is met with 1/4 and lost with 1/2, slot 1 with 3/4 and 3/4; five standard deviations are below 160.
    assert (wins - torch.tensor([500.0, 2250.0])).abs().max() < 160


def test_of_two_who_take_a_slot_the_later_stays() -> None:
    slots, winners = duels(torch.tensor([2.0]), torch.full((50,), 1e-9), torch.Generator().manual_seed(0))
    assert slots.tolist() == [0]
    assert winners.tolist() != [0]


def test_a_convolutional_network_fills_an_empty_memory_and_then_compares_with_a_pool_of_it(monkeypatch) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(60, 1, 8, 8), torch.randint(4, (60,))
    stream = from_tasks([(x, y, x, y)])
    learner = GSS("cnn", memory=30, references=8)
    learner.prepare(stream.spec)
    compared = []
    own = GSS.cosines
    monkeypatch.setattr(GSS, "cosines", lambda self, g, slots: compared.append(len(slots)) or own(self, g, slots))
    for batch in batches(stream.tasks[0].data, 0, 5, torch.arange(60), learner.place):
        learner.step(batch)
    assert len(learner.held) == 30
    assert compared[0] == 0
    assert max(compared) <= POOL * 5


def test_every_stored_sample_is_as_likely_to_be_in_the_pool() -> None:
    made = GSS("cnn", memory=20, references=2)
    x, y = torch.randn(20, 1, 8, 8), torch.randint(4, (20,))
    made.prepare(from_tasks([(x, y, x, y)]).spec)
    made.held.append(x=x, y=y, task=torch.zeros(20), id=torch.arange(20), score=torch.ones(20))
    counts = sum(made._pool(2).float() for _ in range(2000))
    # Binomial(2000, 4/20): five standard deviations are 90.
    assert counts.sum() == 2000 * POOL * 2
    assert (counts - 400).abs().max() < 90


def test_unknown_gate_is_refused(learner) -> None:
    with pytest.raises(UsageError, match="sample or batch"):
        learner("gss", gate="never")


def _rows(made: GSS, slot: int) -> tuple[Tensor, Tensor]:
    return made.held["x"][slot : slot + 1], made.held["y"][slot : slot + 1]
