"""What a learner has learned: each task with its data, settings and result, and a keyed hash of every sample."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from pdcl.streams.data import Data, everything
from pdcl.streams.encoding import leaf_parts
from pdcl.streams.hashes import CHUNK, data_hashes, name_hashes, new_key
from pdcl.streams.task import Spec, Task
from pdcl.trees import flatten


def _none() -> Tensor:
    return torch.zeros(0, dtype=torch.int64)


@dataclass
class Lineage:
    """Entries in order; `samples` and `groups` are hashes under `key`. `states` are ids of what was saved of it."""

    key: bytes = field(default_factory=new_key)
    entries: list[dict[str, Any]] = field(default_factory=list)
    samples: Tensor = field(default_factory=_none)
    groups: Tensor = field(default_factory=_none)
    states: list[str] = field(default_factory=list)
    pending: list[Task] = field(default_factory=list)

    def note(self, task: Task, spec: Spec, settings: dict[str, Any], result: dict[str, Any], how: str) -> None:
        """A task was learned. Its samples are hashed when they are first asked for, so that a run doesn't wait."""
        self.pending.append(task)
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

    def settle(self) -> Lineage:
        """Hash the samples of tasks learned since the last time."""
        while self.pending:
            task = self.pending.pop(0)
            self.samples = torch.cat([self.samples, data_hashes(task.data, self.key)]).unique()
            entry = next(e for e in self.entries if e["task"] == task.index)
            entry["data"] = content_hash(task.data)
        return self

    def note_groups(self, names: Any) -> None:
        self.groups = torch.cat([self.groups, name_hashes(dict.fromkeys(names), self.key)]).unique()

    def as_json(self) -> dict[str, Any]:
        """The tasks, and how many samples their hashes stand for."""
        return {"tasks": self.settle().entries, "samples": len(self.samples), "groups": len(self.groups)}

    def state_dict(self) -> dict[str, Any]:
        self.settle()
        return {
            "key": self.key.hex(),
            "entries": self.entries,
            "samples": self.samples,
            "groups": self.groups,
            "states": self.states,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Lineage:
        key = bytes.fromhex(state["key"])
        return cls(key, list(state["entries"]), state["samples"], state["groups"], list(state["states"]))


def class_counts(targets: Tensor, spec: Spec) -> dict[str, int]:
    """Samples per label, by the user's names; {} where targets are no classes."""
    if spec.kind != "classification":
        return {}
    counts = Counter(targets.tolist())
    return {str(spec.labels[c] if c < len(spec.labels) else c): counts[c] for c in sorted(counts)}


def content_hash(data: Data) -> str:
    """sha256 of all inputs and targets in order."""
    digest = hashlib.sha256()
    for index in everything(data).split(CHUNK):
        x, y = data.fetch(index)
        for leaf in (*(leaf for _, leaf in sorted(flatten(x).items())), y):
            for part in leaf_parts(leaf):
                digest.update(part)
    return f"sha256:{digest.hexdigest()}"
