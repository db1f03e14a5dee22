"""Whether an audit set has samples of all that the model learned, however its samples are divided into groups.

A class has, where some sample has its label. A task has, where the column `task` names it. Without that column a task
is known by a class that it alone has taught. Tasks that share all their classes with others (the same labels, month
after month) can't be told apart then, so nobody knows whether an old month is in the audit set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner
    from pdcl.streams.audits import Audit
    from pdcl.streams.samples import Column

SHOWN = 10
NAMES = ("unseen", "unclear", "untraceable")


@dataclass(frozen=True)
class Coverage:
    """What was learned and has no audit sample; tasks of which it can't be known; samples that audit data may be among
    and nothing shows it. Each leaves a PASS undecided."""

    unseen: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    untraceable: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, question: Mapping[str, Any]) -> Coverage:
        return cls(*(tuple(question.get(name, ())) for name in NAMES))

    def as_json(self) -> dict[str, list[str]]:
        held = zip(NAMES, (self.unseen, self.unclear, self.untraceable), strict=True)
        return {name: list(each) for name, each in held if each}

    def __bool__(self) -> bool:
        """Whether all is covered."""
        return not (self.unseen or self.unclear or self.untraceable)

    @property
    def reasons(self) -> list[str]:
        return [
            *(f"no audit samples of {each}" for each in self.unseen),
            *(f"unknown whether any audit sample is of {each}" for each in self.unclear),
            *(f"audit samples may be among the {each}" for each in self.untraceable),
        ]

    @property
    def notes(self) -> list[str]:
        found = []
        if self.unseen:
            found.append(f"UNDECIDED at best: no audit samples of {listed(self.unseen)}, which the model learned.")
        if self.unclear:
            found.append(
                f"UNDECIDED at best: whether any audit sample is of {listed(self.unclear)} can't be known, since no "
                "class is of that task alone; say it with a column task."
            )
        found += [f"UNDECIDED at best: audit samples may be among the {each}." for each in self.untraceable]
        return found


def coverage(learner: Learner, audit: Audit, truth: Column | None, labels: Sequence[str]) -> Coverage:
    """truth: the class of each audit sample, None where the model tells none apart. labels: names of its outputs."""
    taught = {str(entry["name"]): set(entry.get("classes") or {}) for entry in learner.lineage.tasks}
    seen = set() if truth is None else {labels[c] for c in set(truth.tolist())}
    # Verdicts on logs name coverage too, without torch.
    from pdcl.release.leakage import untraceable

    missing, unclear = _tasks(taught, audit.columns.get("task"), seen)
    ordered = sorted(set().union(*taught.values()) - seen, key=labels.index) if truth is not None else []
    unseen = [*(f"task {name}" for name in missing), *(f"class {name}" for name in ordered)]
    return Coverage(tuple(unseen), tuple(f"task {name}" for name in unclear), tuple(untraceable(learner)))


def _tasks(taught: dict[str, set[str]], column: Column | None, seen: set[str]) -> tuple[list[str], list[str]]:
    """Tasks without samples, and those of which it can't be known."""
    if column is not None:
        there = {str(value) for value in column.tolist()}
        return [name for name in taught if name not in there], []
    if len(taught) < 2:
        return [], []
    teachers = Counter(label for classes in taught.values() for label in classes)
    alone = {name: {label for label in classes if teachers[label] == 1} for name, classes in taught.items()}
    missing = [name for name in taught if alone[name] and not alone[name] & seen]
    return missing, [name for name in taught if not alone[name]]


def listed(names: Sequence[str]) -> str:
    return f"{len(names)} ({', '.join(names[:SHOWN])}{' …' if len(names) > SHOWN else ''})"
