"""`pdcl.table`: a CSV or Parquet file, or a DataFrame, as tasks that a learner takes as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdcl.errors import UsageError
from pdcl.given import short
from pdcl.printable import counted
from pdcl.streams.checks import BadData
from pdcl.streams.table_reader import Layout, TableReader
from pdcl.streams.table_rows import Rows, read_rows
from pdcl.streams.task import Stream


@dataclass(frozen=True, repr=False)
class TableTask:
    """The rows of one task, as they were written; the learner's own `TableReader` makes numbers of them."""

    name: str | None
    rows: Rows
    layout: Layout

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<TableTask {self.name!r}: {len(self)} rows of {self.rows.place}>"


@dataclass(frozen=True, repr=False)
class Table(Sequence[TableTask]):
    """Tasks in the order in which their names come first. `stream()` is for `pdcl.run`."""

    tasks: tuple[TableTask, ...]

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: Any) -> Any:
        return self.tasks[index]

    def __iter__(self) -> Iterator[TableTask]:
        return iter(self.tasks)

    def __repr__(self) -> str:
        names = ", ".join(str(task.name) for task in self.tasks)
        return f"<Table of {counted(len(self), 'task')}: {names}>"

    def stream(self, name: str = "table", **options: Any) -> Stream:
        """The tasks as a stream, read as the first one shows; options are those of `pdcl.from_tasks`."""
        from pdcl.streams.task_list import from_tasks

        reader = TableReader.fit(self.tasks[0].rows, self.tasks[0].layout)
        data = [(reader.encode(task.rows)[0], reader.labels(task.rows)) for task in self.tasks]
        given: dict[str, list[Any]] = {
            "columns": [reader.facts(task.rows) for task in self],
            "groups": [reader.owners(t.rows) for t in self],
        }
        told: dict[str, Any] = {key: values for key, values in given.items() if values[0] is not None}
        kind: Any = reader.layout.kind
        return from_tasks(data, name=name, kind=kind, names=[str(t.name) for t in self], **told, **options)


def table(
    source: str | Path | Any,
    *,
    label: str,
    task: str | None = None,
    groups: str | None = None,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    kind: str = "classification",
) -> Table:
    """A table as tasks: `for task in pdcl.table("faults.csv", label="kind", task="month"): learner.learn(task)`.

    source: a .csv, .tsv or .parquet file, a DataFrame or a list of dicts. label: the column to predict. task: the
    column that says which task a row belongs to; without it all rows are one task. All other columns are inputs:
    numbers, dates (ISO), or categories, as the first task shows. drop: columns to leave out. categories: columns of
    numbers that are names. columns: inputs that a limit may name ("site=east"). groups: whose rows these are, such as
    a patient; it is no input. kind: "classification" or "regression".

    >>> import pdcl
    >>> rows = [{"bar": 6.1, "site": "east", "kind": "leak"}, {"bar": None, "site": "west", "kind": "ok"}]
    >>> pdcl.table(rows, label="kind")
    <Table of 1 task: None>
    """
    if kind not in ("classification", "regression"):
        raise UsageError(f'kind={short(kind)} must be "classification" or "regression"')
    layout = Layout(
        _name(label, "label"),
        None if task is None else _name(task, "task"),
        None if groups is None else _name(groups, "groups"),
        _names(columns, "columns"),
        _names(drop, "drop"),
        _names(categories, "categories"),
        kind,
    )
    rows = read_rows(source)
    for option in ("label", "task", "groups"):
        if (name := getattr(layout, option)) is not None:
            rows.full_column(name, option)
    for option in ("columns", "drop", "categories"):
        for name in getattr(layout, option):
            rows.column(name, option)
    if both := sorted(layout.apart & {*layout.columns, *layout.categories}):
        raise UsageError(
            f"column {both[0]!r} is named twice: it is no input, so leave it out of columns and categories"
        )
    return Table(tuple(tasks_of(rows, layout)))


def tasks_of(rows: Rows, layout: Layout) -> Iterator[TableTask]:
    """The rows of each task, in the order in which the names of tasks come first."""
    if layout.task is None:
        yield TableTask(None, rows, layout)
        return
    names = [str(value).strip() for value in rows.columns[layout.task]]
    places: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        places.setdefault(name, []).append(row)
    for name, own in places.items():
        yield TableTask(name, rows.taken(own), layout)


def one_task(source: Any, layout: Layout) -> TableTask:
    """New data of a model that reads this layout: all of it is one task, named by its task column where it has one."""
    if isinstance(source, TableTask):
        return source
    rows = read_rows(source)
    held = layout.task is not None and layout.task in rows.columns
    found = list(tasks_of(rows, layout)) if held else [TableTask(None, rows, layout)]
    if len(found) > 1:
        names = [task.name for task in found]
        raise BadData(f"{rows.place} holds {len(found)} tasks, {names[:5]}, by its column {layout.task!r}; give one")
    return found[0]


def _name(given: Any, option: str) -> str:
    if not isinstance(given, str) or not given:
        raise UsageError(f"{option}={short(given)} must be the name of a column")
    return given


def _names(given: Any, option: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise UsageError(f"{option}={short(given)} must be a list of names of columns")
    return tuple(_name(each, option) for each in given)
