"""What a stream must be before any work is put into it. Errors name the task, the row and the way out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.given import few
from pdcl.ragged import Ragged
from pdcl.streams.data import Data, DatasetData, TensorData, everything
from pdcl.streams.mapped import PartOfFile
from pdcl.streams.readers import fetched
from pdcl.streams.task import Spec, Stream, Task
from pdcl.trees import Leaf, Tree, flatten, leaf_specs

CHUNK_ELEMENTS = 1 << 16
PIECE = 1000
FIRST_BATCH = 32
IGNORED = -100
UNEQUAL = "; for sequences that happen to be of one length there, give pdcl.Ragged.of(sequences)"


class BadData(UsageError):
    """Data that can't be learned from as it is."""


def check_stream(stream: Stream) -> None:
    """Raise `BadData` unless every task can be learned; a Dataset is looked into only as far as its first batch."""
    if not stream.tasks:
        raise BadData(f"stream {stream.name!r} has no tasks")
    names = Counter(task.name for task in stream.tasks)
    if twice := [name for name, count in names.items() if count > 1]:
        raise BadData(f"stream {stream.name!r} has {names[twice[0]]} tasks called {twice[0]!r}; give each its own name")
    for task in stream.tasks:
        check_task(task, stream.spec)


def check_task(task: Task, spec: Spec) -> None:
    """Raise `BadData` unless training and test data of `task` fit `spec`, and each other."""
    for data, side in ((task.data, "training"), (task.test, "test")):
        check_data(data, spec, f"task {task.index} ({task.name!r}), {side} data")
    if spec.kind != "classification":
        return
    foreign = sorted(set(torch.unique(task.test.targets).tolist()) - set(task.classes))
    if foreign:
        names = [spec.labels[index] if spec.labels else index for index in foreign]
        raise BadData(
            f"task {task.index} ({task.name!r}): the test data hold {few(names)}, which the task doesn't teach"
        )


def check_data(data: Data, spec: Spec, where: str) -> None:
    """Raise `BadData` unless `data` is there, of the declared shape, dtype and classes, and finite."""
    if len(data) == 0:
        raise BadData(f"{where} are empty; leave the task out or give it samples")
    x, _ = data.fetch(torch.arange(min(FIRST_BATCH, len(data))))
    _check_inputs(x, spec, where)
    if isinstance(data, DatasetData):
        data.fetch(torch.arange(1))
    check_targets(data.targets, spec, where)
    if isinstance(data, TensorData) and data.mapped:
        rows = everything(data) if data.rows is None else data.rows
        _check_in_files(data, data.x, rows, where)
    elif isinstance(data, DatasetData) and isinstance(data.dataset, PartOfFile):
        _check_in_files(data, data.dataset.inputs, data.dataset.rows[data.rows], where)
    elif isinstance(data, TensorData):
        check_finite(data.x, where, data.rows)
    else:
        check_finite(x, where)


def _check_inputs(x: Tree, spec: Spec, where: str) -> None:
    if spec.leaves or not isinstance(x, Tensor):
        found = leaf_specs(x)
        if found != spec.expected:
            late = any(leaf.ragged for leaf in found) and not any(leaf.ragged for leaf in spec.expected)
            now, first = (", ".join(map(str, leaves)) for leaves in (found, spec.expected))
            raise BadData(f"{where} have inputs {now}; the stream's first task has {first}{UNEQUAL if late else ''}")
        return
    if tuple(x.shape[1:]) != spec.shape:
        raise BadData(f"{where} have inputs of shape {tuple(x.shape[1:])}; the stream's first task has {spec.shape}")
    if x.dtype != spec.dtype:
        raise BadData(f"{where} are {x.dtype}; the stream's first task is {spec.dtype}. Convert one of them")


