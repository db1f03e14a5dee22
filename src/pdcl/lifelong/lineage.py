"""What a learner has learned: each task with its data, settings and result, and a keyed hash of every sample."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.judging.table import Promises
from pdcl.lifelong.entry import ADOPTED, LEARNED, newest_promises
from pdcl.lifelong.owners import Owners
from pdcl.lifelong.references import References
from pdcl.streams.data import Data, everything
from pdcl.streams.encoding import leaf_parts
from pdcl.streams.hashes import CHUNK, name_hashes, new_key, sample_hashes
from pdcl.streams.readers import read_ahead
from pdcl.streams.task import Spec, Stream, Task
from pdcl.trees import flatten

# Of past entries only the worst broken tolerances are kept, so that an entry's size doesn't grow with the tasks.
WORST = 5
ROWS = 12
# What blake2b takes.
LONGEST_KEY = 64


class Hashes:
    """A set of hashes. Adding is cheap; they are sorted when they are read."""

    def __init__(self, first: Tensor | None = None) -> None:
        self._parts = [] if first is None else [first]

    def add(self, more: Tensor) -> None:
        self._parts = [*self._parts, more]

    def all(self) -> Tensor:
        """(n,) int64, each once, sorted."""
        if len(self._parts) != 1:
            self._parts = [torch.cat([torch.zeros(0, dtype=torch.int64), *self._parts]).unique()]
        return self._parts[0]

    def __copy__(self) -> Hashes:
        copied = Hashes()
        copied._parts = list(self._parts)
        return copied


@dataclass
class Lineage:
    """Entries in order; `samples` and `groups` are hashes under `key`. `states` are ids of what was saved of it."""

    key: bytes = field(default_factory=new_key)
    entries: list[dict[str, Any]] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    pending: list[Task] = field(default_factory=list)
    seen: Hashes = field(default_factory=Hashes)
    named: Hashes = field(default_factory=Hashes)
    references: References = field(default_factory=References)
    owners: Owners = field(default_factory=Owners)

    @property
    def samples(self) -> Tensor:
        """A hash of every sample of the tasks whose samples are hashed so far (`settle`)."""
        return self.seen.all()

    @property
    def groups(self) -> Tensor:
        return self.named.all()

    def note(self, task: Task, spec: Spec, settings: dict[str, Any], result: dict[str, Any], how: str) -> None:
        """A task was learned. Its samples are hashed when they are first asked for, so that a run doesn't wait."""
        self.pending.append(task)
        if self.entries:
            last = self.entries[-1]
            self.entries[-1] = {**last, "result": _shortened(last["result"])}
            settings = last["settings"] if last["settings"] == settings else settings
        self.entries.append(
            {
                "task": task.index,
                "name": task.name,
                "how": how,
                "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "samples": len(task.data),
                "classes": class_counts(task.data.targets, spec),
                "settings": settings,
                "result": result,
            }
        )

    def note_task(self, task: Task, stream: Stream, settings: dict[str, Any], result: dict[str, Any]) -> None:
        """A task of a stream was learned and measured."""
        self.note(task, stream.spec, settings, result, LEARNED)
        self._note_groups_of(task, stream)

    def _note_groups_of(self, task: Task, stream: Stream) -> None:
        if task.data.groups is not None:
            self.note_groups(stream.group_names(task.data.groups.unique()))

    def resume(self, entries: list[dict[str, Any]], stream: Stream, tasks: Sequence[Task]) -> None:
        """Take over entries on these tasks of the stream."""
        check_entries(entries)
        self.entries, self.pending = list(entries), list(tasks)
        for task in tasks:
            self._note_groups_of(task, stream)

    def note_change(self, task: int, name: str, result: dict[str, Any], how: str) -> None:
        """Note a change without new samples: a reference was moved, or a task was rolled back."""
        # Samples of tasks that wait are hashed first: they belong to entries before this one.
        self.settle()
        self.entries.append(
            {
                "task": task,
                "name": name,
                "how": how,
                "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "samples": 0,
                "classes": {},
                "settings": {},
                "result": result,
            }
        )

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """Entries of the tasks that the model has learned or adopted, in their order."""
        return [entry for entry in self.entries if entry["how"] in (LEARNED, ADOPTED)]

    @property
    def promises(self) -> Promises | None:
        """The table of all limits after the newest task."""
        return newest_promises(self.entries)

    def settle(self) -> Lineage:
        """Hash the samples of tasks learned since the last time."""
        while self.pending:
            task = self.pending[0]
            hashes, content = both_hashes(task.data, self.key)
            self.seen.add(hashes.unique())
            entry = next(e for e in reversed(self.tasks) if e["task"] == task.index)
            entry["data"] = content
            del self.pending[0]
        return self

    def note_groups(self, names: Any) -> None:
        self.named.add(name_hashes(dict.fromkeys(names), self.key))

    def as_json(self) -> dict[str, Any]:
        """The tasks, and how many samples their hashes stand for."""
        return {"tasks": self.settle().entries, "samples": len(self.samples), "groups": len(self.groups)}

    def state_dict(self) -> dict[str, Any]:
        """Settings stand once where they are equal; an entry has their number in `settings`."""
        self.settle()
        entries, settings = _numbered(self.entries)
        return {
            "key": self.key.hex(),
            "entries": entries,
            "settings": settings,
            "samples": self.samples,
            "groups": self.groups,
            "states": self.states,
            "references": self.references.state_dict(),
            "owners": {"samples": self.owners.samples, "names": self.owners.names},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Lineage:
        """A lineage as `state_dict` gave it; older ones have each entry's settings in the entry."""
        known = state.get("settings", [])
        entries = [_with_settings(entry, known) for entry in state["entries"]]
        check_entries(entries)
        hashes = Hashes(state["samples"]), Hashes(state["groups"])
        owners = Owners(**state.get("owners", {}))
        references = References.from_state(state.get("references"))
        key = bytes.fromhex(state["key"])
        if len(key) > LONGEST_KEY:
            raise UsageError(f"the key of its hashes has {len(key)} bytes; at most {LONGEST_KEY} are one")
        return cls(key, entries, list(state["states"]), [], *hashes, references, owners)


def _numbered(entries: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Entries with a number for their settings, and the settings by number."""
    found: list[dict[str, Any]] = []
    numbered = []
    for entry in entries:
        if not found or found[-1] != entry["settings"]:
            found.append(entry["settings"])
        numbered.append({**entry, "settings": len(found) - 1})
    return numbered, found


def _with_settings(entry: dict[str, Any], known: list[dict[str, Any]]) -> dict[str, Any]:
    number = entry["settings"]
    return {**entry, "settings": known[number]} if isinstance(number, int) else entry


def _shortened(result: dict[str, Any]) -> dict[str, Any]:
    """What stays of a result once a newer one is there: of many tasks those that are worst off."""
    table = result.get("promises")
    if table is not None and len(table["rows"]) > ROWS:
        rows = table["rows"]
        worst = sorted(range(len(rows)), key=lambda k: -(rows[k]["over"] or 0.0))[:ROWS]
        result = {**result, "promises": {**table, "rows": [rows[k] for k in sorted(worst)]}}
    over = result.get("over_tolerance", [])
    if len(over) <= WORST:
        return result
    worst = sorted(over, key=lambda each: each["tolerance"] - each["reached"])[:WORST]
    return {**result, "over_tolerance": worst, "over_tolerance_tasks": len(over)}


def class_counts(targets: Tensor, spec: Spec) -> dict[str, int]:
    """Samples per label, by the user's names; {} where targets are no classes."""
    if spec.kind != "classification":
        return {}
    counts = Counter(targets.tolist())
    return {str(spec.labels[c] if c < len(spec.labels) else c): counts[c] for c in sorted(counts)}


def both_hashes(data: Data, key: bytes) -> tuple[Tensor, str]:
    """A hash per sample, (n,) int64, and the sha256 of all inputs and targets in order, from one pass."""
    digest, each = hashlib.sha256(), [torch.zeros(0, dtype=torch.int64)]
    for x, y in read_ahead(data.fetch, everything(data).split(CHUNK), ahead=1):
        each.append(sample_hashes(x, key))
        for leaf in (*(leaf for _, leaf in sorted(flatten(x).items())), y):
            for part in leaf_parts(leaf):
                digest.update(part)
    return torch.cat(each), f"sha256:{digest.hexdigest()}"


def check_entries(entries: Any) -> None:
    """Refuse a list of tasks that isn't one, before a run goes on with it."""
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or not {"task", "name", "how", "settings", "result"} <= entry.keys():
            raise UsageError(f"entry {place} of the tasks learned is damaged: {entry!r:.60}")
        if not isinstance(entry["result"], dict):
            raise UsageError(f"entry {place} of the tasks learned has no result: {entry['result']!r:.60}")
