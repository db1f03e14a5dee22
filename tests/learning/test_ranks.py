"""Data-parallel training: any number of ranks gives what one process gives at the same global batch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from ranks_started import Ranks as Started
from ranks_started import free_port

from pdcl.algorithm.algorithm1 import Drawn
from pdcl.errors import UsageError
from pdcl.lab.methods.er import ERRing
from pdcl.learning.primal_dual import PrimalDual
from pdcl.methods.pdcl import PDCL
from pdcl.ranks import Ranks
from pdcl.streams.catalog import load

# Logistic regression in float64 with shared classes: a convex problem at every task.
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
        return self.layer(x.double())

stream = pdcl.stream("synthetic", tasks=3, size=90, test_size=50, dim=8, separation=2.0, shared_classes=True)
options = dict(memory=24, seed=1, lr=0.05, optimizer="sgd")
if arguments["method"] == "pdcl":
    learner = pdcl.PDCL(Linear(), tolerance=0.1, dual_lr=0.5, dual_steps=12, **options, **arguments["rules"])
else:
    from pdcl.lab.methods.er import ER
    learner = ER(Linear(), **options)
result = pdcl.run(stream, learner, epochs=3, batch=20)
if os.environ.get("RANK", "0") == "0":
    torch.save({
        "weights": torch.cat([p.detach().flatten() for p in learner.model.parameters()]),
        "duals": torch.tensor([value for row in result.duals for value in row]),
        "ids": learner.store["id"].clone(),
        "accuracy": torch.tensor(result.accuracy["class_il"]),
    }, arguments["to"])
"""
RUN = """
import pdcl
pdcl.run("synthetic", "pdcl", out=arguments["out"], memory=20, seed=0, epochs=arguments["epochs"], batch=16,
         network="mlp:8", tolerance=0.1, checkpoint_every=arguments["every"])
"""
RESUME = """
from pdcl.running.resume import resume
resume(arguments["run"])
"""


@pytest.fixture(scope="module")
def ranks() -> Iterator[Started]:
    started = Started()
    yield started
    started.close()


def compare(one: Any, other: Any, by: float = 1e-6) -> None:
    assert torch.equal(one["ids"], other["ids"])
    assert (one["weights"] - other["weights"]).abs().max() < by
    assert one["duals"].numel() == 0 or (one["duals"] - other["duals"]).abs().max() < by
    assert (one["accuracy"] - other["accuracy"]).abs().max() < by


def test_two_ranks_learn_what_one_process_learns(ranks: Started, tmp_path: Path) -> None:
    found = [ranks.together(CONVEX, world, tmp_path, method="pdcl", rules={}) for world in (1, 2)]
    assert found[0]["duals"].max() > 0.1
    compare(*found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "rules"),
    [
        ("pdcl", {"base": 0.0}),
        ("pdcl", {"level": "sample", "selection": "dual"}),
        ("pdcl", {"drift": 0.3, "estimator": "whole"}),
        ("er", {}),
    ],
)
def test_one_two_and_four_ranks_give_the_same_duals_weights_and_memory(
    method: str, rules: dict[str, Any], ranks: Started, tmp_path: Path
) -> None:
    one, two, four = (ranks.together(CONVEX, world, tmp_path, method=method, rules=rules) for world in (1, 2, 4))
    compare(one, two)
    compare(one, four)


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 3])
def test_a_killed_rank_stops_all_and_the_run_goes_on_with_any_number_of_ranks(
    world: int, ranks: Started, tmp_path: Path
) -> None:
    arguments = {"epochs": 6, "every": 5}
    ranks.finish(ranks.start(RUN, 2, out=str(tmp_path / "whole"), **arguments))
    first, second = ranks.start(RUN, 2, out=str(tmp_path / "killed"), **arguments)
    wait_for(lambda: any(tmp_path.glob("killed/*/checkpoint/*")))
    os.kill(second, signal.SIGKILL)
    assert ranks.end(second) == -signal.SIGKILL
    assert ranks.end(first) != 0
    (run,) = (tmp_path / "killed").glob("synthetic*")
    assert not (run / "result.json").exists()
    ranks.finish(ranks.start(RESUME, world, run=str(run)))
    (other,) = (tmp_path / "whole").glob("synthetic*")
    mine, its = (json.loads((path / "result.json").read_text()) for path in (run, other))
    assert mine["accuracy"] == its["accuracy"]
    flat = [torch.tensor([value for row in each["duals"] for value in row]) for each in (mine, its)]
    assert torch.allclose(flat[0], flat[1], atol=1e-4)
    assert mine["partitions"] == its["partitions"]
    kinds = [json.loads(line)["event"] for line in (run / "events.jsonl").read_text().splitlines()]
    assert kinds.count("task_ended") == kinds.count("task_began") == 5


