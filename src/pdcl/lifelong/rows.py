"""Rows of a table at a learner's doors: read by what the first task showed, which is saved with the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from pdcl.errors import UsageError
from pdcl.lifelong.entry import Entry
from pdcl.lifelong.warning import warn_people
from pdcl.streams.checks import BadData
from pdcl.streams.table import Table, TableTask, one_task, tasks_of
from pdcl.streams.table_reader import TableReader
from pdcl.streams.table_rows import are_dicts, is_frame, is_table_file, read_rows

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

Act = TypeVar("Act", bound=Callable[..., Entry])


def takes_tables(act: Act) -> Act:
    """`learn` or `adopt`, which takes a task of a table as well; its signature stays."""

    @wraps(act)
    def taking(learner: Learner, x: Any, y: Any = None, **options: Any) -> Entry:
        if isinstance(x, Table | TableTask):
            return _taught(learner, x, y, act, options)
        return act(learner, x, y, **options)

    return cast(Act, taking)


def _taught(
    learner: Learner, given: TableTask | Table, y: Any, act: Callable[..., Entry], options: dict[str, Any]
) -> Entry:
    """Learn or adopt a task of a table; the first one fits how all later rows are read."""
    task = given if isinstance(given, TableTask) else _only(given)
    stated = [name for name in ("groups", "columns", "kind") if options.get(name) is not None]
    if y is not None or stated:
        option = "label" if y is not None else stated[0]
        raise UsageError(f"y, groups, columns and kind of a table are named once: pdcl.table(…, {option}=…)")
    reader = learner.table or _fitted(learner, task)
    arrays = _arrays(reader, task)
    kind = {"kind": reader.layout.kind} if learner.spec is None else {}
    entry = act(learner, **{**options, "name": options.get("name") or task.name, **arrays, **kind})
    learner.table = reader
    return entry


def task_arrays(learner: Learner, task: TableTask) -> dict[str, Any]:
    """What `learn` takes: x, y, groups and columns. New and missing columns and values are warned of."""
    return _arrays(_reader(learner), task)


def _arrays(reader: TableReader, task: TableTask) -> dict[str, Any]:
    rows = task.rows
    labels, facts, owners = reader.labels(rows), reader.facts(rows), reader.owners(rows)
    return {"x": _encoded(reader, rows), "y": labels, "columns": facts, "groups": owners}


def inputs_of(learner: Learner, x: Any) -> Any:
    """Raw rows as the learner's inputs; anything else as it is."""
    # To a learner that learned from arrays, a DataFrame of numbers is an array and a dict may be one input of several.
    given = is_table(x) and not is_frame(x) if learner.table is None else is_table(x) or isinstance(x, dict)
    if not given:
        return x
    rows = x.rows if isinstance(x, TableTask) else _only(x).rows if isinstance(x, Table) else read_rows(x)
    return _encoded(_reader(learner), rows)


def known(learner: Learner, x: Any) -> tuple[Any, Any]:
    """Raw rows as inputs, and as labels where the rows hold them."""
    reader = learner.table
    if reader is None:
        return inputs_of(learner, x), None
    table = read_rows(x)
    return _encoded(reader, table), reader.labels(table) if reader.layout.label in table.columns else None


def audit_rows(learner: Learner, data: Any) -> dict[str, Any]:
    """Rows with labels as arrays of an audit set; the task column is its column `task`."""
    reader = _reader(learner)
    table = [data] if isinstance(data, TableTask) else data if isinstance(data, Table) else None
    if table is None:
        rows, name = read_rows(data), reader.layout.task
        named = name is not None and name in rows.columns
        table = list(tasks_of(rows, reader.layout if named else replace(reader.layout, task=None)))
    parts = [_arrays(reader, task) for task in table]
    arrays: dict[str, Any] = {"x": np.concatenate([part["x"] for part in parts])}
    arrays["y"] = [label for part in parts for label in part["y"]]
    if table[0].name is not None:
        arrays["task"] = [task.name for task in table for _ in range(len(task))]
    for name in reader.layout.columns:
        arrays[name] = [value for part in parts for value in part["columns"][name]]
    if reader.layout.groups is not None:
        arrays["group"] = [owner for part in parts for owner in part["groups"]]
    return arrays


def is_table(data: Any) -> bool:
    """Whether data are rows: a task of `pdcl.table`, a file, a DataFrame or a list of dicts."""
    return isinstance(data, Table | TableTask) or is_table_file(data) or is_frame(data) or are_dicts(data)


def task_of(learner: Learner, data: Any) -> TableTask:
    """New rows as one task."""
    return _only(data) if isinstance(data, Table) else one_task(data, _reader(learner).layout)


def _reader(learner: Learner) -> TableReader:
    if learner.table is None:
        raise BadData("these are rows of a table, and this learner's first task were arrays: give it arrays")
    return learner.table


def _only(table: Table) -> TableTask:
    if len(table) != 1:
        raise BadData(f"the table holds {len(table)} tasks; give one after another: for task in table: …")
    return table.tasks[0]


def _fitted(learner: Learner, task: TableTask) -> TableReader:
    if learner.spec is not None:
        raise UsageError(
            "this learner's first task were arrays, so it can't read a table; begin a new one with a table"
        )
    return TableReader.fit(task.rows, task.layout)


def _encoded(reader: TableReader, rows: Any) -> Any:
    x, notes = reader.encode(rows)
    for note in notes:
        warn_people(note)
    return x


def labels_of(learner: Learner, task: TableTask) -> list[Any]:
    """The labels of a task of a table, as the learner reads them."""
    return _reader(learner).labels(task.rows)
