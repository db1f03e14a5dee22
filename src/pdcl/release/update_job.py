"""One update before anything is learned: the new samples, their name, and what is asked of the result."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pdcl.errors import UsageError
from pdcl.given import short
from pdcl.lifelong.audit_place import beside, recorded_in
from pdcl.lifelong.audit_split import Planned
from pdcl.lifelong.learner import Learner
from pdcl.lifelong.rows import is_table, task_arrays, task_of
from pdcl.lifelong.save import KIND
from pdcl.release.gate import model_hash
from pdcl.running.load import load
from pdcl.storage.cache import LEDGER
from pdcl.storage.vault import Vault
from pdcl.streams.audits import SAMPLES, Audit, as_audit
from pdcl.streams.samples import Samples, read

LIMITS = ("max_drop", "max_error", "max_loss", "min_sensitivity", "min_specificity")


@dataclass(frozen=True)
class Job:
    """One update: what is learned under which name, and what is asked of the result."""

    model: Path
    name: str
    audit: Path | None
    samples: Samples
    asked: dict[str, Any]
    evidence: Path | None
    keep_samples: bool
    accepted: str | None = None

    @property
    def data(self) -> str:
        return data_hash(self.samples)

    def key(self, old: Learner, planned: Planned | None, training: dict[str, Any]) -> str:
        """What makes a candidate the same one: data, base, what is set aside, and how it is trained."""
        whole = None if self.audit is None else as_audit(self.audit) if planned is None else planned.whole()
        parts = [
            self.name,
            self.data,
            model_hash(old),
            old.lineage.states,
            None if whole is None else whole.hash(),
            {k: repr(v) for k, v in training.items()},
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def about(self, key: str) -> dict[str, Any]:
        """What the candidate's entry says while it is judged; its evidence is recognised by it."""
        about = {"key": key, "name": self.name, "data": self.data, "asked": self.stated}
        about |= {} if self.accepted is None else {"accept_undecided": self.accepted}
        as_read: dict[str, Any] = json.loads(json.dumps(about, default=repr))
        return as_read

    @property
    def stated(self) -> dict[str, Any]:
        """What is asked of the gate."""
        return {name: value for name, value in self.asked.items() if value is not None}

    @property
    def gated(self) -> bool:
        """Whether a limit is asked of the gate; otherwise the model's own limits decide alone."""
        return any(self.asked[name] is not None for name in LIMITS)

    def examined(self, planned: Planned | None) -> Audit:
        """The audit set that the candidate is judged on, with its ledger in its place."""
        assert self.audit is not None
        whole = as_audit(self.audit) if planned is None else planned.whole()
        return replace(whole, ledger=self.audit / LEDGER)


def rows_of(path: Path, data: Any, groups: str | None, handed: dict[str, Any]) -> tuple[Samples, str | None]:
    """The new samples, and the name that a table gives them."""
    table = _table(path, data, groups, handed)
    return (samples_of(data, groups), None) if table is None else table


def _table(path: Path, data: Any, groups: str | None, handed: dict[str, Any]) -> tuple[Samples, str | None] | None:
    """The samples and the name of data that are rows of a table, read as the model reads them; None for arrays."""
    if not is_table(data):
        return None
    if groups is not None:
        raise UsageError(f"groups={groups!r} has no effect on a table: the model knows its column of groups")
    learner = load(path, **copy.deepcopy(handed))
    task = task_of(learner, data)
    arrays = task_arrays(learner, task)
    return read(arrays.pop("x"), arrays.pop("y"), where=task.rows.place, **arrays), task.name


def samples_of(data: Any, groups: str | None) -> Samples:
    """The new data; `groups` names the column whose samples aren't independent."""
    if groups is not None and not isinstance(groups, str):
        raise UsageError(f"groups={short(groups)} must be the name of a column of the data")
    if isinstance(data, str | Path) and not Path(data).exists():
        raise UsageError(
            f"{data}: there is no such directory or file; data are arrays x and y in {SAMPLES} or any .npz"
        )
    held = as_audit(data)
    who = None if groups is None else held.column(groups, f"groups={groups}")
    columns = {name: values for name, values in held.columns.items() if name not in (groups, "task")}
    return read(held.x, held.y, who, where=held.name, columns=columns or None)


def data_hash(samples: Samples) -> str:
    """sha256 of inputs, targets, groups and columns, whatever the order of the rows."""
    columns = dict(samples.columns)
    if samples.groups is not None:
        columns["group"] = np.asarray([str(group) for group in samples.groups.tolist()])
    inputs: Any = samples.inputs
    return Audit("data", inputs, samples.targets, columns).hash()


def own_audit_set(path: Path, handed: dict[str, Any]) -> Path | None:
    """The audit set that the model filled last, if it lies beside the model."""
    if not Vault(path, KIND).exists():
        return None
    entries = load(path, **copy.deepcopy(handed)).lineage.tasks
    noted = [found for entry in entries if (found := recorded_in(entry)) is not None]
    return beside(path, *noted[-1]) if noted else None
