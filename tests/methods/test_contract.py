"""Every registered method keeps the whole contract; a learner that breaks it is caught."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from pdcl import testing
from pdcl.lab.methods.er import ER
from pdcl.learning.batches import Batch, Step
from pdcl.lifelong.learner import Learner
from pdcl.methods.catalog import method, methods
from pdcl.methods.plain import Finetune
from pdcl.streams.catalog import load
from pdcl.streams.task import Task


def test_methods_that_users_call_name_their_keywords() -> None:
    """So that an editor can complete them; `**options: Any` would hide them."""
    verbs = [name for name in vars(Learner) if not name.startswith("_") and inspect.isfunction(getattr(Learner, name))]
    assert {"learn", "adopt", "predict", "save"} <= set(verbs)
    for name in verbs:
        kinds = {each.kind for each in inspect.signature(getattr(Learner, name)).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, name
    assert {"name", "tolerance", "epochs", "on_violation"} <= set(inspect.signature(Learner.learn).parameters)


@pytest.mark.parametrize("name", list(methods()))
def test_method_keeps_the_contract(name: str) -> None:
    entry = method(name)
    testing.check_learner(entry.load(), **entry.defaults)


@pytest.mark.parametrize(
    "options",
    [
        {"level": "sample", "selection": "dual", "slack_samples": 5},
        {"warm": True, "gain": 0.3, "decay": 0.1},
        {"drift": 0.5, "soften": 0.2, "slack_samples": 5},
        {"optimizer": "adam", "lr": 0.01, "keep_optimizer": True},
        {"partition": "generalization", "minimum": 4, "memory": "1KB"},
        {"network": "mlp:8", "estimator": "whole"},
    ],
    ids=lambda options: "-".join(options),
)
def test_choices_of_the_primal_dual_learner_continue_to_the_bit(options: dict[str, object]) -> None:
    limited = {"tolerance": 0.05, **options}
    testing.check_continues(method("pdcl").load(), **limited)
    testing.check_bounded_and_repeatable(method("pdcl").load(), **limited)


def test_method_that_forgets_to_save_something_is_caught() -> None:
    @dataclass(eq=False)
    class Forgetful(Finetune):
        def step(self, batch: Batch) -> Step:
            self.count = getattr(self, "count", 0) + 1
            losses = self.losses(self.outputs(batch.x), batch.y)
            self.descend(losses.mean() / self.count)
            return Step(losses.detach())

    with pytest.raises(AssertionError, match="stopped after"):
        testing.check_continues(Forgetful)


def test_method_that_counts_on_an_option_nobody_stated_is_caught() -> None:
    @dataclass(eq=False)
    class Hasty(ER):
        def begin(self, task: Task, steps: int) -> None:
            self.due = steps // self.replay  # type: ignore[operator]

    with pytest.raises(TypeError):
        testing.check_learner(Hasty)


def test_method_with_randomness_of_its_own_is_caught() -> None:
    import os

    @dataclass(eq=False)
    class Erratic(Finetune):
        def step(self, batch: Batch) -> Step:
            noise = int.from_bytes(os.urandom(2)) / 2**16
            losses = self.losses(self.outputs(batch.x), batch.y)
            self.descend(losses.mean() * noise)
            return Step(losses.detach())

    with pytest.raises(AssertionError, match="one seed"):
        testing.check_bounded_and_repeatable(Erratic)


def test_method_that_refuses_without_saying_so_is_caught() -> None:
    @dataclass(eq=False)
    class Proud(ER):
        cannot: ClassVar[tuple[str, ...]] = ("plain",)

    with pytest.raises(AssertionError, match="doesn't refuse"):
        testing.check_bounded_and_repeatable(Proud)


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_stream_keeps_the_contract(name: str) -> None:
    testing.check_stream_contract(lambda: load(name))


def test_stream_that_differs_each_time_is_caught() -> None:
    seeds = iter(range(2))
    with pytest.raises(AssertionError, match="fingerprint"):
        testing.check_stream_contract(lambda: testing.gaussian_stream([{0: 8, 1: 8}], seed=next(seeds)))


def test_a_fetch_that_depends_on_order_is_caught() -> None:
    from dataclasses import replace

    from pdcl.streams.data import TensorData

    class Moody(TensorData):
        def fetch(self, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            x, y = super().fetch(index)
            return x + torch.arange(len(x))[:, None], y

    def moody() -> testing.Stream:
        stream = testing.gaussian_stream([{0: 8, 1: 8}])
        task = stream.tasks[0]
        x, y = task.data.fetch(torch.arange(16))
        return replace(stream, tasks=[replace(task, data=Moody(x, y))])

    with pytest.raises(AssertionError, match="order changes"):
        testing.check_stream_contract(moody)
