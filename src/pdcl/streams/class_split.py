"""One data set split by class into a stream of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from pdcl.streams.checks import BadData, check_groups_apart
from pdcl.streams.data import Collate, Data
from pdcl.streams.encoding import Encoding, assembled
from pdcl.streams.held_out import divided, draw_share, hold_out, hold_out_all
from pdcl.streams.labels import Groups, encode, in_order, labels_in
from pdcl.streams.samples import Samples, read
from pdcl.streams.task import Stream, Task
from pdcl.streams.transform import Transform

__all__ = ["hold_out", "hold_out_all", "split"]


def split(
    x: Any,
    y: Any = None,
    *,
    test: tuple[Any, Any] | Dataset[Any] | None = None,
    classes_per_task: int = 2,
    tasks: Sequence[Sequence[Any]] | None = None,
    name: str = "own",
    order_seed: int | None = None,
    groups: Any = None,
    test_groups: Any = None,
    transform: Transform | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    workers: int = 0,
    collate: Collate | None = None,
) -> Stream:
    """A class-incremental stream: every task brings `classes_per_task` new classes (the last one what remains).

    `x`, `y`: arrays, tensors, or a Dataset in `x` alone, read lazily; `x` may be a dict or tuple of them, or a list of
    sequences of unequal length; `collate` makes batches of a Dataset's inputs. Labels are any integers or strings.
    `tasks` names the classes of every task instead (classes it leaves out are dropped); `order_seed` permutes the
    classes.
    Without `test`, `test_share` of every class is carved out by `seed`, never dividing one of the `groups`.
    Without `transform`, bytes are scaled to 0 … 1, and floats of large scale standardised by the first task's data.

    >>> stream = split([[0.0], [1.0], [2.0], [3.0]] * 5, ["cat", "dog", "owl", "fox"] * 5)
    >>> [task.name for task in stream.tasks]
    ['cat, dog', 'fox, owl']
    """
    samples = read(x, y, groups, workers, "x, y", collate)
    plan = plan_classes(labels_in(samples.targets), classes_per_task, tasks, order_seed)
    labels = tuple(label for members in plan for label in members)
    missing = None if tasks is None else -1
    encoded = Groups()
    data = samples.data(encode(samples.targets, labels, "y", missing), encoded.encode(samples.groups))
    if test is None:
        train, held = _carved(data, test_share, seed)
    else:
        other = _read_test(test, test_groups, workers, collate)
        check_groups_apart([samples.groups], [other.groups])
        targets = encode(other.targets, labels, "test y", missing)
        train, held = data, other.data(targets, encoded.encode(other.groups))
    return replace(by_class(name, train, held, plan, transform), groups=tuple(encoded.known))


def by_class(
    name: str,
    train: Data,
    test: Data,
    plan: Sequence[Sequence[Any]],
    transform: Transform | None = None,
    fingerprint: dict[str, str] | None = None,
) -> Stream:
    """The stream whose tasks have the labels of `plan`; targets count these labels in the plan's order."""
    labels = tuple(label for members in plan for label in members)
    heads = [tuple(labels.index(label) for label in members) for members in plan]
    tasks = [Task(i, named(plan[i]), _of(train, head), _of(test, head), head) for i, head in enumerate(heads)]
    return assembled(name, tasks, Encoding("classification", labels), transform, fingerprint)


def plan_classes(
    found: list[Any], per_task: int, tasks: Sequence[Sequence[Any]] | None, order_seed: int | None
) -> list[list[Any]]:
    """The labels of every task, sorted inside a task."""
    if tasks is not None:
        return _checked_plan(found, tasks, order_seed)
    if per_task < 1:
        raise BadData(f"classes_per_task must be at least 1, not {per_task}")
    order: list[Any] = found
    if order_seed is not None:
        order = [found[i] for i in np.random.default_rng(order_seed).permutation(len(found))]
    return [in_order(order[start : start + per_task]) for start in range(0, len(order), per_task)]


def _checked_plan(found: list[Any], tasks: Sequence[Sequence[Any]], order_seed: int | None) -> list[list[Any]]:
    if order_seed is not None:
        raise BadData("order_seed has no effect where tasks= names the classes; leave one of them out")
    named_labels = [label for members in tasks for label in members]
    twice = sorted({str(label) for label in named_labels if named_labels.count(label) > 1})
    if twice:
        raise BadData(f"tasks= names {', '.join(twice)} twice; for classes that return, use from_tasks")
    absent = [label for label in named_labels if label not in found]
    if absent:
        raise BadData(f"tasks= names {absent}, which y doesn't hold; its labels are {found}")
    return [in_order(members) for members in tasks]


def named(members: Sequence[Any]) -> str:
    """What a task of these classes is called."""
    return ", ".join(str(label) for label in members)


def _read_test(test: Any, groups: Any, workers: int, collate: Collate | None) -> Samples:
    if isinstance(test, Dataset):
        return read(test, None, groups, workers, "test", collate)
    x, y = test
    return read(x, y, groups, workers, "test")


def _carved(data: Data, share: float, seed: int) -> tuple[Data, Data]:
    """Divided over the whole stream at once, so that a group in several tasks is on one side in all of them."""
    return divided(data, draw_share(data.targets, data.groups, share, seed))


def _of(data: Data, classes: tuple[int, ...]) -> Data:
    return data.subset(torch.isin(data.targets, torch.tensor(classes)).nonzero().flatten())
