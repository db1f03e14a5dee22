"""Tasks handed over one by one as a stream: new domains, returning classes, regression, multi-label data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pdcl.given import short
from pdcl.streams.checks import BadData, check_groups_apart
from pdcl.streams.column_reading import require_equal_columns
from pdcl.streams.columns import ColumnCodes
from pdcl.streams.data import Collate, Data
from pdcl.streams.encoding import Encoding, Kind, assembled
from pdcl.streams.held_out import hold_out_all
from pdcl.streams.inputs import refuse_containers
from pdcl.streams.labels import Groups
from pdcl.streams.samples import Samples, is_dataset, read
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
    columns: Sequence[Any] | None = None,
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
    Dataset's inputs. `groups` holds one column per task, or a pair of columns for training and test; `columns` likewise
    holds a dict of names and values per task, or a pair of dicts.

    >>> old, new = ([[0.0], [1.0]] * 5, [0, 1] * 5), ([[5.0], [6.0]] * 5, [0, 1] * 5)
    >>> from_tasks([old, new], names=["2025", "2026"]).spec.heads
    ((0, 1), (0, 1))
    """
    if not isinstance(tasks, list | tuple) or not all(isinstance(task, list | tuple) and len(task) for task in tasks):
        raise BadData(f"tasks={short(tasks)} must list tasks such as (x, y) or (train, test)")
    titles = _titles(names, len(tasks))
    who, facts = _per_task("groups", groups, len(tasks)), _per_task("columns", columns, len(tasks))
    sides = [_sides(task, who[i], facts[i], workers, i, collate) for i, task in enumerate(tasks)]
    require_equal_columns([train.columns for train, _ in sides], "columns")
    check_groups_apart((train.groups for train, _ in sides), (test.groups for _, test in sides if test is not None))
    encoding, known = Encoding.of(kind, [train for train, _ in sides]), Groups()
    codes = ColumnCodes([samples.columns for side in sides for samples in side if samples is not None])
    built = [_task(i, titles[i], side, encoding, known, codes) for i, side in enumerate(sides)]
    open_tasks = [task for task in built if task.test is task.data]
    carved = {task.index: task for task in hold_out_all(open_tasks, test_share, seed)} if open_tasks else {}
    stream = assembled(name, [carved.get(task.index, task) for task in built], encoding, transform)
    return replace(stream, groups=tuple(known.known))


def _per_task(name: str, given: Sequence[Any] | None, count: int) -> list[Any]:
    entries = [None] * count if given is None else list(given)
    if len(entries) != count:
        raise BadData(f"{name} has {len(entries)} entries for {count} tasks; give one per task")
    return entries


def _titles(names: Sequence[str] | None, count: int) -> list[str]:
    if names is None:
        return [str(index) for index in range(count)]
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise BadData(f"names={short(names)} must be a list with a name for every task")
    if len(names) != count:
        raise BadData(f"{len(names)} names for {count} tasks")
    if any(name is None for name in names):
        raise BadData(f"names={short(names)} must have a name for every task; None is none")
    return list(map(str, names))


def _sides(task: Sequence[Any], groups: Any, columns: Any, workers: int, index: int, collate: Collate | None) -> Sides:
    """Training and, where given, test samples of one task."""
    own, other = groups if isinstance(groups, tuple) else (groups, None)
    facts, test_facts = columns if isinstance(columns, tuple) else (columns, None)
    where = f"task {index}"
    refuse_containers(task[0], where)
    if is_dataset(task[0]) and not (len(task) > 1 and isinstance(task[1], str)):
        train = read(task[0], None, own, workers, where, facts, collate)
        held = read(task[1], None, other, workers, f"{where}, test", test_facts, collate) if len(task) > 1 else None
        return train, held
    if len(task) not in (2, 4):
        raise BadData(
            f"{where} has {len(task)} parts; give (x, y), (x, y, test_x, test_y) or (train, test) of Datasets"
        )
    train = read(task[0], task[1], own, workers, where, facts, collate)
    if len(task) == 2:
        return train, None
    return train, read(task[2], task[3], other, workers, f"{where}, test", test_facts, collate)


def _task(index: int, title: str, sides: Sides, encoding: Encoding, groups: Groups, codes: ColumnCodes) -> Task:
    """The encoded task; without test samples, `test` is `data` itself until they are carved out."""

    def encoded(samples: Samples, where: str) -> Data:
        targets = encoding.targets(samples.targets, f"{where} of task {index}")
        return samples.data(targets, groups.encode(samples.groups), codes.encode(samples.columns))

    train, test = sides
    data = encoded(train, "y")
    return Task(index, title, data, data if test is None else encoded(test, "test y"), encoding.classes(data.targets))
