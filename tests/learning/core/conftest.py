"""Small exact problems, solved through what trains: the core in a loop of its own, and the learner in ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pdcl.learning.loop import Loop
from pdcl.learning.primal_dual import PrimalDual
from pdcl.learning.schedule import Schedule
from pdcl.methods.pdcl import PDCL
from pdcl.objective import OBJECTIVES, Objective, no_error_rate
from pdcl.streams.data import TensorData
from pdcl.streams.task import Spec, Stream, Task

# The paper's problem, step by step: the whole memory is replayed, a dual step follows every primal step.
LITERAL: dict[str, Any] = {
    "estimator": "whole", "normalise": False, "primal_steps": 1, "partition": "uniform", "base": 0.0,
    "drift": 0.0, "guard": 0, "witness": 0,
}  # fmt: skip
PLAIN = {"optimizer": "sgd", "keep_optimizer": False, "replay": 10}
Samples = tuple[Any, Any]


@dataclass
class Solved:
    """The path of θ [steps, parameters] and of the duals [steps, constraints], and who found them."""

    thetas: Tensor
    duals: Tensor
    core: PrimalDual
    learner: PDCL | None = None

    @property
    def theta(self) -> Tensor:
        return self.thetas[-1]

    @property
    def dual(self) -> Tensor:
        return self.duals[-1]


@dataclass
class Problem:
    """min mean ℓ(current)  s.t.  mean ℓ(past_k) ≤ ε_k, for a linear model without bias and squared errors.

    start: θ at first. tolerance: of every task, the current one last. scale: a factor of every loss.
    """

    past: Sequence[Samples]
    current: Samples
    tolerance: Any
    start: Sequence[float] = (0.0,)
    lr: float = 0.1
    dual_lr: float = 0.5
    steps: int = 1
    scale: float = 1.0
    goal: Objective | None = None
    network: Callable[[], nn.Module] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def tasks(self) -> list[Task]:
        found = []
        for k, (x, y) in enumerate([*self.past, self.current]):
            inputs, targets = torch.as_tensor(x, dtype=torch.float64), torch.as_tensor(y, dtype=torch.float64)
            data = TensorData(inputs, targets.view(len(inputs), -1))
            found.append(Task(k, f"task {k}", data, data))
        return found

    def model(self) -> nn.Module:
        if self.network is not None:
            return self.network()
        made = nn.Linear(len(self.start), 1, bias=False, dtype=torch.float64)
        with torch.no_grad():
            made.weight.copy_(torch.tensor([list(self.start)], dtype=torch.float64))
        return made

    def objective(self) -> Objective:
        given = OBJECTIVES["regression"] if self.goal is None else self.goal
        return Objective("scaled", lambda out, y: self.scale * given.loss(out, y), given.score, given.error)

    def memory(self) -> int:
        """Enough for every sample: nothing is evicted."""
        return sum(len(task.data) for task in self.tasks())

    def by_core(self, **options: Any) -> Solved:
        """The core in the loop that its module shows."""
        model, tasks, losses = self.model(), self.tasks(), self.objective()
        dual = options.pop("dual", f"ascent:lr={options.pop('dual_lr', self.dual_lr)},decay={options.pop('decay', 0)}")
        written = {"memory": self.memory(), "tolerance": self.tolerance, "objective": losses, "dual": dual}
        core = PrimalDual(**{**LITERAL, **written, **self.options, **options})
        forward = torch.no_grad()(model)
        for task in tasks[:-1]:
            core.begin(len(task.data), 1)
            core.end(task.name, task.data, forward, 100 * task.index)
        index = torch.arange(len(tasks[-1].data))
        x, y = tasks[-1].data.fetch(index)
        core.begin(len(x), self.steps)
        order = in_order(core)
        optimiser = torch.optim.SGD(model.parameters(), lr=self.lr)
        thetas, duals = [], []
        for _ in range(self.steps):
            drawn = core.draw(10)
            seen = x if drawn is None else torch.cat([x, core.past.inputs(drawn.slots)])
            terms = core.terms(model(seen), y, drawn)
            weights = core.weights(len(x), drawn)
            optimiser.zero_grad()
            terms.backward(torch.full_like(terms, 1 / len(terms)) if weights is None else weights)
            optimiser.step()
            core.observe(index, terms.detach(), len(x))
            if core.due():
                core.measure(forward)
            thetas.append(flat(model))
            duals.append(core.algorithm.duals.values[order])
        return Solved(torch.stack(thetas), torch.stack(duals), core)

    def prepared(self, **options: Any) -> tuple[PDCL, Stream]:
        """A learner that has taken in the past tasks."""
        tasks = self.tasks()
        written = {"memory": self.memory(), "tolerance": self.tolerance, "lr": self.lr, "dual_lr": self.dual_lr}
        made = {**LITERAL, **PLAIN, **written, "objective": self.objective(), **self.options, **options}
        learner = PDCL(self.model(), **made)
        spec = Spec(tuple(tasks[0].data.fetch(torch.tensor([0]))[0].shape[1:]), torch.float64, 1, "regression")
        learner.prepare(spec)
        for task in tasks[:-1]:
            learner.absorb(task)
        return learner, Stream("small", tasks, spec)

    def by_learner(self, listener: Callable[[Any], None] | None = None, **options: Any) -> Solved:
        """PDCL in the loop that every run uses."""
        learner, stream = self.prepared(**options)
        thetas, duals, order = [], [], in_order(learner.core)

        def note(loop: Loop) -> None:
            thetas.append(flat(learner.model))
            duals.append(learner.core.algorithm.duals.values[order])

        batch = len(stream.tasks[-1].data)
        Loop(learner, stream, Schedule(self.steps, batch), listener or (lambda event: None), note).learn(
            stream.tasks[-1]
        )
        return Solved(torch.stack(thetas), torch.stack(duals), learner.core, learner)

    def solve(self, by: str, **options: Any) -> Solved:
        return self.by_core(**options) if by == "core" else self.by_learner(**options)


def in_order(core: PrimalDual) -> Tensor:
    """The constraints in the order in which the problem names them: memory keeps samples in any."""
    return core.memory["id"].argsort() if core.choices.level == "sample" else torch.arange(len(core.tolerances))


def flat(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    """Digits beyond the seventh are compared."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def problem() -> type[Problem]:
    return Problem


@pytest.fixture
def constant() -> Callable[..., Problem]:
    """Losses that no step changes: every input is 0, so the loss of a sample is the number given for it."""

    given = Objective("given", lambda out, y: (out + y).flatten(), lambda out, y: -y.flatten(), no_error_rate)

    def make(past: Sequence[Sequence[float]], current: Sequence[float], tolerance: Any = 0.0, **more: Any) -> Problem:
        tasks = [([[0.0]] * len(losses), losses) for losses in (*past, current)]
        return Problem(tasks[:-1], tasks[-1], tolerance, goal=given, **more)

    return make
