"""A promise: one limit, what was measured against it, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from pdcl.errors import LimitBroken as LimitBroken

KEPT, BROKEN, UNDECIDED, NO_WITNESSES = "kept", "BROKEN", "undecided", "no witnesses"
NO_SAMPLES = "no samples yet"
LEARNED, NOT_LEARNED = "learned", "NOT LEARNED"
TASK, SEGMENT, NEW = KINDS = ("task", "segment", "new")


class Split(NamedTuple):
    """What a task's errors are, as shares of all samples: confusion within what was known when the task was learned, or
    taken by classes that came later. Their sum is the error rate, or the share of newly wrong samples."""

    within: float
    taken_by_new: float


@dataclass(frozen=True)
class Promise:
    """One row of the table: the limit of a task (or a segment of the data), what was measured, and the verdict.

    kind: "task", "segment" or "new". written: the limit as stated, None for a new task without one.
    limit, then, now, low, high: in `unit`, where "error" is an error rate as a fraction, and "loss" a mean loss.
    then: the value at the reference, on the same samples. low, high: hold together with those of all other rows, and
        may end at the limit where that is kept or broken; there is no high where losses reach the clip.
    verdict: kept, BROKEN, undecided, no witnesses; of a new task learned, NOT LEARNED; of a segment that no sample so
        far belongs to, no samples yet.
    over: how far now is above the limit, in points (error) or in loss; 0 where it isn't.
    wants: how many samples would decide, None where it is decided or a million would not do.
    within, taken_by_new: errors as shares of the samples, by what was predicted instead (`Split`).
    paired: the limit compares with `then`; low and high are then the bounds of the change, added to what was.
    steered: measured on samples that steered training; nothing is certified then.
    perhaps_seen: measured on adopted samples that the network may have been trained on: they can break a limit, and
        can't show that it is kept.
    groups: how many groups (patients, speakers) the samples are of, where groups are counted. All values are means over
        groups then, and `wants` is a number of groups.
    clip: losses count up to here in low, high and the verdict; None for error rates. beyond: samples that reach it.
    why_none: why there can't be any samples, where there are none and nobody can change that.
    number: of the task, from 0 on, where it is known; two tasks may have one name.
    stored: the error of its replayed samples, where the row is BROKEN and the network knows them by heart; weights (so
        duals) hardly help then.
    advice: what could be done about it: the words of who asked, then, where it is BROKEN, the numbers of `remedies`.
    """

    task: str
    kind: str
    written: str | None
    limit: float | None
    unit: str
    then: float | None
    now: float | None
    low: float | None
    high: float | None
    samples: int
    verdict: str
    over: float = 0.0
    wants: int | None = None
    within: float | None = None
    taken_by_new: float | None = None
    paired: bool = False
    steered: bool = False
    advice: tuple[str, ...] = ()
    groups: int | None = None
    perhaps_seen: bool = False
    clip: float | None = None
    beyond: int = 0
    why_none: str = ""
    number: int | None = None
    stored: float | None = None

    def as_json(self) -> dict[str, Any]:
        return vars(self) | {"advice": list(self.advice)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Promise:
        return cls(**{**content, "advice": tuple(content["advice"])})

    @property
    def sentence(self) -> str:
        """The verdict with its numbers, as tables have it.

        >>> row = Promise("a", "task", "+2pt", 0.06, "error", 0.04, 0.09, 0.064, 0.127, 400, BROKEN, 3.2)
        >>> row.sentence
        'BROKEN by 3.2 points'
        """
        said = "; ".join([self._finding(), *([", ".join(self.advice)] if self.advice else [])])
        return f"{said} (steered on these)" if self.steered else said

    def _finding(self) -> str:
        if self.verdict == UNDECIDED and self.unit == "error" and self.limit is not None and self.limit >= 1:
            had = "" if self.then is None else f" (it had {100 * self.then:.1f} % then)"
            return f"{UNDECIDED}: its limit allows every error{had}; a stricter one can be judged"
        if self.verdict == UNDECIDED and self.perhaps_seen and self.wants is None:
            return f"{UNDECIDED}: the network may have been trained on these samples; adopt others with unseen=True"
        if self.verdict == UNDECIDED and self.beyond and self.clip is not None and self.wants is None:
            found = f"{self.beyond:,} of {self.samples:,} losses are {self.clip:.4g} or more"
            return f"{UNDECIDED}: {found}; what lies beyond can't be bounded"
        if self.verdict == UNDECIDED:
            what, unit = "samples" if self.steered else "witnesses", ""
            if self.groups is not None:
                what, unit = f"{what} of {self.groups} groups", " groups"
            decide = f"about {_rounded(self.wants)}{unit} would decide" if self.wants else "too near the limit to tell"
            return f"{UNDECIDED}: {self.samples} {what}; {decide}"
        if self.verdict == NO_WITNESSES:
            return f"{UNDECIDED}: {NO_WITNESSES}; {self.why_none or 'more memory, or witness=, gives some'}"
        if self.verdict not in (BROKEN, NOT_LEARNED):
            return self.verdict
        size = f"{self.over:.1f} points" if self.unit == "error" else f"{self.over:.3g}"
        if self.verdict == NOT_LEARNED:
            return f"{NOT_LEARNED}: {size} above {'its limit' if self.written else self._bar()}"
        return f"{BROKEN} by {size}{self._taken()}{self._by_heart()}"

    def _bar(self) -> str:
        """What a new task must reach where nothing is stated."""
        if self.limit is None:
            return "half-way from chance"
        value = f"{100 * self.limit:.1f} %" if self.unit == "error" else f"{self.limit:.3g}"
        return f"{value}, half-way from chance"

    def _by_heart(self) -> str:
        if self.stored is None:
            return ""
        return f"; {100 * self.stored:.1f} % on stored samples, learned by heart: weights hardly help"

    def _taken(self) -> str:
        if self.taken_by_new is None or self.unit != "error":
            return ""
        taken = 100 * self.taken_by_new
        return f" ({taken:.1f} points of error are old samples called new)"


def _rounded(number: int) -> str:
    """Two digits of a number that is a rough one."""
    return f"{round(number, 2 - len(str(number))):,}"
