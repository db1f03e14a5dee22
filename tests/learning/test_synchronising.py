"""How often a step waits for the device: reading a tensor's value on the host (`.item()`, `float()`, `.cpu()`)."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pdcl.errors import Diverged
from pdcl.learning.batches import batches
from pdcl.learning.updates import LOOK_EVERY, Finiteness
from pdcl.methods.catalog import method
from pdcl.streams.catalog import load

STEPS = 2 * LOOK_EVERY


class Reads(TorchDispatchMode):
    """Counts values that go from a tensor of the network to the host. Those are float32; duals and what draws need of
    them are float64 and stay on the host. On a CPU `.cpu()` reaches no kernel, so it is counted apart."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.count = 0
        plain = Tensor.cpu

        def cpu(tensor: Tensor, *args: Any, **options: Any) -> Tensor:
            self.count += tensor.dtype == torch.float32
            return plain(tensor, *args, **options)

        monkeypatch.setattr(Tensor, "cpu", cpu)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += function is torch.ops.aten._local_scalar_dense.default and args[0].dtype == torch.float32
        return function(*args, **(kwargs or {}))


def learned(name: str, **options: Any) -> Any:
    """A learner at its second task, as it is on an accelerator, and batches to come.

    By SGD: Adam reads its step number, which it keeps on the host.
    """
    entry = method(name)
    stream = load("synthetic", tasks=2, size=STEPS * 8)
    learner = entry.load()("mlp:16", **{"optimizer": "sgd", **entry.defaults, **options})
    learner.prepare(stream.spec)
    learner.updater.finiteness = Finiteness(LOOK_EVERY)
    for task in stream.tasks:
        learner.begin(task, STEPS)
        coming = batches(task.data, task.index, 8, torch.arange(len(task.data)), learner.place)
        if task.index == 1:
            return learner, coming
        for batch in coming:
            learner.step(batch)
        learner.end(task)
    raise AssertionError


@pytest.mark.parametrize(
    ("name", "options", "dual_steps"),
    [
        ("finetune", {}, 0),
        ("er", {"memory": 40}, 0),
        ("pdcl", {"memory": 40, "tolerance": 0.1, "dual_steps": 4}, 4),
        ("pdcl", {"memory": 40}, 0),
    ],
)
def test_between_dual_steps_only_every_twentieth_step_reads_a_value(
    name: str, options: dict[str, Any], dual_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, coming = learned(name, **options)
    per_step = []
    for batch in coming:
        with Reads(monkeypatch) as reads:
            learner.step(batch)
        monkeypatch.undo()
        per_step.append(reads.count)
    reading = [count for count in per_step if count]
    assert len(per_step) == STEPS
    assert len(reading) <= STEPS // LOOK_EVERY + dual_steps


def test_a_loss_that_is_not_finite_is_found_within_twenty_steps() -> None:
    watch = Finiteness(LOOK_EVERY)
    losses = [torch.tensor(1.0), torch.tensor(math.nan), *[torch.tensor(1.0)] * (LOOK_EVERY - 2)]
    found = [watch.look(loss) for loss in losses]
    assert all(map(math.isfinite, found[:-1]))
    assert not math.isfinite(found[-1])
    learner, coming = learned("er", memory=40)
    with torch.no_grad():
        next(iter(learner.model.parameters())).fill_(math.inf)
    with pytest.raises(Diverged, match="the loss became nan"):
        _ = [learner.step(batch) for batch in coming]
