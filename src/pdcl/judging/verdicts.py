"""From outcomes to verdicts: one row per limit, all intervals of a report right together.

Of m rows that have samples each gets an interval at 1 − level/m (Bonferroni; `intervals`), so all of them hold at once
with probability 1 − level, however rows overlap. A row is kept where its whole interval is within the limit and BROKEN
where all of it is beyond. Holm's procedure has nothing to gain here: it spends the level of claims that can't be wrong
any more, but one of a row's two verdicts is wrong whatever is true, so all m rows can always err.

>>> wrong = lambda k, n: [1] * k + [0] * (n - k)
>>> row = judge_task("legacy", Limit("+2pt", rise=0.02), then=wrong(4, 200), now=wrong(60, 200))
>>> row.verdict, round(row.over)
('BROKEN', 26)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.errors import UsageError
from pdcl.judging.intervals import Interval, interval
from pdcl.judging.promise import (
    BROKEN,
    KEPT,
    KINDS,
    LEARNED,
    NEW,
    NO_SAMPLES,
    NO_WITNESSES,
    NOT_LEARNED,
    UNDECIDED,
    Promise,
    Split,
)
from pdcl.judging.remedies import Held, learned_by_heart, remedies, to_learn
from pdcl.judging.table import Promises
from pdcl.limits.limit import Limit


@dataclass(frozen=True, eq=False)
class Question:
    """Does `task` keep `limit`? then, now: an outcome per sample (1 where it is wrong, or its loss), [n] each, in the
    same order; then may be left out where the limit is absolute. stated: whether a user wrote the limit. clip,
    typical: of limits in loss, as in `interval`. come: whether any sample of it has come so far. held: of a task's
    memory, for advice where its limit is broken. groups: who each sample belongs to (a patient, a speaker), [n]:
    samples of one are alike, so groups are counted and each counts the same. perhaps_seen: the network may have been
    trained on them. past_weight: of all past tasks together while a new one was learned, in weights of the new one, for
    advice where it was not learned. own: the limit that a new task will have as a past one. why_none: why it can't have
    samples to judge by, where it can't. The other fields stand in the row as they are.
    """

    task: str
    limit: Limit
    now: npt.ArrayLike
    then: npt.ArrayLike | None = None
    kind: str = "task"
    stated: bool = True
    split: Split | None = None
    steered: bool = False
    advice: Sequence[str] = ()
    clip: float | None = None
    typical: float = 0.0
    come: bool = True
    held: Held | None = None
    groups: npt.ArrayLike | None = None
    perhaps_seen: bool = False
    past_weight: float = 0.0
    own: Limit | None = None
    why_none: str = ""
    number: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"kind of row {self.task} must be one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.kind == NEW and self.limit.compares:
            raise UsageError(f"{self.task} is new and has no value from before: {self.limit.written} can't be judged")


def judge(questions: Sequence[Question], level: float = 0.05) -> Promises:
    """All rows of a report; with probability 1 − level every interval holds, so no verdict is wrong."""
    asked = sum(np.size(question.now) > 0 for question in questions)
    return Promises(tuple(_judged(question, level / asked if asked else level) for question in questions), level)


def judge_task(
    task: str, limit: Limit, then: npt.ArrayLike | None, now: npt.ArrayLike, level: float = 0.05, **about: Any
) -> Promise:
    """One row by itself. about: other fields of `Question`."""
    return _judged(Question(task, limit, now, then, **about), level)


def half_way(chance: float, attainable: float, unit: str = "error") -> Limit:
    """The limit of a new task where none is stated: half-way between guessing and what it reaches with nothing to keep.

    >>> half_way(chance=0.9, attainable=0.1).value
    0.5
    """
    if not attainable < chance:
        raise UsageError(f"attainable={attainable} must be below chance={chance}: otherwise there is nothing to learn")
    return Limit("half-way", unit, value=(chance + attainable) / 2)


def _judged(question: Question, level: float) -> Promise:
    limit, split = question.limit, question.split
    found = _measured(question, level) if np.size(question.now) else None
    verdict = _verdict(found, question) if question.come else NO_SAMPLES
    samples = int(np.size(question.now))
    groups = None if found is None else found.groups
    wants = None if found is None or verdict != UNDECIDED else _wants(found, question)
    return Promise(
        question.task,
        question.kind,
        limit.written if question.stated else None,
        limit.of(None) if found is None else found.limit,
        limit.unit,
        found and found.then,
        found and found.now,
        found and found.low,
        None if found is None or math.isinf(found.high) else found.high,
        samples,
        verdict,
        _over(found, limit.unit),
        wants,
        split and split.within,
        split and split.taken_by_new,
        limit.compares,
        question.steered,
        (*question.advice, *_advice(question, found, verdict, level)),
        groups,
        question.perhaps_seen,
        found and found.clip,
        0 if found is None else found.beyond,
        question.why_none if found is None else "",
        question.number,
        None if found is None or verdict != BROKEN or limit.unit != "error" else learned_by_heart(found, question.held),
    )


def _advice(question: Question, found: Interval | None, verdict: str, level: float) -> tuple[str, ...]:
    if found is not None and verdict == BROKEN:
        return remedies(
            question.limit, found, question.held, lambda limit: _measured(replace(question, limit=limit), level)
        )  # fmt: skip
    over = () if found is None or question.own is None else _over_already(found, question.own, question.limit.unit)
    return (*over, to_learn(question.past_weight)) if verdict == NOT_LEARNED else over


def _over_already(found: Interval, own: Limit, unit: str) -> tuple[str, ...]:
    """Whether a new task is above its own limit when it is learned, by the interval that the row has anyway."""
    over = own.unit == unit and own.value is not None and not own.compares and found.low > own.value
    return (f"over its own limit of {own.written} from the start",) if over else ()


def _wants(found: Interval, question: Question) -> int | None:
    """How many samples would decide; None where no number would: within its limit, such a row never becomes kept."""
    within = found.now <= found.limit
    if found.wants is None or found.kept or (within and _shows_nothing(found, question)):
        return None
    return max(found.wants, 1 + (found.groups or int(np.size(question.now))))


def _measured(question: Question, level: float) -> Interval:
    return interval(
        question.limit, question.then, question.now, level, question.clip, question.groups, question.typical
    )


def _verdict(found: Interval | None, question: Question) -> str:
    if found is None:
        return NO_WITNESSES
    if not found.broken and (not found.kept or _shows_nothing(found, question)):
        return UNDECIDED
    good, bad = (LEARNED, NOT_LEARNED) if question.kind == NEW else (KEPT, BROKEN)
    return good if found.kept else bad


def _shows_nothing(found: Interval, question: Question) -> bool:
    """Whether to be within the limit says nothing: the network may know the samples, or all errors are within it."""
    return question.perhaps_seen or (question.limit.unit == "error" and found.limit >= 1)


def _over(found: Interval | None, unit: str) -> float:
    above = 0.0 if found is None else max(0.0, found.now - found.limit)
    return 100 * above if unit == "error" else above
