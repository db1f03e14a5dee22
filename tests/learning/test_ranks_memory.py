"""Ranks give what one process gives, whatever a memory has: inputs in a file, guards, witnesses, segments, bytes."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from ranks_started import Ranks as Started

from pdcl.storage.vault import Vault

# Logistic regression in float64 with shared classes: a convex problem at every task. The inputs of 24 samples take 768
# bytes, so each rank has them in a file of its own.
CONVEX = """
import os
import pdcl
from torch import nn

class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(8, 2).double()
    def forward(self, x):
        # As many networks do, which then take no empty batch.
        return self.layer(x.view(len(x), -1).double())

rank = os.environ.get("RANK", "0")
stream = pdcl.stream("synthetic", tasks=3, size=90, test_size=50, dim=8, separation=2.0, shared_classes=True)
if "plan=" in str(arguments["options"].get("tolerance")):
    from dataclasses import replace
    import numpy as np
    from pdcl.streams.columns import encoded
    from pdcl.streams.data import TensorData

    plans = encoded({"plan": np.array(["gold", "iron", "iron"] * 30, dtype=object)})
    data = [TensorData(*task.data.fetch(torch.arange(90)), columns=plans) for task in stream.tasks]
    stream = replace(stream, tasks=[replace(task, data=own) for task, own in zip(stream.tasks, data)])
options = dict(memory=24, seed=1, lr=0.05, optimizer="sgd", memory_in_ram="500B") | arguments["options"]
if arguments["method"] == "er":
    learner = pdcl.learner("er", Linear(), **options)
else:
    usual = {} if "tolerance" in options else dict(tolerance=0.1, dual_lr=0.5)
    learner = pdcl.learner(arguments["method"], Linear(), dual_steps=12, **usual, **options)
result = pdcl.run(stream, learner, epochs=3, batch=arguments["batch"])
torch.save(type(learner.store.columns["x"]).__name__, arguments["to"] + ".kind-" + rank)
if rank == "0":
    torch.save({
        "weights": torch.cat([p.detach().flatten() for p in learner.model.parameters()]),
        "duals": torch.tensor([value for row in result.duals for value in row]),
        "accuracy": torch.tensor(result.accuracy["class_il"]),
        "promises": [each.as_json() for each in result.promises or ()],
        "memory": learner.store.state_dict()["columns"],
    }, arguments["to"])
"""
RUN = """
import pdcl
pdcl.run("synthetic", arguments["method"], out=arguments["out"], memory=80, seed=0, epochs=6, batch=16,
         network="mlp:8", checkpoint_every=5, **arguments["options"])
