"""From prepared arrays to a class-incremental stream with readable class names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from pdcl.lab.benchmarks.raw.preparing import Arrays, Prepared
from pdcl.streams.class_split import by_class, named, plan_classes
from pdcl.streams.data import TensorData
from pdcl.streams.labels import encode
from pdcl.streams.task import Stream
from pdcl.streams.transform import Transform


def benchmark(
    name: str,
    prepared: Prepared,
    labels: Sequence[Any],
    classes_per_task: int,
    order_seed: int | None,
    transform: Transform,
    options: dict[str, Any],
) -> Stream:
    """The stream over classes 0 … len(labels) − 1 of the arrays; classes beyond are dropped."""
    plan = plan_classes(list(range(len(labels))), classes_per_task, None, order_seed)
    order = [index for members in plan for index in members]
    train, test = (_side(prepared.arrays, side, order) for side in ("train", "test"))
    stream = by_class(name, train, test, plan, transform, prepared.fingerprint)
    titles = [named([labels[index] for index in members]) for members in plan]
    tasks = [replace(task, name=title) for task, title in zip(stream.tasks, titles, strict=True)]
    spec = replace(stream.spec, labels=tuple(labels[i] for i in stream.spec.labels))
    shown = {"classes_per_task": classes_per_task, "order_seed": order_seed, **options}
    return replace(stream, tasks=tasks, spec=spec, preset=name, options=shown)


def _side(arrays: Arrays, side: str, order: list[int]) -> TensorData:
    """Training or test data; targets count the classes in the stream's order, -1 where it leaves one out."""
    groups = arrays.get(f"{side}_groups")
    return TensorData(
        torch.from_numpy(arrays[f"{side}_x"]),
        encode(arrays[f"{side}_y"], order, missing=-1),
        groups=None if groups is None else torch.from_numpy(groups),
    )
