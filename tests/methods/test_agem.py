"""A-GEM: no step opposes the replayed gradient; what memory holds, by each way of filling it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pdcl.errors import UsageError
from pdcl.lab.methods.agem import projected
from pdcl.lab.methods.parameters import flat_gradient
from pdcl.methods.catalog import method


@given(st.integers(0, 2**32 - 1), st.integers(1, 50))
def test_projected_gradient_is_orthogonal_to_the_reference_and_nearest(seed: int, size: int) -> None:
    g, r = torch.randn(2, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    if g @ r >= 0:
        g = -g
    found = projected(g, r)
    assert abs(found @ r) <= 1e-9 * r.norm() * g.norm()
    # The nearest point of the half-space {z : z·r ≥ 0} differs from g along r alone.
    assert torch.linalg.matrix_rank(torch.stack([found - g, r]), rtol=1e-9) <= 1


def test_no_step_has_a_negative_inner_product_with_the_reference(trained, batch) -> None:
    learner = trained("agem", tasks=2, memory=30, replay=20)
    projections = 0
    for _ in range(20):
        references = []
        compute = learner.reference_gradient
        learner.reference_gradient = lambda m, compute=compute, kept=references: kept.append(compute(m)) or kept[-1]
        before = torch.cat([p.detach().flatten() for p in learner.model.parameters()])
        learner.step(batch(2))
        learner.reference_gradient = compute
        used = flat_gradient(learner.model)
        after = torch.cat([p.detach().flatten() for p in learner.model.parameters()])
        torch.testing.assert_close(before - after, learner.lr * used, rtol=1e-3, atol=1e-6)
        product = used @ references[0]
        assert product >= -1e-5 * used.norm() * references[0].norm()
        projections += bool(abs(product) < 1e-5 * used.norm() * references[0].norm())
    assert projections > 0, "the case that the method exists for never came up"


def test_tasks_share_memory_evenly_and_balanced(trained) -> None:
    learner = trained("agem", memory=30)
    assert learner.held.counts(3) == [10, 10, 10]
    assert torch.bincount(learner.held["y"]).tolist() == [5] * 6


@pytest.mark.parametrize("name", ["agem", "gem"])
def test_fixed_filling_gives_each_task_its_share_of_the_whole_from_the_start(trained, stream, name) -> None:
    assert trained(name, memory=30, tasks=2, filling="fixed").held.counts(3) == [10, 10, 0]
    endless = replace(stream.spec, heads=None)
    with pytest.raises(UsageError, match="known number of tasks"):
        method(name).load()("linear", filling="fixed").prepare(endless)


def test_batch_filling_keeps_one_batch_of_each_task(trained) -> None:
    assert trained("agem", memory=100, batch=8, filling="batch").held.counts(3) == [8, 8, 8]


def test_reservoir_filling_holds_current_samples_too(trained) -> None:
    assert len(trained("agem", tasks=1, epochs=1, memory=40, filling="reservoir").held) == 40


def test_unknown_filling_is_refused(learner) -> None:
    with pytest.raises(UsageError, match="task, fixed, batch, reservoir"):
        learner("agem", filling="all")