"""
RESUME = """
from pdcl.running.resume import resume
resume(arguments["run"])
"""
# The memory of `synthetic` is small: a chain of its rows is written as if it were large.
CHAINED = """
from pdcl.records import row_chain
row_chain.SMALLEST, row_chain.PIECE = 1, 1000
"""


@pytest.fixture(scope="module")
def ranks() -> Iterator[Started]:
    started = Started()
    yield started
    started.close()


def learned(ranks: Started, folder: Path, world: int, method: str, batch: int = 20, **options: Any) -> dict[str, Any]:
    """What rank 0 found. Every rank has its inputs in a file."""
    found: dict[str, Any] = ranks.together(CONVEX, world, folder, method=method, batch=batch, options=options)
    assert {torch.load(folder / f"found-{world}.pt.kind-{rank}") for rank in range(world)} == {"FileRows"}
    return found


def compare(one: dict[str, Any], other: dict[str, Any], by: float = 1e-6) -> None:
    for name in ("id", "task", "x", "y"):
        assert torch.equal(one["memory"][name], other["memory"][name])
    for name in set(one["memory"]) - {"x"}:
        assert (one["memory"][name].double() - other["memory"][name].double()).nan_to_num().abs().max() < by
    for name in ("weights", "duals", "accuracy"):
        assert one[name].numel() == 0 or (one[name] - other[name]).abs().max() < by
    assert told(one["promises"]) == told(other["promises"])


def told(promises: list[Any]) -> list[Any]:
    """Numbers to six places."""
    return json.loads(json.dumps(promises), parse_float=lambda text: round(float(text), 6))


def test_two_ranks_with_their_inputs_in_files_learn_what_one_process_learns(ranks: Started, tmp_path: Path) -> None:
    options = {"tolerance": "+2pt", "guard": 2, "witness": 3}
    one, two = (learned(ranks, tmp_path, world, "pdcl", **options) for world in (1, 2))
    assert one["duals"].max() > 0.1
    assert one["promises"]
    compare(one, two)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("pdcl", {}),
        ("pdcl", {"tolerance": "+2pt", "guard": 2, "witness": 3}),
        ("pdcl", {"drift": 0.3, "base": 0.0, "estimator": "whole"}),
        ("pdcl", {"memory": "1500B", "slack_samples": 8}),
        ("pdcl", {"tolerance": "plan=gold:+1pt, *:+5pt", "witness": 3}),
        ("pdcl-s", {}),
        ("er", {}),
    ],
)
def test_one_two_and_four_ranks_give_the_same_weights_duals_promises_and_memory(
    method: str, options: dict[str, Any], ranks: Started, tmp_path: Path
) -> None:
    one, two, four = (learned(ranks, tmp_path, world, method, **options) for world in (1, 2, 4))
    compare(one, two)
    compare(one, four)


@pytest.mark.slow
def test_batches_and_draws_smaller_than_the_number_of_ranks_are_learned_too(ranks: Started, tmp_path: Path) -> None:
    """Some ranks then have neither a new nor a stored sample in a step."""
    one, four = (learned(ranks, tmp_path, world, "pdcl", batch=2, memory=6, memory_in_ram="50B") for world in (1, 4))
    compare(one, four)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "first", "then", "chained"),
    [("pdcl", 2, 4, True), ("pdcl", 4, 1, False), ("er", 2, 3, True), ("pdcl", 1, 2, True)],
)
def test_a_killed_run_goes_on_with_another_number_of_ranks(
    method: str, first: int, then: int, chained: bool, ranks: Started, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"memory_in_ram": "3KB"} | ({"tolerance": 0.1} if method == "pdcl" else {})
    given = {"method": method, "options": options}
    start = CHAINED if chained else ""
    ranks.finish(ranks.start(start + RUN, 2, out=str(tmp_path / "whole"), **given))
    started = ranks.start(start + RUN, first, out=str(tmp_path / "killed"), **given)
    ranks_wait(tmp_path / "killed")
    os.kill(started[-1], signal.SIGKILL)
    assert ranks.end(started[-1]) == -signal.SIGKILL
    assert all(ranks.end(rank) != 0 for rank in started[:-1])
    (run,) = (tmp_path / "killed").glob("synthetic*")
    assert not (run / "result.json").exists()
    ranks.finish(ranks.start(start + RESUME, then, run=str(run)))
    (other,) = (tmp_path / "whole").glob("synthetic*")
    mine, its = (json.loads((path / "result.json").read_text()) for path in (run, other))
    assert mine["accuracy"] == its["accuracy"]
    assert mine["partitions"] == its["partitions"]
    flat = [torch.tensor([value for row in each["duals"] for value in row]) for each in (mine, its)]
    assert torch.allclose(flat[0], flat[1], atol=1e-4)
    held = [snapshot(path) for path in (run, other)]
    assert torch.equal(held[0]["id"], held[1]["id"])
    assert torch.equal(held[0]["x"], held[1]["x"])
    assert any(name.startswith("rows-") for name in Vault(run / "checkpoint", "checkpoint").read().parts) == chained


def snapshot(run: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(run / "memory.safetensors")


def ranks_wait(folder: Path) -> None:
    """Until a checkpoint with samples of the second task's draws is there."""
    from test_ranks import wait_for

    wait_for(lambda: any(folder.glob("*/checkpoint/*")) and tasks_in(folder) >= 2)


def tasks_in(folder: Path) -> int:
    (run,) = folder.glob("synthetic*")
    vault = Vault(run / "checkpoint", "checkpoint")
    return int(vault.read().about["tasks"]) if vault.exists() else 0
