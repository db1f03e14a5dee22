"""Which looks are looks at the same data, and what another one may err by.

Two looks are at the same data if they share a sample, or each shares one with a third. So a set that grows, loses
samples, is copied or given as arrays goes on counting, and one whose samples no look has seen begins anew.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pdcl.errors import PdclError, UsageError
from pdcl.given import number_of, whole_of
from pdcl.release.marks import Marks, applied, shared

CONFIDENCE = 0.95
# More than anyone takes, and their share of the error is a number still.
MOST_LOOKS = 1_000_000


class LedgerError(PdclError):
    """The ledger doesn't allow this look, or was changed."""


@dataclass(frozen=True)
class Look:
    """Look `number` of `looks`. `confidence` is that of all of them; `level` what this one may err by. key: which."""

    number: int
    looks: int
    confidence: float
    repeated: bool = False
    key: str = field(default="", repr=False)

    @property
    def level(self) -> float:
        return level_of(self.confidence, self.looks)


def level_of(confidence: float, looks: int = 1) -> float:
    """(1 − confidence) / looks, without the dust of binary fractions.

    >>> level_of(0.95)
    0.05
    """
    return round(1 - confidence, 12) / looks


@dataclass(frozen=True, eq=False)
class Taken:
    """A look that was taken, as a ledger holds it. marks: its samples; None where an older pdcl wrote it.

    place: the ledger. near: it is the ledger of this audit set, whose older looks count whatever their samples were.
    trusted: not from a model's directory, which may be a stranger's.
    """

    question: dict[str, Any]
    look: Look
    marks: Marks | None
    place: Path
    near: bool = False
    trusted: bool = True


@dataclass(frozen=True, eq=False)
class Sample:
    """The samples that a look is to be taken at. marks: None counts all looks of the ledger."""

    marks: Marks | None = None
    audit: str | None = None


def taken(entries: Sequence[Mapping[str, Any]], place: Path, near: bool = False, trusted: bool = True) -> list[Taken]:
    """The looks in a ledger."""
    plan = next((entry for entry in entries if entry.get("kind") == "plan"), {})
    held: dict[int, Marks] = {}
    found = []
    for entry in (each for each in entries if each.get("kind") == "look"):
        try:
            if "samples" in entry:
                held[entry["entry"]] = applied(entry["samples"], held)
            look, question = _written({**plan, **entry})
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
            text = " ".join(str(error).split())
            raise LedgerError(f"{place}: entry {entry['entry']} is no look ({type(error).__name__}: {text})") from error
        found.append(Taken(question, look, held.get(entry["entry"]), place, near, trusted))
    return found


def _written(entry: Mapping[str, Any]) -> tuple[Look, dict[str, Any]]:
    """A look, and what was asked, from a file that anyone may have written."""
    question = dict(entry["question"])
    if not isinstance(question.get("audit", ""), str):
        raise TypeError("the hash of its audit set is none")
    # An older pdcl let half a look be planned.
    number, looks, confidence = int(entry["look"]), math.floor(entry["looks"]), float(entry["confidence"])
    check_plan(looks, confidence)
    return Look(number, looks, confidence, True, digest(question)), question


def of_same_data(sample: Sample, known: Iterable[Taken]) -> list[Taken]:
    """Looks at the same data, each once, whichever ledgers know of it."""
    first: dict[str, Taken] = {}
    for each in known:
        first.setdefault(each.look.key, each)
    left = list(first.values())
    pool, audits, found = sample.marks, {sample.audit}, list[Taken]()
    while near := [each for each in left if _touches(each, pool, audits)]:
        found += near
        left = [each for each in left if all(each is not other for other in near)]
        audits |= {each.question.get("audit") for each in near} - {None}
        new = [each.marks for each in near if each.marks is not None]
        pool = pool if pool is None else np.unique(np.concatenate([pool, *new]))
    return found


def _touches(each: Taken, pool: Marks | None, audits: set[str | None]) -> bool:
    if pool is None or each.marks is None:
        return each.near or each.question.get("audit") in audits - {None}
    return shared(each.marks, pool) > 0


def planned(past: Sequence[Taken], looks: int | None, confidence: float | None) -> tuple[int, float]:
    """How many looks there will ever be and the confidence of all: as the first look fixed them, else as given.

    Where a set joins data of two plans, each look errs by no more than in the stricter one.
    """
    check_plan(looks, confidence)
    for each in past:
        fixed = {"looks": (each.look.looks, looks), "confidence": (each.look.confidence, confidence)}
        for name, (value, given) in fixed.items():
            if given is not None and given != value:
                text = f"{each.place} fixed {name}={value} at the first look at these samples, not {given}"
                raise LedgerError(f"{text}; leave --{name} out, or use other audit data")
    for each in past:
        if confidence is None and not each.trusted and each.look.confidence < CONFIDENCE:
            sure = f"{each.look.confidence:g}"
            raise LedgerError(
                f"{each.place} alone says that looks at these samples have {sure} confidence, and a model's directory "
                f"may not lower it; if you planned that, say --confidence {sure}"
            )
    if not past:
        return int(looks or 1), confidence or CONFIDENCE
    strictest = min(past, key=lambda each: each.look.level)
    return strictest.look.looks, strictest.look.confidence


def counted(
    question: Mapping[str, Any], sample: Sample, past: Sequence[Taken], looks: int | None, confidence: float | None
) -> Look:
    """The look that this question is. The same question again is the same look."""
    many, sure = planned(past, looks, confidence)
    key = digest(question)
    for each in past:
        if each.look.key == key:
            return each.look
    least = min((each.look.looks for each in past), default=many)
    if len(past) >= least:
        raise LedgerError(
            f"{'the one planned look' if least == 1 else f'all {least} planned looks'} at {_these(sample, past)} "
            f"{'is' if least == 1 else 'are'} taken ({_places(past)}); a further one needs "
            "audit data that no look has seen. Plan more at its first use: --looks N"
        )
    return Look(len(past) + 1, many, sure, False, key)


def _these(sample: Sample, past: Sequence[Taken]) -> str:
    seen = [each.marks for each in past if each.marks is not None]
    if sample.marks is None or not seen:
        return "this audit set"
    count = shared(sample.marks, np.concatenate(seen))
    if count == len(sample.marks):
        return "this audit set"
    return f"{count:,} of the {len(sample.marks):,} samples of this audit set" if count else "this audit set"


def _places(past: Sequence[Taken]) -> str:
    return ", ".join(dict.fromkeys(str(each.place) for each in past))


def check_plan(looks: Any, confidence: Any) -> None:
    if looks is not None:
        whole_of(looks, "looks", 1, MOST_LOOKS)
    if confidence is not None and not 0.5 < number_of(confidence, "confidence") < 1:
        raise UsageError(f"confidence={confidence} must lie between 0.5 and 1: 0.95 is 95 %")


def digest(content: Mapping[str, Any]) -> str:
    """sha256 of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
