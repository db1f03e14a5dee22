"""The paper's claims where its theory is exact: a linear head on fixed features, squared loss, every problem solved.

    python benchmarks/evidence/convex_claims.py          minutes; writes docs/results/data/convex_claims.json
    python docs/results/convex.py                        the page

Random ReLU features (300, drawn anew with each seed), tasks of two classes, class-incremental. Task t is
min L_t s.t. L_k ≤ ε_k for all k < t, with ε_k = c · (loss of task k under the head that is fitted to all tasks evenly).
A small c can't be met: its duals end at their cap. The past is there whole, or as a memory of stored samples.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import one_hot, relu

from pdcl.algorithm.closed_form import MOST, Factor, Problem, Quadratic, State, ascend, is_infeasible, ridge, weighted
from pdcl.duality import affine_partition, sample_without_replacement, uniform_partition
from pdcl.metrics import mean_accuracy, mean_forgetting
from pdcl.streams.catalog import load

STREAMS = {"mnist": 500, "organa": 500, "digits": 100}
WIDTH, MOST_OF_A_CLASS, RHO, ALPHA = 300, 1000, 1e-3, 0.5
FACTORS = (0.3, 0.5, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
RIGHT = 1.1
# With a memory: stored samples are easier to fit than their tasks, so what binds on them is a smaller c.
STORED = (1.1, 0.5, 0.2, 0.05)
METHODS = ("er", "pdcl0", "pdcl", "pdcl-s")
OUT = Path("docs/results/data/convex_claims.json")


@dataclass(frozen=True)
class Task:
    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor

    def fit(self, rows: Tensor | None = None) -> Quadratic:
        """The mean loss on these rows (None: all) as a function of the head."""
        x, y = (self.x, self.y) if rows is None else (self.x[rows], self.y[rows])
        return Quadratic(x.T @ x / len(x), x.T @ y / len(x), float(y.square().sum() / len(x)))

    def losses(self, W: Tensor, rows: Tensor) -> Tensor:
        return (self.x[rows] @ W - self.y[rows]).square().sum(1)


def tasks_of(stream: str, seed: int) -> list[Task]:
    generator = torch.Generator().manual_seed(seed)
    found = load(stream)
    raw = [[_some(part, generator) for part in (task.data, task.test)] for task in found.tasks]
    first = raw[0][0][0]
    middle, scale = first.mean(0), first.std() + 1e-6
    filters = torch.randn(first.shape[1], WIDTH, generator=generator, dtype=torch.float64) / first.shape[1] ** 0.5
    classes = 1 + max(int(y.max()) for parts in raw for _, y in parts)

    def phi(x: Tensor) -> Tensor:
        return torch.cat([relu((x - middle) / scale @ filters), torch.ones(len(x), 1, dtype=torch.float64)], 1)

    return [Task(phi(x), one_hot(y, classes).double(), phi(test), y2) for (x, y), (test, y2) in raw]


def _some(data: Any, generator: Generator) -> tuple[Tensor, Tensor]:
    """Up to a thousand samples of each class, flat."""
    targets = torch.as_tensor(data.targets)
    order = torch.randperm(len(targets), generator=generator)
    rows = torch.cat([order[targets[order] == label][:MOST_OF_A_CLASS] for label in targets.unique()])
    x, y = data.fetch(rows)
    return x.double().flatten(1), y


@dataclass(frozen=True)
class Life:
    """One method over all tasks: the last state, how memory was divided, accuracies, and limits out of reach."""

    state: State
    places: list[int]
    accuracy: float
    forgetting: float
    infeasible: bool


class Stream:
    """Tasks with the limits that a factor c gives them, and one penalty for all heads."""

    def __init__(self, name: str, seed: int) -> None:
        self.tasks = tasks_of(name, seed)
        self.fits = [task.fit() for task in self.tasks]
        even = weighted([(1 / len(self.fits), fit) for fit in self.fits])
        self.penalty = ridge(RHO, even.A)
        head = Factor(even.A, self.penalty).solve(even.B)
        self.reachable = [fit.value(head) for fit in self.fits]

    def problem(self, t: int, past: list[Quadratic], factor: float) -> Problem:
        return Problem(self.fits[t], self.penalty, past, [factor * each for each in self.reachable[:t]])

    def solved(self, method: str, t: int, past: list[Quadratic], factor: float) -> State:
        """Even weights for er, those of the dual problem's solution for the others."""
        problem = self.problem(t, past, factor)
        return problem.at(torch.ones(t, dtype=torch.float64)) if method == "er" else ascend(problem, MOST)

    def life(self, method: str, factor: float, memory: int | None = None, seed: int = 0) -> Life:
        generator = torch.Generator().manual_seed(seed)
        held: list[Tensor] = []
        matrix, out_of_reach = [], False
        for t, task in enumerate(self.tasks):
            whole = memory is None
            past = self.fits[:t] if whole else [self.tasks[k].fit(rows) for k, rows in enumerate(held)]
            state = self.solved(method, t, past, factor)
            if method != "er":
                out_of_reach |= is_infeasible(self.problem(t, past, factor), state.duals)
            matrix.append([_accuracy(each, state.W) for each in self.tasks])
            if memory is not None:
                held = self._refilled(method, state, held, task, memory, factor, generator)
        places = [len(rows) for rows in held]
        return Life(state, places, 100 * mean_accuracy(matrix), 100 * mean_forgetting(matrix), out_of_reach)

    def _refilled(
        self,
        method: str,
        state: State,
        held: list[Tensor],
        task: Task,
        memory: int,
        factor: float,
        generator: Generator,
    ) -> list[Tensor]:
        """PB as Algorithm 1's line 10 prints it (1/t for the newest task), FB by slacks at the solution."""
        t = len(held)
        counts = uniform_partition(t + 1, memory)
        if method in ("pdcl", "pdcl-s") and t:
            counts = [*affine_partition(state.duals, memory - counts[-1], ALPHA, [len(r) for r in held]), counts[-1]]
        counts = [min(count, size) for count, size in zip(counts, [*map(len, held), len(task.x)], strict=True)]
        rows = [*held, torch.arange(len(task.x))]
        return [
            each[self._chosen(method, state, k, each, count, factor, generator)]
            for k, (each, count) in enumerate(zip(rows, counts, strict=True))
        ]

    def _chosen(
        self, method: str, state: State, k: int, rows: Tensor, count: int, factor: float, generator: Generator
    ) -> Tensor:
        even = torch.ones(len(rows), dtype=torch.float64)
        slacks = (self.tasks[k].losses(state.W, rows) - factor * self.reachable[k]).clamp(min=0)
        return sample_without_replacement(slacks if method == "pdcl-s" else even, count, generator)


