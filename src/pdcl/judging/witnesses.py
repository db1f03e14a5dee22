"""What became of every limit after a task, on samples that training never saw: questions for `verdicts` to judge."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pdcl.judging.promise import NEW, SEGMENT, Split
from pdcl.judging.table import Promises
from pdcl.limits.limit import Limit
from pdcl.limits.limits import judged
from pdcl.limits.tolerance import Tolerance
from pdcl.limits.tolerances import Tolerances
from pdcl.past.held_back import GROUP, GUARD, MOST_OF_TASK, WITNESS
from pdcl.past.refill import are_classes
from pdcl.past.registry import Registry
from pdcl.past.segments import CODES
from pdcl.past.stored import Forward, Reached, StoredSamples

if TYPE_CHECKING:
    from pdcl.judging.verdicts import Question


@dataclass(frozen=True)
class Seen:
    """What held-back samples showed then and now: [n] each. steered: they are guards, since there are no witnesses.

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
        mine = self.at(kept)
        return [mine.at(slice(start, end)) for start, end in zip([0, *ends], ends, strict=False)]

    def of_segment(self, segment: int, newest: int) -> Seen:
        """Samples of past tasks that are in it: like a task, the newest has nothing to keep yet."""
        mine = self.inside[segment] & (self.tasks < newest)
        return self.at(mine & ~self.steered if bool((mine & ~self.steered).any()) else mine)

    def at(self, places: Tensor | slice) -> Seen:
        then, now = ({unit: values[places] for unit, values in each.items()} for each in (self.then, self.now))
        forgotten = None if self.forgotten is None else self.forgotten[:, places]
        groups = None if self.groups is None else self.groups[places]
        return Seen(self.tasks[places], then, now, forgotten, self.steered[places], self.inside[:, places], groups)

    def split(self) -> Split | None:
        """Errors since the reference, by whether the class that took a sample was known when its task was learned."""
        if self.forgotten is None or not len(self.tasks):
            return None
        return Split(*self.forgotten.double().mean(1).tolist())

    @property
    def members(self) -> npt.NDArray[np.int64] | None:
        """The group of each sample, for bounds that hold where samples of a group are alike."""
        return None if self.groups is None else self.groups.numpy()


@dataclass(frozen=True)
class Newest:
    """What the table must know of the newest task.

    reached: what it has on its own data. replayed: n_k of the past tasks while it was learned. passes: over its data.
    past_weight: of all past tasks together, in weights of the newest. open_ended: nobody knows which tasks will come,
    so limits of names that no task has so far have a row too: a misspelled name must not pass for a promise.
    """

    reached: Reached
    replayed: list[int]
    past_weight: float = 0.0
    open_ended: bool = False
    passes: float = 0.0


def after_task(
    past: StoredSamples, limits: Tolerances, registry: Registry, newest: Newest, forward: Forward
) -> Promises:
    """The table after a task: a row per past task with a limit, per segment, then one for the newest."""
    # Here and below: SciPy is imported once there is a table to make.
    from pdcl.judging.replayed import held_by_task
    from pdcl.judging.verdicts import judge

    seen, last = look_at_witnesses(past, registry, forward), len(limits) - 1
    own, had = seen.by_task(last + 1), past.references(last + 1, [False] * (last + 1))
    held = held_by_task(past, limits, registry, newest, own, forward)
    maybe, questions = registry.perhaps_seen(), []
    for k in range(last):
        if (limit := limits.of(k)) is not None:
            about: dict[str, Any] = {"held": held[k], "perhaps_seen": k in maybe, "typical": had[k]}
            about |= {"why_none": why_none(registry, k), "number": k}
            questions.append(about_past(limits.name(k), limit, k, own[k], **about))
    questions += about_segments(past, registry, last, seen, max(had[:last], default=0.0))
    if newest.open_ended:
        questions += [about_past(name, limit, 0, seen.at(slice(0)), come=False) for name, limit in limits.waiting()]
    before = past.references(last + 1, [True] * (last + 1))[:last]
    goal, stated = goal_of_newest(limits, newest.reached, before, len(registry.first_seen))
    if goal is not None:
        later = limits.of(last)
        about = {"perhaps_seen": last in maybe, "why_none": why_none(registry, last)}
        about |= {"past_weight": newest.past_weight, "number": last}
        about |= {"own": None if later is None else judged(later, last)}
        questions.append(about_newest(limits.name(last), goal, stated, own[last], **about))
    return judge(questions)