def check_targets(targets: Tensor, spec: Spec, where: str) -> None:
    """Raise `BadData` unless `targets` are head indices, or finite numbers of the declared width."""
    if spec.kind == "tokens":
        _check_tokens(targets, spec, where)
    elif spec.kind != "classification":
        if targets.dim() < 2 or (spec.kind == "multilabel" and targets.dim() > 2) or targets.shape[1] != spec.outputs:
            rule = f"{spec.outputs} a sample are declared; give every task as many columns"
            raise BadData(f"{where} have targets of shape {tuple(targets.shape)}; {rule}")
        # Labels that a sample was given without are NaN by now; users' own are 0 or 1.
        finite = targets.isfinite() | (targets.isnan() if spec.kind == "multilabel" else False)
        if not bool(finite.all()):
            row = int((~finite).flatten(1).any(1).nonzero()[0])
            raise BadData(f"{where}: the target of row {row} is not finite")
    elif int(targets.min()) < 0 or int(targets.max()) >= spec.outputs:
        row = int(((targets < 0) | (targets >= spec.outputs)).nonzero()[0])
        raise BadData(f"{where}: row {row} has class {int(targets[row])}; the head has {spec.outputs} outputs")


def _check_tokens(targets: Leaf, spec: Spec, where: str) -> None:
    values = targets.values if isinstance(targets, Ragged) else targets
    wrong = values[((values < 0) & (values != IGNORED)) | (values >= spec.outputs)]
    if len(wrong):
        rule = (
            f"the head has {spec.outputs} outputs, and {IGNORED} is ignored; give it one for every class from the start"
        )
        raise BadData(f"{where}: a token has class {int(wrong[0])}; {rule}")


def check_finite(x: Tree, where: str, rows: Tensor | None = None, first: int = 0) -> None:
    """Raise `BadData` where these rows (None: all) hold NaN or an infinite number. first: what row 0 is called."""
    for name, leaf in flatten(x).items():
        place = f"{where}, {name}" if name else where
        if isinstance(leaf, Ragged):
            _check_sequences(leaf, place)
        elif leaf.is_floating_point():
            _check_rows(leaf, rows, place, first)


def _check_in_files(data: Data, inputs: Tree, rows: Tensor, where: str) -> None:
    """`check_finite` of these rows of inputs in files: as networks get them, read ahead in order."""
    parts = everything(data).split(PIECE) if any(map(_is_real, flatten(inputs).values())) else ()
    for part, (x, _) in zip(parts, fetched(data, parts, ahead=1), strict=True):
        for name, leaf in filter(lambda named: _is_real(named[1]), flatten(x).items()):
            _refuse_infinite(leaf, rows[part], f"{where}, {name}" if name else where)


def _is_real(leaf: Leaf) -> bool:
    return isinstance(leaf, Tensor) and leaf.is_floating_point()


def _check_sequences(leaf: Ragged, where: str) -> None:
    bad = ~leaf.values.reshape(len(leaf.values), -1).isfinite().all(1)
    if bool(bad.any()):
        row = int((leaf.lengths.cumsum(0) <= int(bad.nonzero()[0])).sum())
        raise BadData(f"{where}: row {row} holds NaN or infinite inputs; drop or fill such rows first")


def _check_rows(leaf: Tensor, rows: Tensor | None, where: str, first: int) -> None:
    """Chunk by chunk, so that the check costs little memory."""
    chunk = max(1, CHUNK_ELEMENTS // max(1, int(torch.Size(leaf.shape[1:]).numel())))
    for positions in torch.split(torch.arange(len(leaf)) if rows is None else rows, chunk):
        here = leaf.index_select(0, positions) if rows is not None else leaf[positions[0] : positions[-1] + 1]
        _refuse_infinite(here, positions + first, where)


def _refuse_infinite(leaf: Leaf, rows: Tensor, where: str) -> None:
    """rows: the numbers that the leaf's rows have where they come from."""
    assert isinstance(leaf, Tensor)
    # A sum is finite only where all its terms are, and quicker to find; that of finite numbers may still be infinite.
    if math.isfinite(leaf.sum()):
        return
    bad = ~leaf.reshape(len(leaf), -1).isfinite().all(1)
    if bool(bad.any()):
        raise BadData(f"{where}: row {int(rows[bad][0])} holds NaN or infinite inputs; drop or fill such rows first")


def check_groups_apart(train: Iterable[Any], test: Iterable[Any]) -> None:
    """Raise `BadData` where a group is in training and in test data (columns of group names, or None)."""
    sides = [{group for column in side if column is not None for group in column.tolist()} for side in (train, test)]
    both = sorted(map(str, sides[0] & sides[1]))
    if both:
        shown = ", ".join(both[:3]) + (" …" if len(both) > 3 else "")
        raise BadData(f"{len(both)} groups are in training and in test data ({shown}); a group belongs to one side")