def _accuracy(task: Task, W: Tensor) -> float:
    return float(((task.test_x @ W).argmax(1) == task.test_y).double().mean())


def prices(stream: Stream) -> dict[str, Any]:
    """dP/dε by two solutions beside λ, for every limit that binds; and how far from below −λγ a large change comes."""
    t = len(stream.tasks) - 1
    problem = stream.problem(t, stream.fits[:t], RIGHT)
    at = ascend(problem, MOST)
    off, above = [], []
    for k, dual in enumerate(at.duals.tolist()):
        if dual < 1e-6:
            continue

        def value(change: float, k: int = k) -> float:
            limits = [each + change * (place == k) for place, each in enumerate(problem.limits)]
            return ascend(Problem(problem.objective, problem.penalty, problem.constraints, limits), MOST).primal

        step = 1e-4 * problem.limits[k]
        off.append((value(step) - value(-step)) / (2 * step) / -dual - 1)
        for share in (-0.05, 0.25, 1.0):
            change = share * problem.limits[k]
            above.append((value(change) - at.primal + dual * change) / abs(dual * change))
    return {"duals": at.duals.tolist(), "off": off, "above": above, "residual": at.residual(MOST)}


def measured(name: str, memory: int, seed: int) -> dict[str, Any]:
    stream = Stream(name, seed)
    er = stream.life("er", RIGHT)
    curve = []
    for factor in FACTORS:
        own = stream.life("pdcl0", factor)
        worst = max(own.state.slacks.tolist())
        curve.append({"factor": factor, "accuracy": own.accuracy, "forgetting": own.forgetting, "worst": worst,
                      "norm": float(own.state.duals.sum()), "infeasible": own.infeasible})  # fmt: skip
    stored = {
        str(factor): {
            label: {"accuracy": life.accuracy, "forgetting": life.forgetting, "places": life.places}
            for label in METHODS
            for life in [stream.life(label, factor, memory, seed)]
        }
        for factor in STORED
    }
    whole = {"accuracy": er.accuracy, "forgetting": er.forgetting, "worst": max(er.state.slacks.tolist())}
    return {"er": whole, "curve": curve, "stored": stored, "prices": prices(stream)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = json.loads(given.out.read_text()) if given.out.is_file() else {}
    for seed in range(given.seeds):
        for name, memory in STREAMS.items():
            if str(seed) not in found.setdefault(name, {}):
                found[name][str(seed)] = measured(name, memory, seed)
                given.out.write_text(json.dumps(found, indent=1) + "\n")
                print(name, seed, found[name][str(seed)]["stored"][str(RIGHT)], flush=True)


if __name__ == "__main__":
    main()
