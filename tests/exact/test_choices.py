"""What is chosen without being asked: ρ, what goes when memory is full, how labels grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.algorithm.closed_form import Factor, Quadratic, ridge
from pdcl.algorithm.heads import RHOS, chosen_rho, degrees, lda_head, temperature

Drawn = Callable[..., tuple[Any, Any]]
DOUBLE = torch.float64


def squared_loss(trained: int, seed: int, classes: int = 0) -> tuple[Quadratic, torch.Tensor, torch.Tensor]:
    """Noise on one of 40 features, or classes that one of them tells apart: the mean squared loss, x and y."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(trained, 40, generator=random, dtype=DOUBLE)
    if classes:
        labels = torch.arange(trained) % classes
        x[:, 0] += 2 * labels
        y = torch.nn.functional.one_hot(labels, classes).double()
    else:
        y = x[:, :1] + 2 * torch.randn(trained, 1, generator=random, dtype=DOUBLE)
    x = torch.cat([x, torch.ones(trained, 1, dtype=DOUBLE)], 1)
    return Quadratic(x.T @ x / trained, x.T @ y / trained, float(y.square().sum()) / trained), x, y


def left_out_loss(x: torch.Tensor, y: torch.Tensor, rho: float) -> float:
    """The mean loss of every sample under a head that was fitted without it, fit by fit."""
    total, losses = x.T @ x / len(x), []
    penalty = torch.diag(torch.tensor([rho * float(total.diagonal()[:-1].mean())] * 40 + [0.0], dtype=DOUBLE))
    for i in range(len(x)):
        rest = torch.arange(len(x)) != i
        W = torch.linalg.solve(x[rest].T @ x[rest] / len(x) + penalty, x[rest].T @ y[rest] / len(x))
        losses.append(float((x[i] @ W - y[i]).square().sum()))
    return sum(losses) / len(losses)


