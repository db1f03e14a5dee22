"""What is chosen without being asked: the head and ρ on guards, what goes when memory is full, how labels grow."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.algorithm.closed_form import Quadratic
from pdcl.algorithm.guard_search import Guards, Weights, chosen_head
from pdcl.algorithm.heads import HEADS, inverse_trace, lda_head, temperature

Drawn = Callable[..., tuple[Any, Any]]
RHOS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
DOUBLE = torch.float64


def few_samples(trained: int, seed: int) -> tuple[Weights, Guards]:
    """Two classes that one of 40 features tells apart."""
    random = torch.Generator().manual_seed(seed)

    def draw(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.arange(count) % 2
        x = torch.randn(count, 40, generator=random, dtype=DOUBLE)
        x[:, 0] += 3 * (2 * y - 1)
        return torch.cat([x, torch.ones(count, 1, dtype=DOUBLE)], 1), y

    (x, y), (held, answers) = draw(trained), draw(600)
    wanted = torch.nn.functional.one_hot(y, 2).double()
    loss = Quadratic(x.T @ x / trained, x.T @ wanted / trained, 1.0)
    counts = torch.bincount(y)
    none = torch.zeros(0, 600).bool()
    return Weights(loss, [], 1e-2, "ridge", counts), Guards(held, answers, torch.zeros(600).long(), none)


@pytest.mark.parametrize(("trained", "seed"), [(44, 0), (44, 1), (4000, 2)])
def test_the_chosen_rho_is_as_good_on_guards_as_any(trained: int, seed: int) -> None:
    """Within half a standard error of the best of all fourteen, each solved here by itself."""
    weights, guards = few_samples(trained, seed)
    found, W = chosen_head(weights, guards, ["ridge", "lda"], RHOS)

    def error(solution: torch.Tensor) -> float:
        return float(((guards.features @ solution).argmax(1) != guards.targets).double().mean())

    tried = {(head, rho): error(HEADS[head](weights.objective, rho, weights.counts)) for head in HEADS for rho in RHOS}
    least = min(tried.values())
    spread = (least * (1 - least) / 600) ** 0.5
    assert error(W) == tried[found.head, found.rho]
    assert error(W) <= least + 0.5 * spread + 1e-9
    if trained < 100:
        assert tried[found.head, 1e-5] > error(W) + spread, "ρ must matter, or the test shows nothing"


def test_of_equals_the_first_head_and_the_middle_rho_are_chosen() -> None:
    weights, guards = few_samples(4000, 0)
    sure = Guards(guards.features * 0 + torch.tensor([0.0] * 40 + [1.0]), guards.targets * 0, guards.tasks, guards.sets)
    found, _ = chosen_head(weights, sure, ["ridge", "lda"], RHOS)
    assert found.rho == RHOS[3]


def test_the_lda_head_is_that_of_its_formula() -> None:
    """w = Λμ, b = −½ (μᵀΛμ − tr(ΛΣ) / n): from samples, by NumPy, classes of 12 and 48."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1], [12, 48])
    x = random.normal(size=(60, 3)) + y[:, None]
    features, balance = np.concatenate([x, np.ones((60, 1))], 1), np.array([1 / 12, 1 / 48])[y]
    A = torch.tensor(features.T @ (balance[:, None] * features))
    B = torch.tensor(features.T @ (balance[:, None] * np.eye(3)[y]))
    found = lda_head(Quadratic(A, B, 2.0), 0.1, torch.tensor([12, 48, 0])).numpy()
    means = np.stack([x[y == k].mean(0) for k in (0, 1)])
    scatter = sum(np.cov(x[y == k].T, bias=True) for k in (0, 1)) / 2
    inverse = np.linalg.inv(scatter + 0.1 * np.diag(scatter).mean() * np.eye(3))
    for k, count in enumerate((12, 48)):
        length = means[k] @ inverse @ means[k] - np.trace(inverse @ scatter) / count
        np.testing.assert_allclose(found[:, k], [*(inverse @ means[k]), -0.5 * max(0.0, length)], atol=1e-9)
    assert not found[:, 2].any()


def test_the_trace_of_an_inverse_is_near_for_many_features() -> None:
    from pdcl.algorithm.closed_form import Factor

    random = torch.Generator().manual_seed(0)
    for d in (5, 300):
        x = torch.randn(4 * d, d, generator=random, dtype=DOUBLE)
        matrix = x.T @ x / len(x)
        wanted = float(torch.linalg.inv(matrix).trace())
        found = inverse_trace(Factor(matrix, torch.zeros(d, dtype=DOUBLE)))
        assert found == pytest.approx(wanted, rel=1e-9 if d == 5 else 0.05)


def test_the_temperature_is_that_of_the_scores_that_made_the_answers() -> None:
    """Answers drawn by softmax of 3 × the scores: the likeliest factor is 3, within its standard error."""
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(8000, 4, generator=random, dtype=DOUBLE)
    answers = torch.multinomial((3 * scores).softmax(1), 1, generator=random).flatten()
    assert temperature(scores, answers) == pytest.approx(3.0, rel=0.05)


def test_labels_that_come_later_are_unknown_to_the_guards_held_before() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(900, 4)).astype(np.float32)
    y = (x[:, :3] > 0).astype(np.float32)
    learner: Any = pdcl.learner("exact", features="raw")
    learner.learn(x[:450], y[:450, :2], kind="multilabel")
    before = len(learner.held.memory)
    learner.learn(x[450:], y[450:], kind="multilabel")
    held = learner.held.memory["y"]
    assert held.shape == (len(learner.held.memory), 3)
    assert bool(held[:before, 2].isnan().all())
    assert not bool(held[:, :2].isnan().any())
    assert learner.evaluate(x, y) > 0.9


def test_a_segment_that_was_dropped_for_room_stays_dropped(drawn: Drawn) -> None:
    """Half of its statistics would be worse than none."""
    learner: Any = pdcl.learner("exact", features="random:60", memory="25KB", tolerance={"plan=gold": "+1pt"})
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for task in range(6):
            x, y = drawn([2 * task, 2 * task + 1], 300, task)
            learner.learn(x, y, name=str(task), columns={"plan": ["gold", "free"] * 300})
            if learner.dropped_segments:
                assert not learner.sets.segments
            assert learner.nbytes <= 25_000
    assert learner.dropped_segments == ["plan=gold"]
    assert sum("plan=gold has no statistics of its own" in str(each.message) for each in heard) == 1


def test_a_class_with_one_sample_is_learned_and_never_held_back() -> None:
    """Forty classes have one sample each, two have a hundred: guards and witnesses come from those two."""
    random = np.random.default_rng(0)
    y = np.concatenate([np.arange(40), np.repeat([40, 41], 100)])
    x = (random.normal(size=(240, 4)) + 5 * np.eye(42, 4)[y] + y[:, None]).astype(np.float32)
    learner = pdcl.learner("exact", tolerance="+5pt")
    learner.learn(x, y)
    held = learner.held.memory["y"]
    assert len(held) >= 40
    assert int(held.min()) >= 40
    assert all(learner.predict(x[:40]) == y[:40])


def test_guards_of_a_class_that_was_forgotten_do_not_choose_the_temperature() -> None:
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [10, 200, 200])
    x = (random.normal(size=(410, 4)) + 4 * np.eye(3, 4)[y]).astype(np.float32)
    learner = pdcl.learner("exact", erasable=True)
    learner.learn(x, y)
    rare = [int(each) for each in learner.aside.trained if y[each] == 0]
    assert 0 in learner.held.memory["y"]
    learner.forget(x[rare], y[rare])
    assert 0 not in learner.predict(x)
