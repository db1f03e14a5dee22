"""Part of a task set aside before it is learned, as audit data: in a directory of its own, on a budget of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Subset

from pdcl.errors import UsageError
from pdcl.lifelong.audit_draw import divide
from pdcl.lifelong.audit_place import made_identity
from pdcl.lifelong.audited import audit_of
from pdcl.lifelong.references import PIECE, note_references
from pdcl.storage.disk import reported, written_whole
from pdcl.storage.scratch import scratch_rows
from pdcl.storage.tensor_file import LARGE
from pdcl.streams.arrow import ArrowRows
from pdcl.streams.audits import SAMPLES, Audit, read_audit
from pdcl.streams.checks import BadData
from pdcl.streams.iterated import Iterated
from pdcl.streams.mapped import PartOfFile
from pdcl.streams.samples import Column, Samples, column, inputs_of

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

LEVEL = 0.05
# Kinds of arrays.
TEXT = "SU"


@dataclass(frozen=True)
class Aside:
    """What went to the audit set at `place`: `samples` of this task, `total` of all tasks, at most `budget`.

    `certifies` is the smallest error rate that this task's samples can ever certify: at 95 %, in one look, with no
    error among them.
    """

    place: str
    samples: int
    total: int
    budget: int | None
    certifies: float


@dataclass(frozen=True)
class Planned:
    """`rest` to learn from, the audit set as it will be once it is written, what is `new` in it, and a word of what
    came again."""

    rest: Samples
    about: Aside
    arrays: dict[str, Column]
    new: dict[str, Column]
    note: str | None

    def whole(self) -> Audit:
        """The audit set as it will be."""
        return audit_of(self.about.place, self.arrays)

    def writing(self, learner: Learner) -> Callable[[], None]:
        """What stores the learner's outcomes on its newest task, for later comparison, and writes the audit set."""

        def write() -> None:
            entry = learner.lineage.tasks[-1]
            own = self.arrays["task"].astype(str) == str(entry["name"])
            if own.any():
                note_references(learner, self.whole(), np.flatnonzero(own))
            entry["result"]["audit"]["id"] = made_identity(Path(self.about.place))
            self.write()

        return write

    def write(self) -> None:
        """Put the audit set on disk, whole. Its ledger stays: looks count on."""
        path = Path(self.about.place)
        with reported(path):
            path.mkdir(parents=True, exist_ok=True)
            with written_whole(path / SAMPLES) as file:
                np.savez_compressed(file, allow_pickle=False, **self.arrays)


def plan_aside(
    samples: Samples, place: str | Path, task: str, learner: Learner, share: float = 0.1, budget: int | None = None
) -> Planned:
    """What is left to learn from, and what goes to the audit set. Groups go as a whole; nothing is written yet.

    The same call again sets the same samples aside, and none twice.
    """
    if not isinstance(samples.inputs, Tensor | Dataset):
        raise UsageError(
            f"audit={str(place)!r}: an audit set holds inputs that are one tensor; keep these apart yourself"
        )
    path = Path(place)
    held = read_audit(path) if (path / SAMPLES).exists() else None
    if samples.targets.dtype == object:
        raise BadData(
            f"audit={str(place)!r}: an audit set holds numbers or texts as y, not both; keep these apart yourself"
        )
    sides = divide(samples, held, task, learner, share, _room(held, task, budget, path))
    chosen, rest = _taken(samples, sides.aside), _taken(samples, sides.rest)
    x = _inputs(chosen) if len(chosen) or held is None else held.x[:0]
    columns = {"task": np.full(len(chosen), task)}
    if chosen.groups is not None:
        columns["group"] = np.asarray([str(group) for group in chosen.groups.tolist()])
    columns |= {name: np.asarray([str(value) for value in values]) for name, values in chosen.columns.items()}
    new = {"x": x.numpy(), "y": chosen.targets, **columns}
    arrays = new if held is None else extended(held, new)
    own = int((arrays["task"].astype(str) == task).sum())
    units = own if chosen.groups is None else len(np.unique(chosen.groups))
    certifies = 1 - LEVEL ** (1 / units) if units else 1.0
    about = Aside(str(path), own, len(arrays["task"]), budget, certifies)
    return Planned(rest, about, arrays, new, sides.note)


def _room(held: Audit | None, task: str, budget: int | None, path: Path) -> int | None:
    """How many samples the budget still has room for; those of this very task, set aside before, count as room."""
    if budget is None:
        return None
    other = 0 if held is None else int((held.columns["task"].astype(str) != task).sum())
    if other >= budget:
        raise UsageError(f"the audit set {path} holds {other} samples and its budget is {budget}; give it more")
    return budget - other


def _taken(samples: Samples, mask: Tensor) -> Samples:
    index = mask.nonzero().flatten()
    inputs: Any = samples.inputs
    if samples.mapped:
        part: Any = PartOfFile(inputs, samples.mapped, index)
    else:
        part = inputs[index] if isinstance(inputs, Tensor) else _subset(inputs, index.tolist())
    rows = index.numpy()
    groups = None if samples.groups is None else samples.groups[rows]
    columns = {name: values[rows] for name, values in samples.columns.items()}
    return replace(samples, inputs=part, mapped=(), targets=samples.targets[rows], groups=groups, columns=columns)


def _subset(dataset: Any, rows: list[int]) -> Dataset[Any]:
    return dataset.select(rows) if isinstance(dataset, ArrowRows | Iterated) else Subset(dataset, rows)


def _inputs(samples: Samples) -> Tensor:
    inputs: Any = samples.inputs
    if isinstance(inputs, Tensor):
        return inputs.cpu()
    if isinstance(inputs, PartOfFile):
        return _read_in_pieces(inputs)
    return torch.stack([inputs_of(inputs[row][0]) for row in range(len(samples))])


def _read_in_pieces(part: PartOfFile) -> Tensor:
    """All rows; on disk where they are many."""
    first = part.read_batch([0])
    found, at = scratch_rows(len(part), tuple(first.shape[1:]), first.dtype, LARGE), 0
    for rows in torch.arange(len(part)).split(PIECE):
        found[at : at + len(rows)] = part.read_batch(rows.tolist())
        at += len(rows)
    return found


def extended(held: Audit, new: dict[str, Column]) -> dict[str, Column]:
    """An audit set with more samples; those that it holds already stay as they are."""
    old = {"x": held.x.numpy(), "y": column(held.y), **held.columns}
    if old.keys() != new.keys():
        raise BadData(f"audit set {held.name} has columns {sorted(old)}, the new samples have {sorted(new)}")
    if old["x"].shape[1:] != new["x"].shape[1:]:
        shapes = f"{old['x'].shape[1:]}, the new samples have {new['x'].shape[1:]}"
        raise BadData(f"audit set {held.name} holds inputs of shape {shapes}; give this task an audit set of its own")
    if len(new["y"]) and (old["y"].dtype.kind in TEXT) != (new["y"].dtype.kind in TEXT):
        kinds = " and ".join(f"{each['y'][0].item()!r} ({type(each['y'][0].item()).__name__})" for each in (old, new))
        raise BadData(
            f"audit set {held.name} can't hold labels of two types, {kinds}; give this task an audit set of its own"
        )
    known = {_hash(row) for row in old["x"]}
    fresh = np.asarray([_hash(row) not in known for row in new["x"]], dtype=bool)
    return {name: np.concatenate([old[name], new[name][fresh]]) for name in old}


def _hash(row: Column) -> bytes:
    return hashlib.sha256(row.tobytes()).digest()
