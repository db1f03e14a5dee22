"""Tasks handed over one by one as a stream: new domains, returning classes, regression, multi-label data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch.utils.data import Dataset

from pdcl.streams.checks import BadData, check_groups_apart
from pdcl.streams.data import Collate
from pdcl.streams.encoding import Encoding, Kind, assembled
from pdcl.streams.held_out import hold_out_all
from pdcl.streams.labels import Groups
from pdcl.streams.samples import Samples, read
from pdcl.streams.task import Stream, Task
from pdcl.streams.transform import Transform

Sides = tuple[Samples, Samples | None]


def from_tasks(
    tasks: Sequence[Sequence[Any]],
    *,
    name: str = "own",
    kind: Kind = "classification",
    names: Sequence[str] | None = None,
    groups: Sequence[Any] | None = None,
    transform: Transform | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    workers: int = 0,
    collate: Collate | None = None,
) -> Stream:
    """A stream of tasks that are apart already.

    A task is `(x, y, test_x, test_y)`, `(train, test)` of two Datasets, or `(x, y)` or `(train,)`, from which
    `test_share` is carved. `kind="regression"` takes float targets (n,) or (n, outputs), `kind="multilabel"` a 0/1
    matrix (n, outputs), `kind="tokens"` a class for every token (n, …) or sequences of them, −100 where there is none.
    `x` may be a dict or tuple of arrays, or a list of sequences of unequal length; `collate` makes batches of a
    Dataset's inputs. `groups` holds one column per task, or a pair of columns for training and test.

    >>> old, new = ([[0.0], [1.0]] * 5, [0, 1] * 5), ([[5.0], [6.0]] * 5, [0, 1] * 5)
    >>> from_tasks([old, new], names=["2025", "2026"]).spec.heads
    ((0, 1), (0, 1))
    """
    titles = _titles(names, len(tasks))
    columns = [None] * len(tasks) if groups is None else list(groups)
    if len(columns) != len(tasks):
        raise BadData(f"groups has {len(columns)} entries for {len(tasks)} tasks; give one per task")
    given = zip(tasks, columns, strict=True)
    sides = [_sides(task, column, workers, i, collate) for i, (task, column) in enumerate(given)]
    check_groups_apart((train.groups for train, _ in sides), (test.groups for _, test in sides if test is not None))
    encoding, known = Encoding.of(kind, [train for train, _ in sides]), Groups()
    built = [_task(i, title, side, encoding, known) for i, (title, side) in enumerate(zip(titles, sides, strict=True))]
    open_tasks = [task for task in built if task.test is task.data]
    carved = {task.index: task for task in hold_out_all(open_tasks, test_share, seed)} if open_tasks else {}
    stream = assembled(name, [carved.get(task.index, task) for task in built], encoding, transform)
    return replace(stream, groups=tuple(known.known))


def _titles(names: Sequence[str] | None, count: int) -> list[str]:
    if names is None:
        return [str(index) for index in range(count)]
    if len(names) != count:
        raise BadData(f"{len(names)} names for {count} tasks")
    return list(names)


def _sides(task: Sequence[Any], groups: Any, workers: int, index: int, collate: Collate | None) -> Sides:
    """Training and, where given, test samples of one task."""
    pair = groups if isinstance(groups, tuple) else (groups, None)
    where = f"task {index}"
    if isinstance(task[0], Dataset):
        train = read(task[0], None, pair[0], workers, where, collate)
        return train, read(task[1], None, pair[1], workers, f"{where}, test", collate) if len(task) > 1 else None
    if len(task) not in (2, 4):
        raise BadData(
            f"{where} has {len(task)} parts; give (x, y), (x, y, test_x, test_y) or (train, test) of Datasets"
        )
    train = read(task[0], task[1], pair[0], workers, where, collate)
    return train, read(task[2], task[3], pair[1], workers, f"{where}, test", collate) if len(task) == 4 else None


def _task(index: int, title: str, sides: Sides, encoding: Encoding, groups: Groups) -> Task:
    """The encoded task; without test samples, `test` is `data` itself until they are carved out."""
    train, test = sides
    data = train.data(encoding.targets(train.targets, f"y of task {index}"), groups.encode(train.groups))
    if test is None:
        return Task(index, title, data, data, encoding.classes(data.targets))
    held = test.data(encoding.targets(test.targets, f"test y of task {index}"), groups.encode(test.groups))
    return Task(index, title, data, held, encoding.classes(data.targets))
