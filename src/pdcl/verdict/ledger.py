"""Every look at an audit set, in a file beside it: append-only lines, each holding the hash of the one before.

Asking until one answer is PASS makes wrong PASSes likely (twelve candidates exactly at the limit: 41 %). So the first
look fixes how many there will ever be and the confidence of all of them together; each gets (1 − confidence) / looks as
its level (Bonferroni). A look is written down before its answer is known. The same question again is the same look.

The chain shows any change within it. Cutting lines off its end, or starting anew, shows against copies of it: every
evidence folder holds one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdcl.errors import Locked, PdclError, UsageError
from pdcl.given import number_of, whole_of
from pdcl.storage.disk import append_line, read_regular, reported
from pdcl.storage.locking import Lock

PATIENCE_SECONDS = 60.0
FIRST = "0" * 64
BEGINS = b'{"entry": '
RESTORE = "restore it from an evidence folder, which holds a copy, or use audit data that no look has seen"


class LedgerError(PdclError):
    """The ledger doesn't allow this look, or was changed."""


@dataclass(frozen=True)
class Look:
    """Look `number` of `looks`. `confidence` is that of all of them; `level` what this one may err by."""

    number: int
    looks: int
    confidence: float
    repeated: bool = False

    @property
    def level(self) -> float:
        return level_of(self.confidence, self.looks)


def level_of(confidence: float, looks: int = 1) -> float:
    """(1 − confidence) / looks, without the dust of binary fractions.

    >>> level_of(0.95)
    0.05
    """
    return round(1 - confidence, 12) / looks


class Ledger:
    """The looks at one audit set."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def entries(self) -> list[dict[str, Any]]:
        """All entries, after checking the chain."""
        if not self.path.exists():
            return []
        return checked(read_regular(self.path), str(self.path))

    def look(self, question: Mapping[str, Any], looks: int | None = None, confidence: float | None = None) -> Look:
        """Write down a look before it is taken; the first one fixes `looks` (1) and `confidence` (0.95)."""
        _check(looks, confidence)
        with self._alone():
            entries = self.entries()
            plan = self._plan(entries, looks, confidence)
            return self._taken(entries, plan, dict(question))

    def planned(self, looks: int | None = None, confidence: float | None = None) -> tuple[int, float]:
        """How many looks there will ever be and the confidence of all: as the first look fixed them, else as given."""
        _check(looks, confidence)
        plan = self._plan(self.entries(), looks, confidence)
        return plan["looks"], plan["confidence"]

    def _plan(self, entries: list[dict[str, Any]], looks: int | None, confidence: float | None) -> dict[str, Any]:
        plan = next((entry for entry in entries if entry["kind"] == "plan"), None)
        if plan is None:
            return {"kind": "plan", "looks": looks or 1, "confidence": confidence or 0.95}
        self._agree(plan, looks, confidence)
        return plan

    def _taken(self, entries: list[dict[str, Any]], plan: dict[str, Any], question: dict[str, Any]) -> Look:
        past = [entry for entry in entries if entry["kind"] == "look"]
        for entry in past:
            if entry["question"] == _plain(question):
                return Look(entry["look"], plan["looks"], plan["confidence"], repeated=True)
        if len(past) >= plan["looks"]:
            raise LedgerError(
                f"all {plan['looks']} planned looks at this audit set are taken ({self.path}); a further one needs "
                "audit data that no look has seen. Plan more at its first use: --looks N"
            )
        number = len(past) + 1
        look = {"kind": "look", "look": number, "question": question}
        self._append(entries, *([] if entries else [plan]), look)
        return Look(number, plan["looks"], plan["confidence"])

    def note(self, look: Look, verdict: Mapping[str, Any]) -> None:
        """Write down what a look showed, once."""
        with self._alone():
            entries = self.entries()
            if not any(entry["kind"] == "verdict" and entry["look"] == look.number for entry in entries):
                self._append(entries, {"kind": "verdict", "look": look.number, **verdict})

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8") if self.path.exists() else ""

    def _agree(self, plan: Mapping[str, Any], looks: int | None, confidence: float | None) -> None:
        for name, given in (("looks", looks), ("confidence", confidence)):
            if given is not None and given != plan[name]:
                text = f"{self.path} fixed {name}={plan[name]} at the first look at this audit set, not {given}"
                raise LedgerError(f"{text}; leave --{name} out, or use other audit data")

    def _append(self, entries: list[dict[str, Any]], *contents: dict[str, Any]) -> None:
        """All in one write: a plan without its first look is a ledger that was cut."""
        lines, entries = [], list(entries)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for content in contents:
            previous = entries[-1]["hash"] if entries else FIRST
            entry = _plain({"entry": len(entries), "time": moment, **content, "previous": previous})
            entry["hash"] = digest(entry)
            entries.append(entry)
            lines.append(json.dumps(entry, ensure_ascii=False))
        with reported(self.path):
            append_line(self.path, "\n".join(lines).encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time; others wait, since a look takes no time."""
        with reported(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        lock, patience = Lock(self.path.parent), time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                lock.acquire()
                break
            except Locked:
                if time.monotonic() > patience:
                    raise
                time.sleep(0.02)
        try:
            yield
        finally:
            lock.release()


def checked(content: bytes, where: str) -> list[dict[str, Any]]:
    """The entries of a ledger. A last line that a crash cut short was never confirmed, and is left out."""
    entries: list[dict[str, Any]] = []
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines()):
        try:
            entry = json.loads(line)
            whole = entry["hash"] == digest({k: v for k, v in entry.items() if k != "hash"})
            follows = entry["previous"] == (entries[-1]["hash"] if entries else FIRST) and entry["entry"] == number
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerError(f"{where}: line {number + 1} is no ledger entry ({error})") from error
        if not (whole and follows):
            raise LedgerError(f"{where}: line {number + 1} was changed, or lines before it were removed")
        entries.append(entry)
    rest = content[content.rfind(b"\n") + 1 :]
    if rest[: len(BEGINS)] != BEGINS[: len(rest)]:
        raise LedgerError(f"{where}: its last line is no ledger entry; {RESTORE}")
    if [entry.get("kind") for entry in entries] == ["plan"]:
        raise LedgerError(f"{where}: it plans looks and holds none, so that lines were removed; {RESTORE}")
    return entries


def digest(content: Mapping[str, Any]) -> str:
    """sha256 of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """As it will be read back."""
    found: dict[str, Any] = json.loads(json.dumps(content, ensure_ascii=False))
    return found


# More than anyone takes, and their share of the error is a number still.
MOST_LOOKS = 1_000_000


def _check(looks: int | None, confidence: float | None) -> None:
    if looks is not None:
        whole_of(looks, "looks", 1, MOST_LOOKS)
    if confidence is not None and not 0.5 < number_of(confidence, "confidence") < 1:
        raise UsageError(f"confidence={confidence} must lie between 0.5 and 1: 0.95 is 95 %")