@torch.no_grad()
def look_at_witnesses(past: StoredSamples, registry: Registry, forward: Forward) -> Seen:
    """What all held-back samples show now, beside what they showed when they were stored."""
    memory = past.memory
    slots = (memory.read("role").cpu() >= GUARD).nonzero().flatten()
    targets, tasks = past.targets(slots), memory.read("task", slots).cpu()
    then = {"loss": memory.read("reference", slots).cpu(), "error": memory.read("wrong", slots).cpu()}
    now: dict[str, Tensor] = {"loss": torch.zeros(0), "error": torch.zeros(0)}
    forgotten = None
    if len(slots):
        outputs = forward(past.inputs(slots))
        now = {"loss": past.goal.loss(outputs, targets).cpu(), "error": past.wrong(outputs, targets).cpu()}
    if len(slots) and are_classes(targets):
        said = outputs.argmax(1).cpu()
        lost = (said != targets.cpu()) & ~(then["error"] > 0.5)
        later = registry.first_tasks(said) > tasks
        forgotten = torch.stack([lost & ~later, lost & later])
    steered = memory.read("role", slots).cpu() != WITNESS
    codes = memory.read(CODES, slots).cpu() if past.segments else past.segments.blank(len(slots))
    groups = memory.read(GROUP, slots).cpu() if GROUP in memory.columns else None
    return Seen(tasks, then, now, forgotten, steered, past.segments.masks(codes), groups)


def about_past(name: str, stated: Tolerance, task: int, seen: Seen, **about: Any) -> Question:
    from pdcl.judging.verdicts import Question

    limit = judged(stated, task)
    unit = limit.unit
    return Question(
        name,
        limit,
        seen.now[unit].numpy(),
        seen.then[unit].numpy(),
        split=seen.split(),
        steered=bool(seen.steered.any()),
        groups=seen.members,
        **about,
    )


def about_segments(past: StoredSamples, registry: Registry, newest: int, seen: Seen, typical: float) -> list[Question]:
    """A question per segment with a limit, on the witnesses of all past tasks that are in it."""
    segments, maybe = past.segments, registry.perhaps_seen()
    if not segments:
        return []
    come = segments.masks(past.memory.read(CODES).cpu()).any(1).tolist()
    small = all(why_none(registry, k) for k in range(newest))
    too_small = "no past task is large enough for a tenth of it to be held back" if newest and small else ""
    found = []
    for c, (name, limit) in enumerate(zip(segments.names, segments.limits.values(), strict=True)):
        mine = seen.of_segment(c, newest)
        known = bool({*mine.tasks.tolist()} & maybe)
        about: dict[str, Any] = {"come": come[c], "perhaps_seen": known, "typical": typical, "why_none": too_small}
        found.append(about_past(name, limit, 0, mine, kind=SEGMENT, **about))
    return found


def about_newest(name: str, limit: Limit, stated: bool, seen: Seen, **about: Any) -> Question:
    from pdcl.judging.verdicts import Question

    now, steered = seen.now[limit.unit].numpy(), bool(seen.steered.any())
    return Question(name, limit, now, kind=NEW, stated=stated, steered=steered, groups=seen.members, **about)


def why_none(registry: Registry, task: int) -> str:
    """Why a task has no witnesses whatever the memory; nothing where it could have some."""
    samples, smallest = registry.task_samples[task], registry.smallest_groups[task]
    if not samples or smallest <= int(MOST_OF_TASK * samples):
        return ""
    size = f"the smallest of its groups has {smallest:,}" if smallest > 1 else "that is none"
    return f"at most a tenth of its {samples:,} samples may be held back, and {size}"


def goal_of_newest(
    limits: Tolerances, reached: Reached, before: list[float], classes: int
) -> tuple[Limit | None, bool]:
    """What the new task must reach, and whether that is stated; if not, half-way from chance to what is attainable.

    Attainable is what the task has on its own training data, but no more than what past tasks had when they were
    learned: a task that wasn't learned has a large training error, which must not become the bar. None where there is
    no error rate.
    """
    from pdcl.judging.verdicts import half_way

    stated = limits.goal_of_new()
    if stated is not None:
        return judged(stated), True
    if reached.error != reached.error:
        return None, False
    chance = 1 - 1 / max(2, classes)
    known = [error for error in before if error == error]
    usual = statistics.median(known) if known else chance / 2
    return half_way(chance, min(reached.error, usual, 0.9 * chance)), False
