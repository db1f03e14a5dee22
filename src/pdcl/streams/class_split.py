"""One data set split by class into a stream of tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from pdcl.given import seed_of, short, whole_of
from pdcl.streams.checks import BadData, check_groups_apart
from pdcl.streams.columns import ColumnCodes
from pdcl.streams.data import Collate, Data
from pdcl.streams.encoding import Encoding, assembled
from pdcl.streams.held_out import divided, draw_share, hold_out, hold_out_all
from pdcl.streams.inputs import refuse_containers
from pdcl.streams.labels import Groups, encode, in_order, labels_in
from pdcl.streams.samples import Samples, is_dataset, read
from pdcl.streams.task import Stream, Task
from pdcl.streams.texts import Tokenizer, tokenized
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
    columns: Any = None,
    test_columns: Any = None,
    transform: Transform | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    workers: int = 0,
    collate: Collate | None = None,
    tokenizer: Tokenizer | None = None,
) -> Stream:
    """A class-incremental stream: every task brings `classes_per_task` new classes (the last one what remains).

    x: arrays or tensors, a dict or tuple of them, a list of sequences of unequal length, or a Dataset, read lazily
    y: labels, any integers or strings; left out for a Dataset; the name of a column for one of Hugging Face
    test: test data as (x, y) or a Dataset; if it is left out, `test_share` of every class is set aside
    tasks: the classes of every task, in place of `classes_per_task`; classes that it leaves out are dropped
    order_seed: shuffles the order of the classes
    groups: one per sample; a group is never divided between training and test data
    columns: further facts of every sample by name, kept in `task.data.columns`
    transform: how inputs are scaled; if it is left out, bytes become 0 … 1, and floats of large scale are standardised
        by the first task's data
    seed: of the choice of test data
    workers: threads that read a Dataset
    collate: makes batches of a Dataset's inputs
    tokenizer: makes columns of a list of texts x (and of `test`'s): input_ids, attention_mask, …

    >>> stream = split([[0.0], [1.0], [2.0], [3.0]] * 5, ["cat", "dog", "owl", "fox"] * 5)
    >>> [task.name for task in stream.tasks]
    ['cat, dog', 'fox, owl']
    """
    if tokenizer is not None:
        x = tokenized(x, tokenizer)
        test = None if test is None else _tokenized_test(test, tokenizer)
    samples = read(x, y, groups, workers, "x, y", columns, collate)
    other = None if test is None else _read_test(test, y, test_groups, workers, test_columns, collate)
    _refuse_lonely(test, test_groups=test_groups, test_columns=test_columns)
    plan = plan_classes(labels_in(samples.targets), classes_per_task, tasks, order_seed)
    labels = tuple(label for members in plan for label in members)
    missing = None if tasks is None else -1
    encoded, codes = Groups(), ColumnCodes([samples.columns, *([] if other is None else [other.columns])])
    targets = encode(samples.targets, labels, "y", missing)
    data = samples.data(targets, encoded.encode(samples.groups), codes.encode(samples.columns))
    if other is None:
        train, held = _carved(data, test_share, seed)
    else:
        check_groups_apart([samples.groups], [other.groups])
        targets = encode(other.targets, labels, "test y", missing)
        train, held = data, other.data(targets, encoded.encode(other.groups), codes.encode(other.columns))
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
    position = {label: index for index, label in enumerate(labels)}
    heads = [tuple(position[label] for label in members) for members in plan]
    sides = zip(_by_task(train, heads), _by_task(test, heads), heads, strict=True)
    tasks = [Task(i, named(plan[i]), data, held, head) for i, (data, held, head) in enumerate(sides)]
    return assembled(name, tasks, Encoding("classification", labels), transform, fingerprint)


def plan_classes(
    found: list[Any], per_task: int, tasks: Sequence[Sequence[Any]] | None, order_seed: int | None
) -> list[list[Any]]:
    """The labels of every task, sorted inside a task."""
    if tasks is not None:
        return _checked_plan(found, tasks, order_seed)
    per_task = whole_of(per_task, "classes_per_task", 1)
    order: list[Any] = found
    if order_seed is not None:
        seed = seed_of(order_seed, "order_seed")
        order = [found[i] for i in np.random.default_rng(seed).permutation(len(found))]
    return [in_order(order[start : start + per_task]) for start in range(0, len(order), per_task)]


def _checked_plan(found: list[Any], tasks: Sequence[Sequence[Any]], order_seed: int | None) -> list[list[Any]]:
    if order_seed is not None:
        raise BadData("order_seed has no effect where tasks= names the classes; leave one of them out")
    if not _is_list(tasks) or not all(map(_is_list, tasks)):
        raise BadData(f"tasks={short(tasks)} must list the classes of every task, such as [[0, 1], [2, 3]]")
    named_labels = [label for members in tasks for label in members]
    twice = sorted({str(label) for label, count in Counter(named_labels).items() if count > 1})
    if twice:
        raise BadData(f"tasks= names {', '.join(twice)} twice; for classes that return, use from_tasks")
    known = set(found)
    absent = [label for label in named_labels if label not in known]
    if absent:
        raise BadData(f"tasks= names {absent}, which y doesn't hold; its labels are {found}")
    return [in_order(members) for members in tasks]


def _is_list(given: Any) -> bool:
    return isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)


def named(members: Sequence[Any]) -> str:
    """What a task of these classes is called."""
    return ", ".join(str(label) for label in members)


def _read_test(test: Any, y: Any, groups: Any, workers: int, columns: Any, collate: Collate | None) -> Samples:
    refuse_containers(test, "test")
    if is_dataset(test):
        return read(test, y if isinstance(y, str) else None, groups, workers, "test", columns, collate)
    if not isinstance(test, list | tuple) or len(test) != 2:
        raise BadData(f"test={short(test)} must be (x, y) or a Dataset")
    x, y = test
    return read(x, y, groups, workers, "test", columns)


def _tokenized_test(test: Any, tokenizer: Tokenizer) -> tuple[Any, Any]:
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise BadData(f"test is {type(test).__name__}; with tokenizer= give (texts, labels)")
    return tokenized(test[0], tokenizer, "test"), test[1]


def _refuse_lonely(test: Any, **of_test: Any) -> None:
    """An option of test data that isn't given has no effect."""
    for name, value in of_test.items():
        if test is None and value is not None:
            raise BadData(f"{name} has no effect without test; the test data is carved from x, with its own values")


def _carved(data: Data, share: float, seed: int) -> tuple[Data, Data]:
    """Divided over the whole stream at once, so that a group in several tasks is on one side in all of them."""
    return divided(data, draw_share(data.targets, data.groups, share, seed))


def _by_task(data: Data, heads: Sequence[Sequence[int]]) -> list[Data]:
    """The samples of every task in their order, by one sort; those of no task (target -1) are left out."""
    # The last entry is where -1 looks.
    task_of = torch.full((1 + sum(map(len, heads)),), len(heads))
    for task, head in enumerate(heads):
        task_of[list(head)] = task
    belongs = task_of[data.targets]
    rows = torch.split(torch.argsort(belongs, stable=True), torch.bincount(belongs, minlength=len(heads) + 1).tolist())
    return [data.subset(index) for index in rows[: len(heads)]]
