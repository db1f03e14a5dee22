"""Devices and precision without an accelerator: on `meta`, where no value can be read, and under autocast."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

import pdcl
from pdcl.learning.batches import batches
from pdcl.learning.optimizers import make_optimizer
from pdcl.learning.updates import LOOK_EVERY
from pdcl.methods.catalog import method
from pdcl.streams.catalog import load


@pytest.fixture(autouse=True)
def single() -> Any:
    torch.set_default_dtype(torch.float32)


def stepped(name: str, steps: int, **options: Any) -> Any:
    """A learner after so many steps of its first task."""
    stream = load("synthetic", tasks=2, size=steps * 8)
    learner = method(name).load()("mlp:16", optimizer="sgd", **options)
    learner.prepare(stream.spec)
    task = stream.tasks[0]
    learner.begin(task, steps)
    for batch in batches(task.data, 0, 8, torch.arange(8 * steps), learner.place):
        learner.step(batch)
    return learner


@pytest.mark.parametrize(("name", "options"), [("finetune", {}), ("er", {"memory": 40}), ("pdcl", {"memory": 40})])
def test_steps_between_two_looks_need_no_value_of_the_device(name: str, options: dict[str, Any]) -> None:
    """A tensor on `meta` has no values: reading one is an error, as the look itself shows."""
    learner = stepped(name, LOOK_EVERY - 1, device="meta", **options)
    assert {parameter.device.type for parameter in learner.model.parameters()} == {"meta"}
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        stepped(name, LOOK_EVERY, device="meta", **options)


def test_memory_lives_on_the_device_of_the_learner() -> None:
    held = stepped("er", LOOK_EVERY - 1, device="meta", memory=40).held
    assert {held[name].device.type for name in ("x", "y")} == {"meta"}


@pytest.mark.parametrize("name", ["er", "pdcl"])
def test_autocast_lowers_the_forward_pass_alone(name: str) -> None:
    seen = []
    learner = stepped(name, 4, memory=40, precision="bfloat16")
    learner.model.register_forward_hook(lambda *args: seen.append(args[2].dtype))
    task = load("synthetic", tasks=2, size=32).tasks[0]
    batch = next(batches(task.data, 0, 8, torch.arange(32), learner.place))
    step = learner.step(batch)
    assert seen == [torch.bfloat16]
    assert step.losses.dtype == torch.float32
    assert {parameter.dtype for parameter in learner.model.parameters()} == {torch.float32}


FAULTS = """
import resource, sys, torch
from pdcl.learning.placement import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def step():
    return [torch.ones(2**20) for _ in range(20)] and None
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be told")
def test_freed_memory_is_used_again_and_not_asked_for_anew() -> None:
    """20 times 80 MB are 400,000 pages of 4 KB, where each step asks for its own."""

    def faults(how: str) -> int:
        return int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, check=True).stdout)

    if faults("as it is") < 100_000:
        pytest.skip("this C library keeps freed memory by itself")
    assert faults("kept") < 30_000


def test_learn_computes_as_a_run_does_and_leaves_torch_as_it_was() -> None:
    """One thread for a small network, numbers below 1e-38 as 0; after it, threads and small numbers as before."""
    x, y = torch.randn(40, 3), torch.arange(40) % 2
    seen = []
    tiny = torch.full((), 1e-40)

    class Looking(torch.nn.Linear):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            seen.append((torch.get_num_threads(), float(tiny * 1)))
            return super().forward(inputs)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        pdcl.PDCL(Looking(3, 2), memory=10).learn(x, y, epochs=1)
        assert set(seen[-5:]) >= {(1, 0.0)}
        assert (torch.get_num_threads(), float(tiny * 1)) == (2, float(tiny))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_steps_of_adam_are_those_of_torchs_plain_form(name: str) -> None:
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    ours, theirs = (torch.nn.Linear(7, 3, dtype=torch.float64) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    made = make_optimizer(name, ours, 0.01, 0.1)
    plain = kinds[name](theirs.parameters(), lr=0.01, weight_decay=0.1, foreach=False, fused=False)
    assert made.param_groups[0]["fused"]
    for _ in range(20):
        x = torch.randn(5, 7, dtype=torch.float64)
        for network, optimiser in ((ours, made), (theirs, plain)):
            optimiser.zero_grad()
            network(x).square().sum().backward()
            optimiser.step()
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-10, atol=1e-12)
