"""Guards and witnesses as features in 8 bits: stored samples that judging can look at, and nothing is replayed from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pdcl.objective import Objective
from pdcl.past.eight_bits import decode, encode
from pdcl.past.held_back import GROUP, GUARD, WITNESS, Counts, surviving
from pdcl.past.refill import alone
from pdcl.past.segments import CODES, Segments
from pdcl.past.store import Memory
from pdcl.past.stored import StoredSamples

# What a row takes beside its features: scale, target, task, id, hash, role, reference, error, group.
BESIDE = 53
UNBOUNDED = 10**9
MOST_GUARDS, MOST_WITNESSES = 300, 400
# Limits in error are steered from so many guards of a set on.
NEEDED_GUARDS = 100


class HeldFeatures(StoredSamples):
    """Memory with columns x (code, scale), y, task, id, hash, role, reference, wrong; codes and group where needed."""

    def __init__(self, goal: Objective, segments: Segments, guard: int | None, witness: int | None) -> None:
        place = torch.device("cpu")
        super().__init__(Memory(UNBOUNDED, place), goal, place, guard=guard, witness=witness, segments=segments)

    @property
    def nbytes(self) -> int:
        return self.memory.stored

    def most(self, limited: bool, width: int, places: int | None, tasks: int) -> Counts:
        """How many guards and witnesses each of so many tasks may have. places: bytes for all of them; None: any."""
        guard = MOST_GUARDS if self.guard is None else self.guard
        witness = MOST_WITNESSES * limited if self.witness is None else self.witness
        least = (NEEDED_GUARDS if limited else 0) if self.guard is None else self.guard
        if places is None or not guard + witness:
            return Counts(guard, witness, least)
        rows = places // (width + BESIDE + 2 * len(self.segments.table)) // max(1, tasks)
        guards, witnesses = (min(each, rows * each // (guard + witness)) for each in (guard, witness))
        return Counts(guards, witnesses, least)

    def add(
        self, task: int, features: Tensor, y: Tensor, ids: Tensor, roles: Tensor, hashes: Tensor, codes: Tensor,
        groups: Tensor | None,
    ) -> None:  # fmt: skip
        """Rows of a new task; what they show at their reference is filled in by `refer`."""
        blank = torch.full((len(y),), torch.nan)
        rows: dict[str, Any] = {
            "x": encode(features.cpu()), "y": y.cpu(), "task": torch.full((len(y),), task), "id": ids,
            "role": roles, "hash": hashes, "reference": blank, "wrong": blank.clone(),
        }  # fmt: skip
        if self.segments:
            rows[CODES] = codes
        if groups is not None and GROUP not in self.memory.columns and len(self.memory):
            self.memory.join_column(GROUP, alone(self.memory["id"]))
        if groups is not None or GROUP in self.memory.columns:
            rows[GROUP] = alone(ids) if groups is None else groups
        self.memory.append(**rows)

    def refer(self, task: int, scores: Tensor) -> None:
        """What a task's rows show now is what they are compared with later. scores: of all rows."""
        own = self.memory["task"] == task
        y = self.memory["y"]
        self.memory["reference"][own] = self.goal.loss(scores, y)[own].float()
        self.memory["wrong"][own] = self.wrong(scores, y)[own]

    def thin(self, tasks: int, each: Counts) -> None:
        """Keep the first guards and witnesses of each task; what goes is held nowhere."""
        if not len(self.memory):
            return
        role, owner = self.memory["role"], self.memory["task"]
        kinds = ((GUARD, each.guards), (WITNESS, each.witnesses))
        slots = torch.cat([surviving(role, owner, kind, tasks, most) for kind, most in kinds])
        self.memory.keep(slots.sort().values)

    def features(self, kind: int | None = None) -> Tensor:
        """φ with the constant of all rows, or of guards alone, N × (d + 1)."""
        slots = torch.arange(len(self.memory)) if kind is None else self.slots(kind)
        found = decode(self.memory.read("x", slots))
        return torch.cat([found, torch.ones(len(found), 1)], 1)

    def slots(self, kind: int) -> Tensor:
        found: Tensor = (self.memory["role"] == kind).nonzero().flatten()
        return found

    def had(self, tasks: int) -> list[float]:
        """The error of each task at its reference, on its guards, else its witnesses; NaN without any."""
        if not len(self.memory):
            return [torch.nan] * tasks
        owner, wrong = self.memory.read("task"), self.memory.read("wrong").double()
        guards = self.memory.read("role") == GUARD

        def means(rows: Tensor) -> Tensor:
            counts = torch.bincount(owner[rows], minlength=tasks)
            return torch.bincount(owner[rows], wrong[rows], minlength=tasks) / counts

        on_guards = means(guards)
        found: list[float] = torch.where(on_guards.isnan(), means(~guards), on_guards)[:tasks].tolist()
        return found