@pytest.mark.parametrize(("trained", "classes"), [(60, 0), (300, 0), (60, 3), (300, 3)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_chosen_rho_has_nearly_the_least_loss_on_samples_that_are_left_out(
    trained: int, classes: int, seed: int
) -> None:
    loss, x, y = squared_loss(trained, seed, classes)
    found = chosen_rho(loss, trained)
    tried = {rho: left_out_loss(x, y, rho) for rho in RHOS}
    assert tried[found] <= 1.05 * min(tried.values())
    if trained == 60:
        assert tried[1e-5] > 1.5 * min(tried.values()), "ρ must matter, or the test shows nothing"


def test_where_nothing_can_be_left_out_the_largest_rho_is_chosen() -> None:
    """With fewer samples than features a small ρ fits all of them: a loss of 0 that says nothing."""
    loss, _, _ = squared_loss(12, 0)
    assert chosen_rho(loss, 12) >= 1.0
    assert chosen_rho(loss, 12, [1e-5, 1e-4]) == 1e-4


@pytest.mark.parametrize("less", [0.999999, 1.5])
def test_a_direction_that_rounding_made_negative_chooses_nothing(less: float) -> None:
    """Twelve samples of 40 features in float32: where no sample lies, G may be a little below zero. With the least ρ
    beside it degrees of freedom are any number, and the loss is negative."""
    loss, x, _ = squared_loss(12, 0)
    nowhere = torch.linalg.svd(torch.cat([x, torch.eye(41, dtype=DOUBLE)[-1:]])).Vh[-1]
    below = loss.A - less * RHOS[0] * float(loss.A.diagonal()[:-1].mean()) * torch.outer(nowhere, nowhere)
    rounded = Quadratic(below, loss.B + 1e-6 * nowhere[:, None], loss.q)
    assert chosen_rho(rounded, 12) == chosen_rho(loss, 12) >= 1.0
    assert chosen_rho(rounded, 12, [RHOS[0], 1.0]) == 1.0


def test_rounded_sums_of_more_features_than_samples_choose_the_same_rho() -> None:
    """Rounding gives the empty directions of G some length: a tiny ρ then seems to leave samples free."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(150, 1200, generator=random, dtype=DOUBLE) + 300
    x = torch.cat([x, torch.ones(150, 1, dtype=DOUBLE)], 1)
    A, B = x.T @ x / 150, x.T @ torch.nn.functional.one_hot(torch.arange(150) % 2, 2).double() / 150
    rounded, least = Quadratic(A.float().double(), B, 1.0), ridge(1e-5, A)
    factor = Factor(rounded.A, least)
    assert degrees(factor, least) < 120, "rounding must matter, or the test shows nothing"
    assert rounded.value(factor.solve(B)) < 0, "the same"
    assert chosen_rho(rounded, 150) == chosen_rho(Quadratic(A, B, 1.0), 150)


def test_small_tables_are_learned_about_as_well_as_by_ridge_with_cross_validation() -> None:
    """200 random features for some 300 samples, in two tasks: the rule must not fit noise."""
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import RidgeCV

    x, y = (each.astype(np.float32) for each in load_diabetes(return_X_y=True))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(x))
        test, first, second = order[:110], order[110:276], order[276:]
        learner = pdcl.learner("exact", seed=seed)
        for name, some in (("first", first), ("second", second)):
            learner.learn(x[some], y[some], name=name, kind="regression")
        rest = np.concatenate([first, second])
        plain = RidgeCV(np.logspace(-4, 2, 13)).fit(x[rest], y[rest]).predict(x[test])
        ours, theirs = (np.mean((each - y[test]) ** 2) for each in (np.ravel(learner.predict(x[test])), plain))
        assert ours < 1.2 * theirs


@pytest.mark.parametrize("tasks", [0.1, 1.0, 30.0])
def test_the_lda_head_is_that_of_its_formula(tasks: float) -> None:
    """w = Λμ, b = −½ (μᵀΛμ − tr(ΛΣ) / n): from samples, by NumPy, classes of 12 and 48. What all classes weigh is no
    matter: with more tasks than classes, or fewer, the head is the same."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1], [12, 48])
    x = random.normal(size=(60, 3)) + y[:, None]
    features, balance = np.concatenate([x, np.ones((60, 1))], 1), np.array([1 / 12, 1 / 48])[y]
    A = torch.tensor(features.T @ (balance[:, None] * features))
    B = torch.tensor(features.T @ (balance[:, None] * np.eye(3)[y]))
    found = lda_head(Quadratic(tasks * A, tasks * B, 2.0 * tasks), 0.1, torch.tensor([12, 48, 0])).numpy()
    means = np.stack([x[y == k].mean(0) for k in (0, 1)])
    scatter = sum(np.cov(x[y == k].T, bias=True) for k in (0, 1)) / 2
    inverse = np.linalg.inv(scatter + 0.1 * np.diag(scatter).mean() * np.eye(3))
    for k, count in enumerate((12, 48)):
        length = means[k] @ inverse @ means[k] - np.trace(inverse @ scatter) / count
        np.testing.assert_allclose(found[:, k], [*(inverse @ means[k]), -0.5 * max(0.0, length)], atol=1e-9)
    assert not found[:, 2].any()


def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix() -> None:
    random = torch.Generator().manual_seed(0)
    for m in (6, 300):
        x = torch.randn(4 * m, m, generator=random, dtype=DOUBLE)
        A, penalty = x.T @ x / len(x), torch.full((m,), 0.3, dtype=DOUBLE)
        penalty[-1] = 0.0
        hat = x @ torch.linalg.inv(A + penalty.diag()) @ x.T / len(x)
        assert degrees(Factor(A, penalty), penalty) == pytest.approx(float(hat.trace()), rel=1e-9 if m == 6 else 0.02)


def test_the_temperature_is_that_of_the_scores_that_made_the_answers() -> None:
    """Answers drawn by softmax of 3 × the scores: the likeliest factor is 3, within its standard error."""
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(8000, 4, generator=random, dtype=DOUBLE)
    answers = torch.multinomial((3 * scores).softmax(1), 1, generator=random).flatten()
    assert temperature(scores, answers) == pytest.approx(3.0, rel=0.05)


def test_scores_that_are_always_right_or_always_wrong_have_a_temperature_at_the_end_of_its_range() -> None:
    scores = torch.eye(3, dtype=DOUBLE)
    assert temperature(scores, torch.arange(3)) == pytest.approx(1e4, rel=1e-3)
    assert temperature(scores, torch.tensor([1, 2, 0])) == pytest.approx(1e-3, rel=1e-3)


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
    told, first = [], []
    for task in range(6):
        heard: list[Any] = []
        x, y = drawn([2 * task, 2 * task + 1], 300, task)
        learner.learn(x, y, name=str(task), columns={"plan": ["gold", "free"] * 300}, listener=heard.append)
        told += [each.task for each in heard if "plan=gold has no statistics" in getattr(each, "message", "")]
        if learner.dropped_segments:
            first = first or [task]
            assert not learner.sets.segments
        assert learner.nbytes <= 25_000
    assert learner.dropped_segments == ["plan=gold"]
    assert told == first


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
