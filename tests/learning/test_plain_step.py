"""An optimiser's step without torch's wrapper: the same weights, and nobody who watches it misses a step."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from pdcl.learning.optimizers import OPTIMIZERS, make_optimizer, make_scheduler
from pdcl.learning.updates import plain_step

NAMES = sorted(OPTIMIZERS)


def _trained(name: str, step: Callable[[Optimizer], object]) -> nn.Module:
    torch.manual_seed(0)
    network, x = nn.Linear(20, 3), torch.randn(8, 20)
    optimiser = make_optimizer(name, network, lr=0.1, weight_decay=0.01)
    for _ in range(5):
        network.zero_grad()
        network(x).square().mean().backward()
        step(optimiser)
    return network


@pytest.fixture
def wrapped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names under which torch's wrapper told its profiler of a step."""
    told: list[str] = []

    class Telling(torch.autograd.profiler.record_function):
        def __init__(self, name: str, args: str | None = None) -> None:
            told.append(name)
            super().__init__(name, args)

    monkeypatch.setattr(torch.autograd.profiler, "record_function", Telling)
    return told


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_those_of_torchs_own_step_and_its_wrapper_is_left_out(name: str, wrapped: list[str]) -> None:
    ours = _trained(name, plain_step)
    assert wrapped == []
    theirs = _trained(name, lambda optimiser: optimiser.step())
    assert len([told for told in wrapped if told.startswith("Optimizer.step")]) == 5
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(own, other)


def test_hooks_of_an_optimiser_and_of_all_of_them_are_called() -> None:
    calls: list[str] = []
    network = nn.Linear(2, 1)
    optimiser = make_optimizer("sgd", network, lr=0.1, weight_decay=0.0)
    own = optimiser.register_step_pre_hook(lambda *_: calls.append("own"))
    plain_step(optimiser)
    own.remove()
    of_all = register_optimizer_step_post_hook(lambda *_: calls.append("all"))
    plain_step(optimiser)
    of_all.remove()
    plain_step(optimiser)
    assert calls == ["own", "all"]


def test_a_profiler_sees_the_step() -> None:
    optimiser = make_optimizer("adam", nn.Linear(2, 1), lr=0.1, weight_decay=0.0)
    with torch.profiler.profile() as profile:
        plain_step(optimiser)
    assert any("Optimizer.step#Adam" in event.name for event in profile.events())


def test_a_schedule_and_an_optimiser_of_somebody_else_keep_their_step() -> None:
    network = nn.Linear(2, 1)
    optimiser = make_optimizer("sgd", network, lr=0.1, weight_decay=0.0)
    schedule = make_scheduler("linear", optimiser, updates=3)
    plain_step(optimiser)
    # torch warns where a schedule moves before the step that it has wrapped: it has counted this one.
    schedule.step()

    class Own(torch.optim.SGD):
        steps = 0

        def step(self, closure: object = None) -> None:  # type: ignore[override]
            Own.steps += 1

    plain_step(Own(network.parameters(), lr=0.1))
    assert Own.steps == 1
