"""Audit sets: labelled samples that no learner trains on, with columns that say what each belongs to.

On disk an audit set is a directory with `samples.npz`: arrays `x` and `y`, and one more per column (`task`, `patient`,
…), all of one length. Whatever is asked of it goes into the ledger beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pdcl.storage.cache import LEDGER, ledgers_directory
from pdcl.streams.checks import BadData
from pdcl.streams.data import everything
from pdcl.streams.npz import read_npz
from pdcl.streams.samples import Column, column, inputs_of, targets_column
from pdcl.streams.task import Stream

SAMPLES = "samples.npz"


@dataclass(frozen=True)
class Audit:
    """Raw inputs, targets as the user writes them, and named columns, all [n, …].

    `ledger` is where looks count; `tasks` are the names of the tasks in their order, where that is known.
    """

    name: str
    x: Tensor
    y: Column
    columns: dict[str, Column] = field(default_factory=dict)
    ledger: Path | None = None
    tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, values in {"y": self.y, **self.columns}.items():
            if values is None or values.ndim == 0 or (name != "y" and values.ndim > 1):
                raise BadData(f"audit set {self.name}: {name} must be a column, one value per sample")
            if len(values) != len(self.x):
                raise BadData(f"audit set {self.name}: {name} has {len(values)} rows, x has {len(self.x)}")
        if not len(self.x):
            raise BadData(f"audit set {self.name} is empty")

    def __len__(self) -> int:
        return len(self.x)

    def hash(self) -> str:
        """sha256 of all inputs, targets and columns, whatever the order of the rows."""
        digest = hashlib.sha256(str((self.x.dtype, tuple(self.x.shape), *sorted(self.columns))).encode())
        digest.update(b"".join(sorted(self.rows())))
        return digest.hexdigest()

    def rows(self) -> list[bytes]:
        """A hash of each row: its input, target and columns."""
        held = [self.y, *(values for _, values in sorted(self.columns.items()))]
        told = zip(*(values.tolist() for values in held), strict=True)
        inputs = self.x.contiguous().reshape(len(self), -1).numpy()
        pairs = zip(inputs, told, strict=True)
        return [hashlib.sha256(row.tobytes() + repr(rest).encode()).digest() for row, rest in pairs]

    def numbers(self) -> npt.NDArray[np.int64]:
        """A number per distinct sample, [n]: rows of equal input and target have the same."""
        inputs = self.x.contiguous().reshape(len(self), -1).numpy()
        pairs = zip(inputs, self.y.tolist(), strict=True)
        known: dict[bytes, int] = {}
        keys = (hashlib.sha256(row.tobytes() + repr(y).encode()).digest() for row, y in pairs)
        return np.asarray([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)

    def taken(self, rows: Any) -> Audit:
        """The samples at these positions, in this order."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return replace(self, x=self.x[torch.as_tensor(rows)], y=self.y[rows], columns=columns)

    def order(self) -> npt.NDArray[np.int64]:
        """Positions of the rows by their hash: an order that can't follow any value, the same however they lie."""
        hashes = self.rows()
        return np.asarray(sorted(range(len(self)), key=hashes.__getitem__), dtype=np.int64)

    def column(self, name: str, asked: str) -> Column:
        """The column `name`, or an error that names those there are. `asked` is the option that wants it."""
        if name not in self.columns:
            there = ", ".join(sorted(self.columns)) or "none"
            raise BadData(f"{asked}: audit set {self.name} has no column {name!r}; its columns: {there}")
        return self.columns[name]

    @property
    def place(self) -> Path:
        """Its ledger: beside it on disk, else among the user's."""
        return self.ledger or self.shelf

    @property
    def shelf(self) -> Path:
        """Where the user's ledgers have that of this audit set, by content."""
        return ledgers_directory() / self.hash()[:32] / LEDGER


def as_audit(given: Any) -> Audit:
    """An audit set from a path, a stream or its name (its test data), or arrays: (x, y), or {"x": …, "y": …, …}."""
    if isinstance(given, Audit):
        return given
    if isinstance(given, Stream):
        return of_stream(given)
    if isinstance(given, Mapping):
        return of_arrays("given", given)
    if isinstance(given, tuple) and len(given) == 2:
        return of_arrays("given", {"x": given[0], "y": given[1]})
    if isinstance(given, str | Path):
        return _named(given)
    raise BadData(f"an audit set is a directory, a stream or (x, y), not {type(given).__name__}")


def _named(given: str | Path) -> Audit:
    path = Path(given)
    if path.is_dir() or path.suffix == ".npz":
        return read_audit(path)
    from pdcl.streams.catalog import UnknownStream, load

    try:
        return of_stream(load(str(given)))
    except UnknownStream as error:
        raise BadData(f"{given} is neither a directory with {SAMPLES} nor a stream: {error}") from error


def of_stream(stream: Stream) -> Audit:
    """The test data of every task, with the column `task`."""
    xs, ys, tasks = [], [], []
    for task in stream.tasks:
        x, targets = task.test.fetch(everything(task.test))
        xs.append(x)
        ys += _decoded(targets, stream.spec.labels)
        tasks += [task.name] * len(x)
    columns = {"task": np.asarray(tasks)}
    groups = [task.test.groups for task in stream.tasks if task.test.groups is not None]
    if len(groups) == len(stream.tasks):
        columns["group"] = np.asarray(stream.group_names(torch.cat(groups)))
    return Audit(
        stream.name, torch.cat(xs), targets_column(ys), columns, tasks=tuple(task.name for task in stream.tasks)
    )


def _decoded(targets: Tensor, labels: tuple[Any, ...]) -> list[Any]:
    values = targets.tolist()
    return [labels[value] for value in values] if labels else values


def of_arrays(name: str, arrays: Mapping[str, Any], ledger: Path | None = None) -> Audit:
    if missing := {"x", "y"} - set(arrays):
        raise BadData(f"audit set {name} lacks {' and '.join(sorted(missing))}")
    rest = {str(key): column(values, str(key)) for key, values in arrays.items() if key not in ("x", "y")}
    return Audit(name, inputs_of(arrays["x"]), targets_column(arrays["y"]), rest, ledger)


def read_audit(path: str | Path) -> Audit:
    """The audit set of a directory or of one .npz file; pickled content is refused."""
    given = Path(path)
    place = given / SAMPLES if given.is_dir() else given
    # The directory and the file in it are one audit set.
    ledger = place.parent / (LEDGER if place.name == SAMPLES else f"{place.stem}.{LEDGER}")
    try:
        return of_arrays(str(given), read_npz(place, str(place)), ledger)
    except FileNotFoundError:
        raise BadData(f"{given} holds no audit set: there is no {place.name} with arrays x and y") from None
