"""What `learn`, `adopt` and `rebase` give back: an entry of the lineage, with its promises as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pdcl.judging.promise import TASK, Promise
from pdcl.judging.table import Promises
from pdcl.printable import counted, printable

LEARNED, ADOPTED, REBASED, ROLLED_BACK = "learned", "adopted", "rebased", "rolled back"
REFUSED, UNDONE, FORGOTTEN, MERGED = "refused", "undone", "forgotten", "merged"


class Entry(dict[str, Any]):
    """An entry of the lineage, as a dict: task, name, how, when, samples, classes, settings, result, data.

    how: learned, adopted, rebased, rolled back, refused (an update that the gate didn't let pass), undone (an update
    that was rolled back later), forgotten, or merged (with what another learner has seen).
    `repeated`: an earlier call made it, and this one had nothing left to do.
    """

    repeated = False

    @property
    def promises(self) -> Promises | None:
        """What became of every limit with this task; None where none is stated."""
        return promises_of(self)

    @property
    def rolled_back(self) -> bool:
        """Whether the learner was put back to what it was before, since a limit was broken."""
        return bool(self["how"] == ROLLED_BACK)

    def __repr__(self) -> str:
        told = [printable(f"task {self['task']} ({self['name']}) {self['how']}")]
        if self["samples"]:
            told.append(f"{self['samples']:,} samples")
        if (score := self["result"].get("test")) is not None:
            told.append(f"test score {score:.4g}")
        if self["how"] == REBASED:
            told.append(moved(self["result"]))
        table = self.promises
        return ", ".join(told) + ("" if table is None else f"\n{table}")


def decided(entry: Mapping[str, Any]) -> str:
    """Why an update was promoted, refused or accepted by hand, or what was taken back or removed; else nothing.

    >>> decided({"how": FORGOTTEN, "result": {"forgotten": 2}})
    '2 stored samples removed.'
    """
    result, record = entry["result"], entry["result"].get("update") or {}
    if entry["how"] == FORGOTTEN:
        return f"{counted(result['forgotten'], 'stored sample')} removed."
    if entry["how"] == ROLLED_BACK and "undone" in result:
        return f"Rolled back: {result['why'].rstrip('.')}."
    told = [record["why"].rstrip(".")] if record.get("why") else []
    told += [f"Limits changed: {', '.join(record['changed'])}"] if record.get("changed") else []
    told += ["Rolled back later"] if entry["how"] == UNDONE else []
    return " ".join(f"{each}." for each in told)


def promises_of(entry: Mapping[str, Any]) -> Promises | None:
    """The table that an entry holds."""
    found = entry["result"].get("promises")
    return None if found is None else Promises.from_json(found)


def moved(result: Mapping[str, Any]) -> str:
    """The limit before and after a reference was moved.

    >>> moved({"limit": "+2pt", "unit": "error", "old": 0.187, "new": 0.535})
    '+2pt was 18.7 % error and is now 53.5 % error'
    """
    old, new = (f"{100 * value:.1f} % error" if result["unit"] == "error" else f"loss {value:.3g}" for value in
                (result["old"], result["new"]))  # fmt: skip
    return f"{result['limit']} was {old} and is now {new}"


def newest_promises(entries: Iterable[Mapping[str, Any]]) -> Promises | None:
    """The table of the last task that is part of the model; limits that were rebased since wait for the next one."""
    entries = list(entries)
    last = max((place for place, entry in enumerate(entries) if entry["how"] in (LEARNED, ADOPTED)), default=None)
    table = None if last is None else promises_of(entries[last])
    if table is None or last is None:
        return None
    rebased = [entry for entry in entries[last + 1 :] if entry["how"] == REBASED]
    # Older tables have no numbers: there a task goes by its name.
    since = {key: entry["result"] for entry in rebased for key in (entry["task"], str(entry["name"]))}
    keys = [row.task if row.number is None else row.number for row in table]
    rows = [
        _waiting(row, since[key]) if row.kind == TASK and key in since else row
        for row, key in zip(table, keys, strict=True)
    ]
    return replace(table, rows=tuple(rows))


def _waiting(row: Promise, result: Mapping[str, Any]) -> Promise:
    now = float(result["now"])
    return replace(
        row, limit=float(result["new"]), then=now, now=now, low=None, high=None, over=0.0, wants=None, advice=(),
        verdict="rebased: judged after the next task",
    )  # fmt: skip
