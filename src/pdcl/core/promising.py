"""What became of every promise, on samples that training never saw: questions for `pdcl.promises` to judge."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pdcl.core.filling import Filling, Reached
from pdcl.core.held_back import GROUP, GUARD, MOST_OF_TASK, WITNESS
from pdcl.core.refill import are_classes
from pdcl.core.segments import CODES
from pdcl.core.tolerances import Tolerances
from pdcl.duality.limits import judged
from pdcl.duality.tolerance import Tolerance
from pdcl.promises.limit import Limit
from pdcl.promises.promise import NEW, SEGMENT
from pdcl.promises.split import Split
from pdcl.promises.table import Promises

if TYPE_CHECKING:
    from pdcl.promises.verdicts import Question


@dataclass(frozen=True)
class Seen:
    """What held-back samples showed then and now: [n] each. steered: guards, for want of witnesses.

    forgotten: newly wrong samples, those taken by a class that was known when their task was learned, then those taken
    by a later one, [2, n]; None where nothing is predicted. inside: which are in each segment, [segments, n]. groups:
    who each belongs to; None where nobody said.
    """

    tasks: Tensor
    then: dict[str, Tensor]
    now: dict[str, Tensor]
    forgotten: Tensor | None
    steered: Tensor
    inside: Tensor
    groups: Tensor | None

    def by_task(self, tasks: int) -> list[Seen]:
        """Those of each task; its witnesses alone, where it has some."""
        witnessed = torch.bincount(self.tasks[~self.steered], minlength=tasks) > 0
        kept = (~self.steered | ~witnessed[self.tasks]).nonzero().flatten()
        kept = kept[self.tasks[kept].argsort(stable=True)]
        ends = torch.bincount(self.tasks[kept], minlength=tasks).cumsum(0).tolist()
        mine = self._at(kept)
        return [mine._at(slice(start, end)) for start, end in zip([0, *ends], ends, strict=False)]

    def of_segment(self, segment: int, newest: int) -> Seen:
        """Samples of past tasks that are in it: like a task, the newest has nothing to keep yet."""
        mine = self.inside[segment] & (self.tasks < newest)
        return self._at(mine & ~self.steered if bool((mine & ~self.steered).any()) else mine)

    def _at(self, places: Tensor | slice) -> Seen:
        then, now = ({unit: values[places] for unit, values in each.items()} for each in (self.then, self.now))
        forgotten = None if self.forgotten is None else self.forgotten[:, places]
        groups = None if self.groups is None else self.groups[places]
        return Seen(
            self.tasks[places], then, now, forgotten, self.steered[places], self.inside[:, places], groups
        )  # fmt: skip

    def split(self) -> Split | None:
        """Errors since the reference, by whether the class that took a sample was known when its task was learned."""
        if self.forgotten is None or not len(self.tasks):
            return None
        return Split(*self.forgotten.double().mean(1).tolist())

    @property
    def members(self) -> npt.NDArray[np.int64] | None:
        """The group of each sample, for bounds that hold where samples of a group are alike."""
        return None if self.groups is None else self.groups.numpy()


@dataclass
class Witnesses:
    """Which classes were known when each task was learned, and the table of promises.

    first_seen: class → the first task that had it. samples: how many each task was learned from, 0 where unknown.
    smallest_groups: samples in the smallest group (a patient, a speaker) of each task, 1 where nobody said.
    """

    first_seen: dict[str, int] = field(default_factory=dict)
    samples: list[int] = field(default_factory=list)
    smallest_groups: list[int] = field(default_factory=list)

    def meet(self, task: int, targets: Tensor, groups: Tensor | None = None) -> None:
        """A task with these targets is learned."""
        smallest = 1 if groups is None or not len(groups) else int(groups.unique(return_counts=True)[1].min())
        self.samples[task:] = [*[0] * (task - len(self.samples)), len(targets)]
        self.smallest_groups[task:] = [*[1] * (task - len(self.smallest_groups)), smallest]
        if are_classes(targets):
            for label in targets.unique().tolist():
                self.first_seen.setdefault(str(label), task)

    def promises(
        self, filling: Filling, tolerances: Tolerances, reached: Reached, forward: Callable[[Any], Tensor],
        replayed: list[int], perhaps_seen: Collection[int] = (), open_ended: bool = False,
        past_weight: float = 0.0,
    ) -> Promises:  # fmt: skip
        """The table after the newest task: a row per past task with a limit, per segment, then one for the newest.

        replayed: n_k of the past tasks while the newest was learned. perhaps_seen: tasks whose samples the network may
        have been trained on elsewhere. open_ended: nobody knows which tasks will come, so limits of names that none has
        so far have a row too: a misspelled name must not pass for a promise.
        past_weight: of all past tasks together, in weights of the newest.
        """
        # Here and below: SciPy is imported once there is a table to make.
        from pdcl.promises.remedies import Held
        from pdcl.promises.verdicts import judge

        seen, newest = self._look(filling, forward), len(tolerances) - 1
        own = seen.by_task(newest + 1)
        had = filling.references(newest + 1, [False] * (newest + 1))
        limits = [(k, tolerances.of(k)) for k in range(newest)]
        held = [Held(places, samples) for places, samples in zip(replayed, self.samples, strict=False)]
        questions = []
        for k, each in limits:
            if each is not None:
                about: dict[str, Any] = {"held": held[k], "perhaps_seen": k in perhaps_seen, "typical": had[k]}
                about |= {"why_none": self._why_none(k), "number": k}
                questions.append(self._past(tolerances.name(k), each, k, own[k], **about))
        questions += self._segments(filling, newest, seen, perhaps_seen, max(had[:newest], default=0.0))
        if open_ended:
            questions += [
                self._past(name, each, 0, seen._at(slice(0)), come=False) for name, each in tolerances.waiting()
            ]
        before = filling.references(newest + 1, [True] * (newest + 1))[:newest]
        limit, stated = self._goal(tolerances, reached, before)
        if limit is not None:
            about = {"perhaps_seen": newest in perhaps_seen, "why_none": self._why_none(newest)}
            about |= {"past_weight": past_weight, "number": newest}
            questions.append(self._new(tolerances.name(newest), limit, stated, own[newest], **about))
        return judge(questions)

    @torch.no_grad()
    def _look(self, filling: Filling, forward: Callable[[Any], Tensor]) -> Seen:
        memory = filling.memory
        slots = (memory["role"].cpu() >= GUARD).nonzero().flatten()
        targets = memory.read("y", slots)
        now: dict[str, Tensor] = {"loss": torch.zeros(0), "error": torch.zeros(0)}
        forgotten = None
        if len(slots):
            outputs = forward(memory.read("x", slots))
            now = {"loss": filling.goal.loss(outputs, targets).cpu(), "error": filling.wrong(outputs, targets).cpu()}
        then = {"loss": memory.read("reference", slots).cpu(), "error": memory.read("wrong", slots).cpu()}
        tasks = memory.read("task", slots).cpu()
        if len(slots) and are_classes(targets):
            said = outputs.argmax(1).cpu()
            lost = (said != targets.cpu()) & ~(then["error"] > 0.5)
            later = self._first_tasks(said) > tasks
            forgotten = torch.stack([lost & ~later, lost & later])
        steered = memory.read("role", slots).cpu() != WITNESS
        codes = memory.read(CODES, slots).cpu() if filling.segments else filling.segments.blank(len(slots))
        inside = filling.segments.masks(codes)
        groups = memory.read(GROUP, slots).cpu() if GROUP in memory.columns else None
        return Seen(tasks, then, now, forgotten, steered, inside, groups)

    def _first_tasks(self, classes: Tensor) -> Tensor:
        """The first task that had each of these classes; beyond all tasks where none had it."""
        known, places = classes.unique(return_inverse=True)
        never = len(self.samples)
        return torch.tensor([self.first_seen.get(str(label), never) for label in known.tolist()])[places]

    def _past(self, name: str, stated: Tolerance, task: int, seen: Seen, **about: Any) -> Question:
        from pdcl.promises.verdicts import Question

        limit = judged(stated, task)
        unit = limit.unit
        return Question(
            name, limit, seen.now[unit].numpy(), seen.then[unit].numpy(), split=seen.split(),
            steered=bool(seen.steered.any()), groups=seen.members, **about,
        )  # fmt: skip

    def _segments(
        self, filling: Filling, newest: int, seen: Seen, perhaps_seen: Collection[int], typical: float
    ) -> list[Question]:  # fmt: skip
        """A row per segment with a limit, on the witnesses of all past tasks that are in it."""
        segments = filling.segments
        if not segments:
            return []
        come = segments.masks(filling.memory[CODES].cpu()).any(1).tolist()
        small = all(self._why_none(k) for k in range(newest))
        too_small = "no past task is large enough for a tenth of it to be held back" if newest and small else ""
        found = []
        for c, (name, limit) in enumerate(zip(segments.names, segments.limits.values(), strict=True)):
            mine = seen.of_segment(c, newest)
            known = bool({*mine.tasks.tolist()} & {*perhaps_seen})
            about: dict[str, Any] = {"come": come[c], "perhaps_seen": known, "typical": typical, "why_none": too_small}
            found.append(self._past(name, limit, 0, mine, kind=SEGMENT, **about))
        return found

    def _why_none(self, task: int) -> str:
        """Why a task has no witnesses whatever the memory; nothing where it could have some."""
        samples, smallest = self.samples[task], self.smallest_groups[task]
        if not samples or smallest <= int(MOST_OF_TASK * samples):
            return ""
        size = f"the smallest of its groups has {smallest:,}" if smallest > 1 else "that is none"
        return f"at most a tenth of its {samples:,} samples may be held back, and {size}"

    def _new(self, name: str, limit: Limit, stated: bool, seen: Seen, **about: Any) -> Question:
        from pdcl.promises.verdicts import Question

        now, steered = seen.now[limit.unit].numpy(), bool(seen.steered.any())
        return Question(name, limit, now, kind=NEW, stated=stated, steered=steered, groups=seen.members, **about)

    def _goal(self, tolerances: Tolerances, reached: Reached, before: list[float]) -> tuple[Limit | None, bool]:
        """What the new task must reach, and whether that is stated; if not, half-way from chance to what is attainable.

        Attainable is what the task has on its own training data or, where that is worse, what past tasks had when they
        were learned: a task that isn't learned must not set its own standard. None where there is no error rate.
        """
        from pdcl.promises.verdicts import half_way

        stated = tolerances.goal_of_new()
        if stated is not None:
            return judged(stated), True
        if reached.error != reached.error:
            return None, False
        chance = 1 - 1 / max(2, len(self.first_seen))
        known = [error for error in before if error == error]
        usual = statistics.median(known) if known else chance / 2
        return half_way(chance, min(reached.error, usual, 0.9 * chance)), False
