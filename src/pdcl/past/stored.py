"""Stored samples as the past: memory's columns, what enters at a task's end, what is held back, what is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor

from pdcl.algorithm.algorithm1 import LookAt
from pdcl.algorithm.constraints import Sets, task_means
from pdcl.algorithm.drift import drift_of, sharpness
from pdcl.objective import Objective, no_error_rate
from pdcl.past.held_back import GUARD, REPLAY, Counts, HeldBack, allowed
from pdcl.past.layout import Layout, lay_out
from pdcl.past.refill import Source, are_classes, fill
from pdcl.past.repeats import hold_back_once
from pdcl.past.segments import CODES, Segments
from pdcl.past.store import Memory
from pdcl.trees import Tree

LOOK_AT = 512
SHOWN = 32

Forward = Callable[[Any], Tensor]


@dataclass(frozen=True)
class Reached:
    """What the newest task has on its data at large, up to 512 samples of it; error is NaN where there is none."""

    loss: float
    error: float


@dataclass(frozen=True, eq=False)
class Recorded:
    """c z_i. sharpness: c of every slot, shaped to multiply records; None where they are taken as they are. whole:
    every output of every sample has a record."""

    memory: Memory
    whole: bool
    sharpness: Tensor | None = None

    def of(self, slots: Tensor) -> Tensor:
        recorded: Tensor = self.memory.read("outputs", slots)
        if self.sharpness is None:
            return recorded
        return recorded * self.sharpness.index_select(0, slots.to(self.sharpness.device))

    def drift(self, outputs: Tensor, held_to: Tensor) -> Tensor:
        """The drift of outputs from what they are held to, by sample; in fewer operations where nothing is missing."""
        if not self.whole:
            return drift_of(outputs, held_to)
        return (outputs - held_to).square().flatten(1).mean(1)


def recorded_in(memory: Memory) -> Recorded:
    """Records as they are."""
    return Recorded(memory, "outputs" not in memory.columns or not bool(memory.read("outputs").isnan().any()))


def softened(memory: Memory, layout: Layout, learned: Sequence[int], soften: float) -> Recorded:
    """Records times c_k, for tasks of which much is stored and which the network has therefore memorised.

    learned: how many samples each task was trained on here; 0 for adopted tasks, which are held as recorded.
    """
    plain, past = recorded_in(memory), len(layout.tasks)
    if not past or "outputs" not in memory.columns:
        return plain
    known = torch.tensor([*learned[:past], *[0] * (past - len(learned))], dtype=torch.long)
    each, outputs = sharpness(layout.tasks.counts, known, soften)[layout.task_of], memory.read("outputs")
    return replace(plain, sharpness=each.view(-1, *[1] * (outputs.dim() - 1)).to(outputs))


class StoredSamples:
    """Memory with columns x, y, task, id, role, dual, reference (the loss when it was stored), wrong (the error then);
    outputs, where drift is weighed; codes, where segments have limits; group, where samples that are held back have
    one. guard, witness: samples a task sets aside; None: as usual.

    A past of one's own extends this class: `inputs` says what is replayed, `to_store` what memory holds of a new task,
    and `own` is what else it keeps, as tensors and JSON values, saved with the learner.
    """

    def __init__(
        self,
        memory: Memory,
        goal: Objective,
        place: torch.device,
        *,
        records: bool = False,
        guard: int | None = None,
        witness: int | None = None,
        segments: Segments | None = None,
    ) -> None:
        self.memory, self.goal, self.place, self.records = memory, goal, place, records
        self.guard, self.witness = guard, witness
        self.segments = Segments({}) if segments is None else segments
        self.recorded = recorded_in(memory)
        self.own: dict[str, Any] = {}

    # What is there to replay and to look at, while a task is learned.

    def lay_out(self, tasks: int, by_sample: bool, soften: float, learned: Sequence[int]) -> Layout:
        """Which slots are replayed, which measure. learned: how many samples each task was trained on here."""
        layout = lay_out(self.memory, tasks, by_sample, self.segments)
        self.recorded = recorded_in(self.memory)
        # Only class scores can be overconfident; outputs of a regression are compared with the record itself.
        if soften and self.goal.name == "classification":
            self.recorded = softened(self.memory, layout, learned, soften)
        return layout

    def segment_limits(self, sets: Sets, measured_on: Sets, tasks: int) -> list[float]:
        """ε of every segment, of what its samples gave when they were stored; NaN while none of it is replayed."""
        found = []
        for c, limit in enumerate(self.segments.limits.values(), tasks):
            start, count = int(measured_on.offsets[c]), int(measured_on.counts[c])
            slots = measured_on.members[start : start + count]
            column = "wrong" if limit.unit == "error" else "reference"
            there = count > 0 and int(sets.counts[c]) > 0
            found.append(limit.of(0, float(self.memory.read(column, slots).double().mean())) if there else torch.nan)
        return found

    def inputs(self, numbers: Tensor) -> Tree:
        """Inputs of these samples, to replay them."""
        size = len(self.memory)
        every = len(numbers) == size and torch.equal(numbers, torch.arange(size))
        return self.memory.read("x", None if every else numbers)

    def targets(self, numbers: Tensor) -> Tensor:
        found: Tensor = self.memory.read("y", numbers)
        return found

    def look(self, forward: Forward) -> LookAt:
        """Numbers of stored samples → their loss and error now, [n, 2]. forward: inputs to outputs, in eval mode."""

        @torch.no_grad()
        def look(numbers: Tensor) -> Tensor:
            outputs, y = forward(self.inputs(numbers)), self.targets(numbers)
            losses = self.goal.loss(outputs, y)
            return torch.stack([losses, self.wrong(outputs, y).to(losses)], 1)

        return look

    def wrong(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The error of each sample; NaN where the objective has none."""
        if self.goal.error is no_error_rate:
            return torch.full((len(y),), torch.nan)
        return self.goal.error(outputs, y).to(torch.get_default_dtype())

    # A task comes.

    def allocate(self, data: Source, forward: Forward) -> None:
        """Reserve memory before partitioning it: a bound in bytes is a number of samples only now."""
        if self.memory.columns:
            return
        # Several samples, since sequences differ in length.
        first = torch.arange(min(len(data), SHOWN))
        x, y = data.fetch(first)
        blank = {name: torch.zeros(len(first)) for name in ("dual", "reference", "wrong")}
        blank |= {"task": first, "id": first, "role": torch.zeros(len(first), dtype=torch.uint8)}
        if self.records:
            blank["outputs"] = forward(x)
        if self.segments:
            blank[CODES] = self.segments.blank(len(first))
        self.memory.allocate(x=x, y=y, **blank)

    def hold_back(
        self, data: Source, groups: Tensor | None, limited: bool, generator: Generator, known: Tensor | None = None
    ) -> HeldBack | None:
        """Guards and witnesses of a new task; None where it has none, and memory holds none."""
        wanted = self.wanted(data, limited)
        held = len(self.memory) and bool((self.memory.read("role") != REPLAY).any())
        if not wanted.guards and not wanted.witnesses and not held:
            return None
        return hold_back_once(data, wanted, generator, groups, self.memory, known)

    def wanted(self, data: Source, limited: bool) -> Counts:
        """How many guards and witnesses each task may have, the new one with these data included."""
        held = int(self.memory["task"].max()) + 1 if len(self.memory) else 0
        return allowed(self.guard, self.witness, limited, self.memory.capacity, held + 1, self._classes(data))

    def _classes(self, data: Source) -> int:
        """How many there are in memory and in these data; 0 where targets are something else."""
        if not are_classes(data.targets):
            return 0
        own = data.targets.unique()
        return len(own if not len(self.memory) else torch.cat([own.cpu(), self.memory["y"].cpu().unique()]).unique())

    def reached(self, data: Source, forward: Forward) -> Reached:
        total = len(data)
        x, y = data.fetch(torch.linspace(0, total - 1, min(total, LOOK_AT)).long())
        outputs, y = forward(x), y.to(self.place)
        return Reached(float(self.goal.loss(outputs, y).mean()), float(self.wrong(outputs, y).mean()))

    # A task ends: lines 10 and 11 of Algorithm 1, in `refill.py`.

    fill = fill

    def to_store(self, x: Tree, y: Tensor, replayed: int) -> Tree:
        """The inputs that memory holds for these samples: the first `replayed` for replay, the others held back."""
        return x

    def references(self, tasks: int, in_error: list[bool]) -> list[float]:
        """What each task had when it was learned, on the samples that steer for it: its guards, else the replayed."""
        role, owner = self.memory.read("role").cpu(), self.memory["task"].cpu()
        columns = {name: self.memory.read(name).double().cpu() for name in ("reference", "wrong")}
        means = {
            (name, kind): task_means(values[role == kind], owner[role == kind], tasks)
            for name, values in columns.items()
            for kind in (REPLAY, GUARD)
        }
        mask = torch.tensor(in_error, dtype=torch.bool)
        guard, replay = (torch.where(mask, means["wrong", kind], means["reference", kind]) for kind in (GUARD, REPLAY))
        found: list[float] = torch.where(guard.isnan(), replay.nan_to_num(), guard).tolist()
        return found

    def upgrade(self, in_error: list[bool]) -> None:
        """Columns that memory lacks. Of samples stored before a limit on a column was stated, its value is not known;
        of an older format, everything was replayed, and its reference had one unit."""
        size = len(self.memory)
        if self.memory.columns and self.segments and CODES not in self.memory.columns:
            self.memory.join_column(CODES, self.segments.blank(size))
        if CODES in self.memory.columns and (known := self.memory[CODES].shape[1]) < len(self.segments.table):
            self.memory.widen(CODES, self.segments.blank(size)[:, known:])
        if not self.memory.columns or "role" in self.memory.columns:
            return
        self.memory.join_column("role", torch.zeros(size, dtype=torch.uint8))
        mask = torch.tensor(in_error, dtype=torch.bool)[self.memory["task"].cpu()]
        reference = self.memory["reference"].float()
        self.memory.join_column("wrong", torch.where(mask.to(reference.device), reference, torch.nan))
