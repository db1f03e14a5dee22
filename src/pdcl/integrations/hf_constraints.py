"""Capabilities as constraints of the core: what a trainer replays, how duals move, and what became of the limits.

min L_new(θ) + b Σ_k L_k(θ)   s.t.   L_k(θ) ≤ ε_k for every capability k

The core's memory holds the numbers of samples; a `look` turns numbers into a loss and an error each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pdcl.algorithm.algorithm1 import Drawn
from pdcl.errors import UsageError
from pdcl.integrations.hf_capabilities import Capability, Positions
from pdcl.integrations.hf_guards import Guards, Look
from pdcl.integrations.hf_self_made import SelfMade
from pdcl.judging.table import Promises
from pdcl.learning.primal_dual import PrimalDual
from pdcl.limits.limits import Limits
from pdcl.limits.tolerance import describe
from pdcl.objective import Objective
from pdcl.ranks import ALONE, Ranks

LOOKED_AT = Objective(
    "looked at", lambda seen, _: seen[:, 0], lambda seen, _: 1 - seen[:, 1], lambda seen, _: seen[:, 1]
)
# Chosen on limits and seeds that docs/results/llm.md doesn't use. Of many guards a few are drawn anew at each dual
# step, so that duals aren't fitted to them; half a standard error of a look is one of four looks together.
DEFAULTS: dict[str, Any] = {
    "base": 0.0, "dual": "capped:cap=1.5,margin=0.5,gain=0.1", "dual_steps": 20, "guard": 256, "witness": 256,
}  # fmt: skip
LOOK_AT_EACH = 32


@dataclass(frozen=True)
class Replay:
    """Numbers of samples to replay, the weight of each loss, and that of the new loss: [m], [m], a number."""

    numbers: Tensor
    weights: Tensor
    share: float


class Constraints:
    """options: of `pdcl.PrimalDual`, over `DEFAULTS`."""

    def __init__(
        self, capabilities: Sequence[Capability], seed: int, options: dict[str, Any], ranks: Ranks = ALONE
    ) -> None:
        self.capabilities, self.ranks = list(capabilities), ranks
        total = sum(map(len, capabilities))
        self.core = PrimalDual(
            # A bound that no count of held-back samples reaches: everything is kept, as a number each.
            8 * len(capabilities) * total,
            Limits({each.name: each.limit for each in capabilities}),
            objective=LOOKED_AT,
            generator=torch.Generator().manual_seed(seed),
            **{**DEFAULTS, "slack_samples": LOOK_AT_EACH * len(capabilities), "partition": "uniform", **options},
        )
        self.core.spread_over(ranks, look_spreads=True)
        ranks.check_agreement("capabilities", torch.tensor(list(self._of().encode())))
        sizes = torch.tensor([len(each) for each in capabilities])
        self.guards = Guards(self.core, sizes.cumsum(0) - sizes)
        self.promises: Promises | None = None
        # What the tests of self-made capabilities had before training, by their number.
        self.tests: dict[int, Tensor] = {}
        self._new: list[Tensor] = []

    @property
    def self_made(self) -> dict[str, SelfMade]:
        """Samples that the model wrote, by the name of the capability."""
        return {each.name: each.dataset for each in self.capabilities if isinstance(each.dataset, SelfMade)}

    def begin(self, look: Look, steps: int) -> None:
        """Measure what capabilities have, the first time; then start with all duals at 0."""
        if not self.core.past_tasks:
            self._enter(look)
            self.tests = {k: look(numbers) for k, numbers in self.numbers_of_tests().items()}
        self.core.begin(0, steps)

    def _enter(self, look: Look) -> None:
        first, seen = 0, torch.full((sum(map(len, self.capabilities)), 2), torch.nan, dtype=torch.float64)
        for each in self.capabilities:
            data = Positions(first, len(each))
            self.core.hold_back(data, self.core.generator, seen.__getitem__)
            aside = self.core.aside
            # Guards stand for what is replayed, so that its reference is wanted only where there are none.
            wanted = [] if aside is None else [aside.guards, aside.witnesses]
            wanted += [] if aside is not None and len(aside.guards) else [torch.arange(len(each))]
            for part in wanted:
                seen[part + first] = look(part + first)
            self.core.begin(len(each), 1)
            self.core.end(each.name, data, seen.__getitem__, first)
            first += len(each)

    def numbers_of_tests(self) -> dict[int, Tensor]:
        """Numbers of the samples that test a self-made capability: they come after those of all capabilities."""
        first, found = sum(map(len, self.capabilities)), {}
        for k, each in enumerate(self.capabilities):
            if each.test is not None:
                found[k] = torch.arange(first, first + len(each.test))
                first += len(each.test)
        return found

    # A step.

    def draw(self, m: int) -> Replay | None:
        """What to replay beside a batch of the new data, of m samples this rank's part; None: nothing."""
        drawn = self.core.draw(m)
        if drawn is None:
            return None
        mine = self._part_of(drawn)
        weights = self.core.weights(1, mine, self.ranks.world)
        assert weights is not None
        return Replay(self.core.memory.read("x", mine.slots), weights[1:], float(weights[0]))

    def draw_inside(self, n: int) -> Replay | None:
        """What takes the place of new samples in a batch of n: nΛ/(1 + Λ) old ones on average, Λ the sum of weights.

        Every sample then weighs the same, old or new, and a step costs what a plain one does. One new sample stays in
        every batch; where Λ wants more than the others, they weigh more.
        """
        norm = self.core.algorithm.norm
        if not norm:
            return None
        share = norm / (1 + norm)
        chance = float(torch.rand((), dtype=torch.float64, generator=self.core.generator))
        m = min(int(n * share + chance), n - 1)
        drawn = self.core.draw(m * self.ranks.world) if m else None
        if drawn is None:
            return None
        mine, old = self._part_of(drawn), share if n * share > n - 1 else m / n
        return Replay(self.core.memory.read("x", mine.slots), torch.full((m,), old / m), 1 - old)

    def _part_of(self, drawn: Drawn) -> Drawn:
        """This rank's part; of fewer samples than ranks all, since gradients are waited for from every rank."""
        if len(drawn.slots) < self.ranks.world:
            return Drawn(drawn.slots, drawn.weights / self.ranks.world)
        return drawn.at(self.ranks.part(len(drawn.slots), backwards=True))

    def note(self, loss: Tensor) -> None:
        """A batch of the new data gave `loss`."""
        self._new.append(loss.detach().view(1))

    def after_step(self, look: Look) -> None:
        """The optimiser has stepped: account for its batches, and step the duals where that is due."""
        new = torch.cat(self._new).mean().view(1)
        self.core.observe(torch.zeros(self.ranks.world, dtype=torch.long), new, 1)
        self._new = []
        if self.core.due():
            self.guards.measure(look)

    # Report and state.

    def logs(self) -> dict[str, float]:
        """λ_k and s_k of every capability, once they are known."""
        if not self.core.progress.slacks:
            return {}
        names = [each.name for each in self.capabilities]
        duals, slacks = self.core.task_duals().tolist(), self.core.progress.slacks[-1].tolist()
        return {f"dual/{k}": v for k, v in zip(names, duals, strict=True)} | {
            f"slack/{k}": v for k, v in zip(names, slacks, strict=True)
        }

    def check_agreement(self) -> None:
        """Raise RanksDisagree unless duals and the next draw are the same on all ranks."""
        self.ranks.check_agreement("duals", self.core.algorithm.duals.values, self.core.generator.get_state())

    def state_dict(self) -> dict[str, Any]:
        """What any number of ranks can take over. Every rank must ask for it."""
        core = self.core
        core.synchronise()
        self.check_agreement()
        return {"of": self._of(), "memory": core.memory.state_dict(), "core": core.state_dict(),
                "generator": core.generator.get_state(), "tests": self.tests, "guards": self.guards.state_dict(),
                "self-made": {name: each.state_dict() for name, each in self.self_made.items()}}  # fmt: skip

    def load_state_dict(self, state: dict[str, Any], place: str) -> None:
        if state["of"] != self._of():
            raise UsageError(f"{place} was saved with capabilities {state['of']}, this trainer has {self._of()}")
        self.core.memory.load_state_dict(state["memory"])
        self.core.load_state_dict(state["core"])
        self.core.generator.set_state(state["generator"])
        # Checkpoints of 0.1 hold neither.
        self.tests = state.get("tests", {})
        if "guards" in state:
            self.guards.load_state_dict(state["guards"])
        for name, each in self.self_made.items():
            each.load_state_dict(state["self-made"][name], place)

    def _of(self) -> str:
        return ", ".join(f"{each.name} ({len(each)} samples, {describe(each.limit)})" for each in self.capabilities)
