"""A dozen small runs as digests, to show that a change of the code moved nothing by accident.

    python benchmarks/same_bits.py record before.json          # with the old code
    python benchmarks/same_bits.py check before.json           # with the new code, on the same machine
    python benchmarks/same_bits.py record some.json --only pdcl0-digits,trainer

A digest covers weights, duals, accuracies and memory to the last bit. Other processors round differently, so digests
are compared on one machine and never committed. Runs whose libraries or data are missing are named and left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import pdcl

torch.set_num_threads(1)


def digest(*parts: Any) -> str:
    """A hash of tensors and JSON values."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, Tensor):
            found.update(part.detach().cpu().contiguous().numpy().tobytes())
        else:
            found.update(json.dumps(part, sort_keys=True).encode())
    return found.hexdigest()[:16]


def of_learner(learner: Any) -> list[Any]:
    held = [] if learner.store is None else [learner.store["id"], learner.store["task"], learner.store["y"]]
    report = learner.report()
    return [*learner.model.state_dict().values(), *held, report.duals, report.tolerances, report.segments]


def stream_run(stream: str, method: str, **options: Any) -> Callable[[], str]:
    def run() -> str:
        result = pdcl.run(stream, method, **options)
        shown = json.loads(json.dumps([result.duals, result.partitions], default=str))
        return digest(result.accuracy, shown, *of_learner(result.learner))

    return run


def months(tolerance: Any, **options: Any) -> Callable[[], str]:
    """Three calls of `learn` with a column, a limit on one of its values, and a save and load between them."""

    def run() -> str:
        rng = np.random.default_rng(0)
        learner: Any = pdcl.PDCL("mlp:32", memory=240, tolerance=tolerance, seed=1, **options)
        promises = []
        for k in range(3):
            y = rng.integers(2 * k, 2 * k + 2, 400)
            x = rng.normal(size=(400, 12)).astype("float32") + 1.5 * np.eye(6, 12, dtype="float32")[y]
            site = np.where(rng.random(400) < 0.3, "east", "west")
            entry = learner.learn(x, y, name=f"m{k}", columns={"site": site}, epochs=3)
            promises.append(str(entry.promises))
            with tempfile.TemporaryDirectory() as place:
                learner.save(f"{place}/model")
                learner = pdcl.load(f"{place}/model")
        return digest(promises, *of_learner(learner))

    return run


def by_hand() -> str:
    """`pdcl.PrimalDual` in a loop of one's own, and `pdcl.Lagrangian` beside it."""
    generator = torch.Generator().manual_seed(3)
    network = nn.Linear(6, 3)
    torch.manual_seed(0)
    nn.init.normal_(network.weight)
    nn.init.zeros_(network.bias)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.2)
    lagrangian, numbers = pdcl.Lagrangian(tolerance=0.3, dual_lr=0.2), []
    for task in range(3):
        x, y = torch.randn(90, 6, generator=generator) + 0.5 * task, torch.randint(0, 3, (90,), generator=generator)
        ids = torch.tensor([-1] * 30 + [k for k in range(task) for _ in range(60 // max(task, 1))])[:90]
        for _ in range(40):
            losses = nn.functional.cross_entropy(network(x[: len(ids)]), y[: len(ids)], reduction="none")
            optimiser.zero_grad()
            lagrangian.loss(losses, ids).backward()
            optimiser.step()
            lagrangian.ascend(losses.detach(), ids)
        numbers.append(lagrangian.duals.tolist())
        lagrangian.end_task()
    return digest(numbers, network.weight)


def lightning() -> str:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integrations"))
    import one_problem
    import test_lightning as shown
    from torch.utils.data import DataLoader

    from pdcl.integrations.lightning import DualReplay

    module, replay = shown.Module(one_problem.network()), DualReplay(one_problem.core())
    duals = []
    with tempfile.TemporaryDirectory() as place:
        for number in range(one_problem.TASKS):
            part: Any = replay.enter(f"task {number}", one_problem.Rows(number), module)
            loader: Any = DataLoader(part, one_problem.BATCH, sampler=one_problem.InOrder(len(part), number))
            shown.trainer(Path(place), replay).fit(module, loader)
            duals.append(replay.ended.duals)
    return digest(duals, str(replay.promises), *module.state_dict().values())


def trainer() -> str:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integrations"))
    import test_hf as shown
    from hf_models import llama, sequences, weights

    limits = {"one": (sequences(200, 1, 5), "1.05x"), "points": (sequences(200, 1, 6), "+5pt")}
    with tempfile.TemporaryDirectory() as place:
        found = shown.trained(llama(), Path(place), limits, max_steps=30, learning_rate=5e-3)
    logged = [{k: v for k, v in each.items() if k.startswith(("dual", "slack"))} for each in found.state.log_history]
    return digest(weights(found.model), logged, str(found.promises))


def preset() -> str:
    """The preset with each stream's own values: `tuned`, and `default` before 0.2."""
    from pdcl.lab.presets import tables

    return "tuned" if "tuned" in tables("digits") else "default"


def runs() -> dict[str, Callable[[], str]]:
    own: dict[str, Any] = {"preset": preset(), "memory": 100}
    return {
        "er-digits-0": stream_run("digits", "er", seed=0, **own),
        "er-digits-1": stream_run("digits", "er", seed=1, **own),
        "derpp-digits-0": stream_run("digits", "derpp", seed=0, **own),
        "pdcl0-digits-0": stream_run("digits", "pdcl0", seed=0, **own),
        "pdcl-digits-0": stream_run("digits", "pdcl", seed=0, **own),
        "pdcl-digits-1": stream_run("digits", "pdcl", seed=1, **own),
        "pdcl-s-digits-0": stream_run("digits", "pdcl-s", seed=0, **own),
        "pdcl-rise-digits": stream_run("digits", "pdcl", seed=0, preset="auto", memory=300, tolerance="+2pt"),
        "pdcl-equal-digits": stream_run("digits", "pdcl", seed=1, preset="equal", memory=100),
        "even-digits": stream_run("digits", "even", seed=0, preset="auto", memory=100),
        "pdcl-mnist": stream_run("mnist", "pdcl", seed=0, preset="paper", memory=200),
        "pdcl-s-mnist": stream_run("mnist", "pdcl-s", seed=0, preset="paper", memory=200),
        "segments": months("site=east:+1pt, *:+5pt", guard=20),
        "losses": months("1.2x", partition="generalization", dual_lr=0.3),
        "by-hand": by_hand,
        "lightning": lightning,
        "trainer": trainer,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("record", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="names, with commas between")
    given = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    wanted = [name for name in given.only.split(",") if name]
    before = json.loads(given.file.read_text()) if given.verb == "check" else {}
    found: dict[str, str] = {}
    for name, run in runs().items():
        if wanted and name not in wanted:
            continue
        try:
            found[name] = run()
        except ImportError as error:
            print(f"{name:20} left out: {error}")
            continue
        state = "" if given.verb == "record" else ("same" if before.get(name) == found[name] else "CHANGED")
        print(f"{name:20} {found[name]} {state}", flush=True)
    if given.verb == "record":
        given.file.write_text(json.dumps(found, indent=1))
    elif any(before.get(name) != value for name, value in found.items()):
        sys.exit("some runs changed")


if __name__ == "__main__":
    main()
