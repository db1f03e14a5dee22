"""What `learn`, `adopt` and `rebase` give back: an entry of the lineage, with its promises as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pdcl.lifelong.feasible import Chosen
from pdcl.promises.table import Promises

LEARNED, ADOPTED, REBASED, ROLLED_BACK = "learned", "adopted", "rebased", "rolled back"
REFUSED, FORGOTTEN = "refused", "forgotten"


class Entry(dict[str, Any]):
    """An entry of the lineage, as a dict: task, name, how, when, samples, classes, settings, result, data.

    how: learned, adopted, rebased, rolled back, refused (an update that the gate didn't let pass), or forgotten.
    """

    @property
    def promises(self) -> Promises | None:
        """What became of every limit with this task; None where none is stated."""
        return promises_of(self)

    @property
    def rolled_back(self) -> bool:
        """Whether the learner was put back to what it was before, since a limit was broken."""
        return bool(self["how"] == ROLLED_BACK)

    def __repr__(self) -> str:
        told = [f"task {self['task']} ({self['name']}) {self['how']}"]
        if self["samples"]:
            told.append(f"{self['samples']:,} samples")
        if (score := self["result"].get("test")) is not None:
            told.append(f"test score {score:.4g}")
        if candidate := self["result"].get("candidate"):
            told += [said] if (said := Chosen(**{**candidate, "over": tuple(candidate["over"])}).sentence) else []
        table = self.promises
        return ", ".join(told) + ("" if table is None else f"\n{table}")


def promises_of(entry: Mapping[str, Any]) -> Promises | None:
    """The table that an entry holds."""
    found = entry["result"].get("promises")
    return None if found is None else Promises.from_json(found)


def newest_promises(entries: Iterable[Mapping[str, Any]]) -> Promises | None:
    """The table of the last task that is part of the model."""
    kept = [entry for entry in entries if entry["how"] in (LEARNED, ADOPTED)]
    return promises_of(kept[-1]) if kept else None
