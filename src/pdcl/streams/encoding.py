"""From encoded parts to a checked stream: the one place where a spec is made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from pdcl.streams.checks import BadData, check_stream
from pdcl.streams.data import Data, TensorData
from pdcl.streams.labels import encode, in_order, labels_in
from pdcl.streams.samples import Column, Samples
from pdcl.streams.task import Spec, Stream, Task
from pdcl.streams.transform import Transform, fitted

Kind = Literal["classification", "regression", "multilabel"]
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
            found = labels_in(samples.targets, f"y of task {index}")
            seen.update(dict.fromkeys(in_order(label for label in found if label not in seen)))
        return cls(kind, tuple(seen))

    def targets(self, column: Column, where: str) -> Tensor:
        """(n,) class indices, or (n, outputs) floats."""
        if self.kind == "classification":
            return encode(column, self.labels, where)
        values = torch.as_tensor(np.asarray(column, dtype=np.float32))
        if self.kind == "multilabel" and (values.dim() != 2 or not bool(((values == 0) | (values == 1)).all())):
            raise BadData(f"{where}: multi-label targets are a 0/1 matrix (samples, labels), not {tuple(values.shape)}")
        return values[:, None] if values.dim() == 1 else values

    def classes(self, targets: Tensor) -> tuple[int, ...]:
        """The head indices that occur; () where targets are no classes."""
        return tuple(torch.unique(targets).tolist()) if self.kind == "classification" else ()


def assembled(
    name: str,
    tasks: Sequence[Task],
    encoding: Encoding,
    transform: Transform | None = None,
    known: dict[str, str] | None = None,
) -> Stream:
    """The stream of these tasks, after all checks. `known` is a fingerprint that spares computing one."""
    if not tasks:
        raise BadData(f"stream {name!r} has no tasks")
    first = tasks[0]
    if len(first.data) == 0:
        raise BadData(f"task 0 ({first.name!r}) has no training samples")
    x, targets = first.data.fetch(torch.zeros(1, dtype=torch.int64))
    outputs = len(encoding.labels) if encoding.kind == "classification" else targets.shape[1]
    spec = Spec(
        shape=tuple(x.shape[1:]),
        dtype=x.dtype,
        outputs=outputs,
        kind=encoding.kind,
        labels=encoding.labels,
        heads=tuple(task.classes for task in tasks),
        transform=fitted(first.data) if transform is None else transform,
    )
    stream = Stream(name, list(tasks), spec, fingerprint=known or {"data": fingerprint(tasks)})
    check_stream(stream)
    return stream


def fingerprint(tasks: Sequence[Task]) -> str:
    """A hash of all targets and of up to 1,024 evenly spaced inputs of every task."""
    digest = hashlib.sha256()
    for task in tasks:
        for data in (task.data, task.test):
            digest.update(data.targets.contiguous().numpy().tobytes())
            digest.update(_some_inputs(data).contiguous().numpy().tobytes())
    return "sampled-sha256:" + digest.hexdigest()


def _some_inputs(data: Data) -> Tensor:
    """Evenly spaced inputs: many of a tensor, one of a Dataset that is slow to read."""
    count = min(HASHED_ROWS if isinstance(data, TensorData) else 1, len(data))
    return data.fetch(torch.linspace(0, len(data) - 1, count).long())[0] if count else torch.empty(0)
