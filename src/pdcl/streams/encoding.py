"""From encoded parts to a checked stream: the one place where a spec is made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from pdcl.given import short
from pdcl.ragged import Ragged
from pdcl.streams.checks import FIRST_BATCH, IGNORED, BadData, check_stream
from pdcl.streams.data import Data, TensorData, shaped
from pdcl.streams.inputs import inputs_of, refuse_sequences
from pdcl.streams.labels import encode, in_order, labels_in, unknown
from pdcl.streams.samples import Column, Samples
from pdcl.streams.task import Spec, Stream, Task
from pdcl.streams.transform import Transform, fitted
from pdcl.trees import Leaf, LeafSpec, Tree, flatten, leaf_specs

Kind = Literal["classification", "regression", "multilabel", "tokens"]
HASHED_ROWS = 1024


@dataclass(frozen=True)
class Encoding:
    """How raw targets of a stream become tensors."""

    kind: Kind
    labels: tuple[Any, ...] = ()

    @classmethod
    def of(cls, kind: Kind, tasks: Sequence[Samples]) -> Encoding:
        """Labels in their order of appearance: task by task, sorted inside a task."""
        if kind not in get_args(Kind):
            raise BadData(f"kind is {kind!r}; it must be one of {', '.join(get_args(Kind))}")
        if kind != "classification":
            return cls(kind)
        seen: dict[Any, None] = {}
        for index, samples in enumerate(tasks):
            where = f"y of task {index}"
            seen.update(dict.fromkeys(in_order(unknown(labels_in(samples.targets, where), seen, where))))
        return cls(kind, tuple(seen))

    def targets(self, column: Column, where: str) -> Tensor:
        """(n,) class indices, (n, outputs) floats, or class indices of tokens, (n, …) or ragged."""
        if self.kind == "classification":
            return encode(column, self.labels, where)
        if self.kind == "tokens":
            tokens: Tensor = _tokens(column, where)
            return tokens
        refuse_sequences(column, where)
        if column.dtype.kind not in "biuf":
            held = f"{repr(column.flat[0])[:40]} ({column.dtype})" if column.size else str(column.dtype)
            raise BadData(f"{where} holds {held}; targets of kind={self.kind!r} are numbers")
        # What is too large becomes infinite, and is refused as such.
        with np.errstate(over="ignore"):
            values = torch.as_tensor(np.asarray(column, dtype=np.float32))
        if self.kind == "multilabel" and (values.dim() != 2 or not bool(((values == 0) | (values == 1)).all())):
            raise BadData(f"{where}: multi-label targets are a 0/1 matrix (samples, labels), not {tuple(values.shape)}")
        return values[:, None] if values.dim() == 1 else values

    def classes(self, targets: Tensor) -> tuple[int, ...]:
        """The head indices that occur; () where targets are no classes."""
        return tuple(torch.unique(targets).tolist()) if self.kind == "classification" else ()

    def outputs(self, targets: Sequence[Tensor]) -> int:
        """How many outputs a network needs for the targets of these tasks."""
        if self.kind == "classification":
            return len(self.labels)
        if self.kind == "tokens":
            if (highest := max(map(_highest, targets))) < 0:
                raise BadData(f"y: no token has a class, the highest is {highest}; {IGNORED} says that one has none")
            return 1 + highest
        return targets[0].shape[1]


def _highest(targets: Leaf) -> int:
    return int((targets.values if isinstance(targets, Ragged) else targets).max())


def _tokens(column: Column, where: str) -> Any:
    """Class indices as they are; the type checker takes ragged ones for a tensor, as most methods may."""
    first = next(iter(column), None)
    if isinstance(first, np.ndarray) and first.dtype.kind in "OSU":
        raise BadData(f"{where}: tokens have texts as classes ({first.flat[0]!r}); number them first: names.index(tag)")
    found = Ragged.of(list(column)) if column.dtype == object else inputs_of(column, where)
    if found.dtype.is_floating_point or found.dtype == torch.bool or (isinstance(found, Tensor) and found.dim() < 2):
        raise BadData(f"{where}: tokens are integers, a class or {IGNORED} for each, several a sample")
    return Ragged(found.values.long(), found.lengths) if isinstance(found, Ragged) else found.long()


def assembled(
    name: str,
    tasks: Sequence[Task],
    encoding: Encoding,
    transform: Transform | None = None,
    known: dict[str, str] | None = None,
) -> Stream:
    """The stream of these tasks, after all checks. `known` is a fingerprint that spares computing one."""
    if not isinstance(name, str) or not name.strip():
        raise BadData(f"name={short(name)} must be a text: what the stream is called")
    if transform is not None and not isinstance(transform, Transform):
        raise BadData(f"transform={short(transform)} must be a pdcl Transform")
    if not tasks:
        raise BadData(f"stream {name!r} has no tasks")
    first = tasks[0]
    if len(first.data) == 0:
        raise BadData(f"task 0 ({first.name!r}) has no training samples")
    x, _ = first.data.fetch(torch.arange(min(len(first.data), FIRST_BATCH)))
    shape, dtype, leaves = described(x, transform)
    expected = leaf_specs(x)
    tasks = [replace(task, data=shaped(task.data, expected), test=shaped(task.test, expected)) for task in tasks]
    spec = Spec(
        shape=shape,
        dtype=dtype,
        outputs=encoding.outputs([task.data.targets for task in tasks]),
        kind=encoding.kind,
        labels=encoding.labels,
        heads=tuple(task.classes for task in tasks),
        transform=fitted(first.data) if transform is None else transform,
        leaves=leaves,
    )
    stream = Stream(name, list(tasks), spec, fingerprint=known or {"data": fingerprint(tasks)})
    check_stream(stream)
    return stream


def described(x: Tree, transform: Transform | None) -> tuple[tuple[int, ...], torch.dtype, tuple[LeafSpec, ...]]:
    """Shape and dtype of one tensor; of anything else (), that of its first leaf, and all its leaves."""
    if isinstance(x, Tensor):
        return tuple(x.shape[1:]), x.dtype, ()
    leaves = leaf_specs(x)
    if transform is not None and transform != Transform():
        raise BadData("transform has no effect on inputs that aren't one tensor; apply it to the data beforehand")
    return (), leaves[0].dtype, leaves


def fingerprint(tasks: Sequence[Task]) -> str:
    """A hash of all targets and of up to 1,024 evenly spaced inputs of every task."""
    digest = hashlib.sha256()
    for task in tasks:
        for data in (task.data, task.test):
            for leaf in (data.targets, *(leaf for _, leaf in sorted(flatten(_some_inputs(data)).items()))):
                for part in leaf_parts(leaf):
                    digest.update(part)
    return "sampled-sha256:" + digest.hexdigest()


def leaf_parts(leaf: Leaf) -> list[Any]:
    """What a leaf holds, as bytes that aren't copied: its rows, or the values and lengths of its sequences."""
    parts = (leaf.values, leaf.lengths) if isinstance(leaf, Ragged) else (leaf,)
    return [part.contiguous().flatten().numpy().view("uint8").data for part in parts]


def _some_inputs(data: Data) -> Tree:
    """Evenly spaced inputs: many of a tensor, one of a Dataset that is slow to read."""
    count = min(HASHED_ROWS if isinstance(data, TensorData) else 1, len(data))
    return data.fetch(torch.linspace(0, len(data) - 1, count).long())[0] if count else torch.empty(0)
