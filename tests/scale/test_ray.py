"""Studies on a Ray cluster: what is lost is done elsewhere, and the numbers are those of local processes."""

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

pytest.importorskip("ray", reason="Ray isn't installed: `make test-scale` runs these tests in an environment with it")

import ray
from private_network import in_private_network, is_alone
from ray.cluster_utils import Cluster

import pdcl
from pdcl.lab.studies import Ended, LocalProcesses, Started, Study, execute
from pdcl.lab.studies.parsing import parse
from pdcl.lab.studies.ray_cluster import RayCluster

# Seconds: as many as Ray's processes get to start and to answer.
PATIENCE = 600
FORTY = """
[study]
name = "forty"
streams = ["digits"]
methods = ["er", "pdcl"]
memory = [50]
seeds = 20

[options]
epochs = 2
network = "linear"
"""
PLUGIN = """
import os
from dataclasses import dataclass
from pathlib import Path

import pdcl
from pdcl.methods.plain import Finetune


@pdcl.register("broken")
@dataclass(eq=False)
class Broken(Finetune):
    def step(self, batch):
        raise RuntimeError("broken on purpose")


@pdcl.register("deadly")
@dataclass(eq=False)
class Deadly(Finetune):
    def step(self, batch):
        with open(os.environ["PDCL_DATA"] + "/deaths", "a") as file:
            file.write("x")
        os._exit(7)
"""
SMALL = """
[study]
name = "small"
streams = ["synthetic"]
methods = ["broken", "deadly", "finetune", "er"]
memory = [10]
seeds = 1
plugins = ["PLUGIN"]

[streams.synthetic]
stream_options = { tasks = 2, size = 40, test_size = 20 }

[options]
epochs = 1
network = "linear"
"""


def made(text: str) -> Study:
    import tomllib

    return parse(tomllib.loads(text), text)


@pytest.fixture
def cluster() -> Iterator[Any]:
    if not is_alone():
        # The body runs elsewhere.
        yield None
        return
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@in_private_network
def test_a_study_that_loses_a_node_ends_as_local_processes_end_it(cluster: Any, tmp_path: Path) -> None:
    study, ended, killed = made(FORTY), [], []

    def kill_a_node(notice: object) -> None:
        if isinstance(notice, Ended):
            ended.append(notice)
        # Right after a run began on each of the three nodes, so that the lost one has a run in the middle.
        if len(ended) == 6 and isinstance(notice, Started) and not killed:
            killed.append(cluster.worker_nodes.copy().pop())
            cluster.remove_node(killed[0], allow_graceful=False)

    with RayCluster(cluster.address) as engine:
        assert engine.workers == 3
        outcome = execute(study, tmp_path / "cluster", engine, kill_a_node)
        # Ray counts a node out only after some missed signs of life.
        until = time.monotonic() + PATIENCE
        while engine.workers == 3 and time.monotonic() < until:
            time.sleep(0.2)
        assert engine.workers == 2
    assert len(killed) == 1
    assert (len(outcome.done), len(outcome.failures)) == (40, 0)
    titles = [each.job.spec.title for each in ended]
    assert len(set(titles)) == len(titles) == 40
    with LocalProcesses(2) as processes:
        execute(study, tmp_path / "here", processes)
    assert results(tmp_path / "cluster") == results(tmp_path / "here")
    assert len(results(tmp_path / "here")) == 40


@in_private_network
def test_failures_end_one_run_and_lost_workers_are_tried_again(cluster: Any, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "own.py").write_text(PLUGIN)
    monkeypatch.setenv("PDCL_DATA", str(tmp_path))
    with RayCluster(cluster.address, retries=1) as engine:
        outcome = execute(made(SMALL.replace("PLUGIN", str(tmp_path / "own.py"))), tmp_path / "out", engine)
    assert sorted(each.job.spec.method for each in outcome.done) == ["er", "finetune"]
    causes = {each.job.spec.method: each.cause for each in outcome.failures}
    assert causes["broken"] == "RuntimeError: broken on purpose"
    assert causes["deadly"] is not None
    assert causes["deadly"].startswith("its worker was lost 2 times")
    assert (tmp_path / "deaths").read_text() == "xx"


@in_private_network
def test_what_if_gives_the_same_curve_on_a_cluster(cluster: Any, tmp_path: Path) -> None:
    from pdcl.lab.studies.whatif import whatif

    options = {"memory": 20, "tolerance": 0.2, "epochs": 1, "network": "linear", "dual_steps": 4, "seed": 0}
    run = pdcl.run("digits", "pdcl", preset="tuned", out=tmp_path, **options).path
    assert run is not None
    with RayCluster(cluster.address) as engine:
        there = whatif(run, 0, [0.1, 0.4], engine=engine)
    assert there == whatif(run, 0, [0.1, 0.4], workers=1)


@in_private_network
def test_an_interrupted_study_leaves_no_process_behind_and_can_go_on(tmp_path: Path) -> None:
    file, out = tmp_path / "long.toml", tmp_path / "out"
    file.write_text(FORTY.replace("epochs = 2", "epochs = 500").replace("seeds = 20", "seeds = 1"))
    command = [sys.executable, "-c", "import sys; from pdcl.cli import main; sys.exit(main())"]
    words = [*command, "study", str(file), "--out", str(out), "--engine", "ray"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        wait_until(lambda: len(list(out.glob("*/events.jsonl"))) >= 1)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert f"To go on: pdcl study {file}" in said
    wait_until(lambda: not others())


def others() -> list[str]:
    """Command lines of Ray's and our processes, this one and its parents aside."""
    listed = subprocess.run(["ps", "-eo", "pid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    named = [row[2] for row in rows if not row[1].startswith("Z") and int(row[0]) != os.getpid()]
    return [args for args in named if "raylet" in args or "gcs_server" in args or "ray::" in args or "pdcl.cli" in args]


def results(out: Path) -> dict[str, object]:
    """All results by run, without what they cost and the checksum of it all."""
    found = {path.parent.name: json.loads(path.read_text()) for path in out.glob("*/result.json")}
    return {
        name: {key: value for key, value in result.items() if key not in ("cost", "sha256")}
        for name, result in found.items()
    }


def wait_until(condition: Any) -> None:
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.1)


@in_private_network
def test_sums_of_a_cluster_are_the_sums_of_one_process(cluster: Any, tmp_path: Path) -> None:
    """Every node learns its part on shared features; the parts are merged, and no sample leaves its node."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(4, (1200,), generator=generator)
    x = torch.randn(4, 6, generator=generator)[y] + torch.randn(1200, 6, generator=generator)
    options: dict[str, Any] = {"features": "raw", "erasable": True, "guard": 0, "head": "ridge", "rho": 0.01}
    whole = pdcl.learner("exact", **options)
    whole.learn(x, y, name="all")

    @ray.remote
    def learned(features: Any, x: Any, y: Any, place: str) -> str:
        part = pdcl.learner("exact", **{**options, "features": features})
        part.learn(x, y, name="all")
        part.save(place)
        return place

    ray.init(address=cluster.address)
    parts = [learned.remote(whole.phi, x[k::3], y[k::3], str(tmp_path / f"{k}")) for k in range(3)]
    first, *others = (pdcl.load(each) for each in ray.get(parts, timeout=PATIENCE))
    for other in others:
        first.merge(other)
    assert (first.solution.W - whole.solution.W).abs().max() < 1e-8