def test_the_mean_over_ranks_of_local_losses_is_the_global_estimate() -> None:
    """Σ_i w_i ℓ_i / (1 + ‖λ‖₁) of the global draw, for every number of ranks and parts of unequal size."""
    random = torch.Generator().manual_seed(0)
    slots, n, m = torch.randint(30, (7,), generator=random), 10, 7
    drawn = Drawn(slots, torch.rand(m, generator=random))
    now, replayed = torch.rand(n, generator=random), torch.rand(m, generator=random)
    core = PrimalDual(10)
    core.algorithm.norm = 1.7
    whole = core.weights(n, drawn)
    assert whole is not None
    expected = float((whole * torch.cat([now, replayed])).sum())
    for world in (1, 2, 3, 4, 8):
        total = 0.0
        for rank in range(world):
            core.ranks = Ranks(rank, world)
            part = drawn.at(core.ranks.part(m, backwards=True))
            mine = now[core.ranks.part(n)]
            held = replayed[core.ranks.part(m, backwards=True)]
            weights = core.weights(len(mine), part, n)
            assert weights is not None
            total += float((weights * torch.cat([mine, held])).sum()) / world
        assert total == pytest.approx(expected, rel=1e-6)


def test_what_cannot_be_spread_over_ranks_is_refused() -> None:
    spec = load("synthetic").spec
    for learner, said in [
        (ERRing("linear", memory=20), "ERRing doesn't train with several ranks"),
        (PDCL(torch.nn.Sequential(torch.nn.Linear(16, 10), torch.nn.BatchNorm1d(10)), memory=20), "batch statistics"),
    ]:
        learner.prepare(spec)
        with pytest.raises(UsageError, match=said):
            learner.spread_over(Ranks(0, 2))


@pytest.mark.slow
def test_torchrun_starts_ranks_and_only_one_of_them_speaks(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    words += ["-m", "pdcl", "run", "digits", "pdcl", "--preset", "tuned", "--memory", "30", "--epochs", "1"]
    words += ["--out", str(tmp_path)]
    env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    for said in ("record: ", "finished before, not run again"):
        port = ["--master-port", str(free_port())]
        done = subprocess.run(
            [*words[:5], *port, *words[5:]], timeout=300, capture_output=True, text=True, check=False, env=env
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(said) == 1
    (run,) = tmp_path.glob("digits-pdcl*")
    assert (run / "result.json").exists()


def wait_for(condition: Any) -> None:
    limit = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


EXACT = """
import os
import pdcl

stream = pdcl.stream("synthetic", tasks=3, size=400, test_size=50, dim=8, separation=1.0)
learner = pdcl.learner("exact", features="raw", erasable=True, tolerance="1.02x")
pdcl.run(stream, learner, batch=40)
if os.environ.get("RANK", "0") == "0":
    duals = [learner.duals.get(k, 0.0) for k in range(3)]
    torch.save({"W": learner.solution.W, "duals": torch.tensor(duals)}, arguments["to"])
"""


def test_exact_on_two_ranks_is_exact_in_one_process(ranks: Started, tmp_path: Path) -> None:
    one, two = (ranks.together(EXACT, world, tmp_path) for world in (1, 2))
    assert one["duals"].max() > 0
    assert (one["W"] - two["W"]).abs().max() < 1e-8
    assert (one["duals"] - two["duals"]).abs().max() < 1e-8
