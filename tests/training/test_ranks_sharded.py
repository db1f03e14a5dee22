"""Ranks that divide the inputs of memory give what one process gives, and each holds about its part of them."""

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

from pdcl.storage.serialize import from_parts
from pdcl.storage.vault import Vault

# Logistic regression in float64 with shared classes: a convex problem at every task. The inputs of 24 samples take 768
# bytes, so two or four ranks hold theirs in RAM and one process has them in a file.
CONVEX = """
import os
import pdcl
from pdcl.errors import OnAnotherRank
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
held = []

def hear(event):
    if type(event).__name__ == "TaskEnded":
        column = learner.store.columns["x"]
        own = learner.store.share(torch.arange(len(learner.store))).mine
        rows = len(learner.store) if own is None else int(own.sum())
        held.append((type(column).__name__, column.nbytes, rows, len(learner.store)))

result = pdcl.run(stream, learner, epochs=3, batch=arguments["batch"], listeners=[hear])
torch.save(held, arguments["to"] + ".held-" + rank)
if rank == "0":
    torch.save({
        "weights": torch.cat([p.detach().flatten() for p in learner.model.parameters()]),
        "duals": torch.tensor([value for row in result.duals for value in row]),
        "accuracy": torch.tensor(result.accuracy["class_il"]),
        "promises": [each.as_json() for each in result.promises or ()],
        "memory": learner.store.state_dict()["columns"],
    }, arguments["to"])
elif held[-1][0] == "ShardRows":
    try:
        learner.store["x"]
    except OnAnotherRank:
        pass
    else:
        raise AssertionError("rank 1 gave away inputs that it doesn't hold")
"""
NOTED = """
from pdcl.past.shard_rows import ShardRows
written, write = [], ShardRows.write

def noted(self, slots, rows, mine):
    written.append(int(mine.sum()))
    write(self, slots, rows, mine)

ShardRows.write = noted
"""
WERE_DIVIDED = """
assert bool(written) == (os.environ["WORLD_SIZE"] != "1"), "ranks divide memory, one process doesn't"
"""
RUN = (
    NOTED
    + """
import pdcl
pdcl.run("synthetic", arguments["method"], out=arguments["out"], memory=80, seed=0, epochs=6, batch=16,
         network="mlp:8", checkpoint_every=5, **arguments["options"])
"""
    + WERE_DIVIDED
)
RESUME = (
    NOTED
    + """
from pdcl.running.resume import resume
resume(arguments["run"])
"""
    + WERE_DIVIDED
)
# The memory of `synthetic` is small: a chain of its rows is written as if it were large.
CHAINED = """
from pdcl.records import row_chain
row_chain.SMALLEST, row_chain.PIECE = 1, 1000
"""
NEVER = "1GB"


@pytest.fixture(scope="module")
def ranks() -> Iterator[Started]:
    started = Started()
    yield started
    started.close()


def learned(ranks: Started, folder: Path, world: int, method: str, batch: int = 20, **options: Any) -> dict[str, Any]:
    """What rank 0 found, and what each rank held after each task: kind, bytes allocated, rows, rows of all."""
    found: dict[str, Any] = ranks.together(CONVEX, world, folder, method=method, batch=batch, options=options)
    found["held"] = [torch.load(folder / f"found-{world}.pt.held-{rank}") for rank in range(world)]
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


def check_divided(found: dict[str, Any]) -> None:
    """After each task every stored input was on one rank, and no rank had many more than others."""
    world = len(found["held"])
    for after in zip(*found["held"], strict=True):
        kinds, _, rows, total = zip(*after, strict=True)
        assert set(kinds) == {"ShardRows"}
        assert sum(rows) == total[0]
        # Each sample is on any rank with the same probability: four standard deviations.
        assert max(rows) <= total[0] / world + 4 * (total[0] * (world - 1)) ** 0.5 / world


def test_two_ranks_with_half_of_memory_each_learn_what_one_process_learns(ranks: Started, tmp_path: Path) -> None:
    options = {"tolerance": "+2pt", "guard": 2, "witness": 3}
    one, two = (learned(ranks, tmp_path, world, "pdcl", **options) for world in (1, 2))
    assert one["duals"].max() > 0.1
    assert one["promises"]
    check_divided(two)
    compare(one, two)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("pdcl", {}),
        ("pdcl", {"tolerance": "+2pt", "guard": 2, "witness": 3}),
        ("pdcl", {"constrain": "drift", "base": 0.0, "estimator": "stratified"}),
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
    for several in (two, four):
        check_divided(several)
        compare(one, several)


@pytest.mark.slow
def test_batches_and_draws_smaller_than_the_number_of_ranks_are_learned_too(ranks: Started, tmp_path: Path) -> None:
    """Some ranks then have neither a new nor a stored sample in a step."""
    one, four = (learned(ranks, tmp_path, world, "pdcl", batch=2, memory=6, memory_in_ram="50B") for world in (1, 4))
    compare(one, four)
    assert {kind for after in four["held"] for kind, *_ in after} == {"ShardRows"}


def test_four_ranks_allocate_a_quarter_each_and_all_of_it_where_it_is_small(ranks: Started, tmp_path: Path) -> None:
    size = 200 * 8 * 4
    several = learned(ranks, tmp_path, 4, "er", memory=200, memory_in_ram="4KB")
    taken = [after[-1][1] for after in several["held"]]
    assert size <= sum(taken) <= 1.2 * size
    assert max(taken) < 1.3 * size / 4
    check_divided(several)
    small = learned(ranks, tmp_path, 4, "er", memory=200, memory_in_ram=NEVER)
    assert [after[-1][:2] for after in small["held"]] == [("Rows", size)] * 4


@pytest.mark.slow
@pytest.mark.parametrize(("method", "first", "then"), [("pdcl", 2, 4), ("pdcl", 4, 1), ("er", 2, 3), ("pdcl", 1, 2)])
@pytest.mark.parametrize("chained", [True, False])
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


def test_a_checkpoint_of_two_ranks_holds_the_inputs_of_both(ranks: Started, tmp_path: Path) -> None:
    given: dict[str, Any] = {"method": "pdcl", "options": {"memory_in_ram": "3KB", "tolerance": 0.1}}
    for name, world in (("one", 1), ("two", 2)):
        ranks.finish(ranks.start(RUN, world, out=str(tmp_path / name), **given))
    one, two = (next((tmp_path / name).glob("synthetic*")) for name in ("one", "two"))
    states = [from_parts(Vault(run / "checkpoint", "checkpoint").read().parts) for run in (one, two)]
    columns = [state["learner"]["memory"]["columns"] for state in states]
    assert len(columns[0]["x"]) == 80
    assert torch.equal(columns[0]["x"], columns[1]["x"])
    assert torch.equal(snapshot(two)["x"], columns[1]["x"])
