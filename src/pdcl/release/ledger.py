"""Every look at an audit set, in a file beside it: append-only lines, each holding the hash of the one before.

Asking until one answer is PASS makes wrong PASSes likely (twelve candidates exactly at the limit: 41 %). So the first
look fixes how many there will ever be and the confidence of all of them together; each gets (1 − confidence) / looks as
its level (Bonferroni). A look is written down before its answer is known. The same question again is the same look.

A look holds the marks of its samples, so that it counts for any set that shares one (`looks`). What other ledgers know
of the same samples is written into this one first.

The chain shows any change within it. Cutting lines off its end, or starting anew, shows against copies of it: every
evidence folder holds one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pdcl.errors import Locked
from pdcl.release.looks import (
    LedgerError,
    Look,
    Sample,
    Taken,
    check_plan,
    counted,
    digest,
    of_same_data,
    planned,
    taken,
)
from pdcl.release.marks import Marks, difference
from pdcl.storage.disk import append_line, read_regular, reported
from pdcl.storage.locking import Lock

PATIENCE_SECONDS = 60.0
FIRST = "0" * 64
LARGEST = 2**28
BEGINS = b'{"entry": '
RESTORE = "restore it from an evidence folder, which holds a copy, or use audit data that no look has seen"
ALL = Sample()


class Ledger:
    """The looks at one audit set. stranger: it lies in a model's directory, which may come from anyone."""

    def __init__(self, path: str | Path, stranger: bool = False) -> None:
        self.path, self.stranger = Path(path), stranger

    def entries(self) -> list[dict[str, Any]]:
        """All entries, after checking the chain."""
        if not self.path.exists():
            return []
        return checked(read_regular(self.path, LARGEST), str(self.path))

    def taken(self, near: bool = False) -> list[Taken]:
        return taken(self.entries(), self.path, near, not self.stranger)

    def look(
        self,
        question: Mapping[str, Any],
        looks: int | None = None,
        confidence: float | None = None,
        sample: Sample = ALL,
        others: Sequence[Taken] = (),
        stated: Mapping[str, Any] | None = None,
    ) -> Look:
        """Write down a look before it is taken; the first one fixes `looks` (1) and `confidence` (0.95).

        others: looks that other ledgers know of; they count, if they are at the same data. stated: the plan, which the
        first look writes down, and each later one that finds it changed.
        """
        check_plan(looks, confidence)
        question = _plain(question)
        with self._alone():
            past = self.past(sample, others)
            look = counted(question, sample, past, looks, confidence)
            self._write([*past, Taken(question, look, sample.marks, self.path)])
            if stated is not None:
                self._state(_plain(stated), look.number)
            return look

    def planned(
        self,
        looks: int | None = None,
        confidence: float | None = None,
        sample: Sample = ALL,
        others: Sequence[Taken] = (),
    ) -> tuple[int, float]:
        """How many looks there will ever be and the confidence of all."""
        return planned(self.past(sample, others), looks, confidence)

    def past(self, sample: Sample = ALL, others: Sequence[Taken] = ()) -> list[Taken]:
        """Looks at these samples, here and among others."""
        return of_same_data(sample, [*self.taken(near=True), *others])

    def learn_of(self, looks: Sequence[Taken], stated: Mapping[str, Any] | None = None) -> None:
        """Write down looks that were taken elsewhere and aren't here, and the plan of the newest."""
        with self._alone():
            self._write(looks)
            if stated is not None:
                self._state(_plain(stated), max(each.look.number for each in looks))

    def stated(self, sample: Sample = ALL, others: Sequence[Taken] = ()) -> tuple[int, dict[str, Any]] | None:
        """The plan that was stated first, and at which look, as any ledger has it that knows of these looks."""
        keys = {each.look.key for each in self.past(sample, others)}
        places = dict.fromkeys([self.path, *(each.place for each in others if each.look.key in keys)])
        entries = [entry for place in places for entry in Ledger(place).entries() if entry["kind"] == "limits"]
        first = min(entries, key=lambda entry: int(entry["look"]), default=None)
        return None if first is None else (int(first["look"]), first["content"])

    def note(self, look: Look, verdict: Mapping[str, Any]) -> None:
        """Write down what a look showed, once."""
        with self._alone():
            entries = self.entries()
            noted = [entry for entry in entries if entry["kind"] == "verdict"]
            if not any(entry.get("of", look.key) == look.key and entry["look"] == look.number for entry in noted):
                self._append(entries, {"kind": "verdict", "look": look.number, "of": look.key, **verdict})

    def accept(self, look: Look, name: str, why: str) -> None:
        """Write down that somebody went on although this look decided nothing, once."""
        said = {"kind": "accepted", "look": look.number, "of": look.key, "update": name, "why": why}
        with self._alone():
            entries = self.entries()
            if not any(said.items() <= entry.items() for entry in entries):
                self._append(entries, said)

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8") if self.path.exists() else ""

    def _write(self, looks: Sequence[Taken]) -> None:
        entries = self.entries()
        here = taken(entries, self.path)
        known = {each.look.key for each in here}
        fresh = [each for each in looks if each.look.key not in known]
        if not fresh:
            return
        numbers = [entry["entry"] for entry in entries if entry["kind"] == "look"]
        held = {n: each.marks for n, each in zip(numbers, here, strict=True) if each.marks is not None}
        plan = {"kind": "plan", "looks": fresh[0].look.looks, "confidence": fresh[0].look.confidence}
        lines = [] if entries else [plan]
        for each in fresh:
            lines.append(self._line(each, held))
            if each.marks is not None:
                held[len(entries) + len(lines) - 1] = each.marks
        self._append(entries, *lines)

    def _state(self, stated: dict[str, Any], number: int) -> None:
        entries = self.entries()
        known = [entry["content"] for entry in entries if entry["kind"] == "limits"]
        if known[-1:] != [stated]:
            self._append(entries, {"kind": "limits", "look": number, "sha256": digest(stated), "content": stated})

    def _line(self, each: Taken, held: dict[int, Marks]) -> dict[str, Any]:
        about = {"looks": each.look.looks, "confidence": each.look.confidence, "question": each.question}
        samples = {} if each.marks is None else {"samples": difference(each.marks, held)}
        source = {} if each.place == self.path else {"from": str(each.place)}
        return {"kind": "look", "look": each.look.number, **about, **samples, **source}

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
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
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


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """As it will be read back."""
    found: dict[str, Any] = json.loads(json.dumps(content, ensure_ascii=False))
    return found
