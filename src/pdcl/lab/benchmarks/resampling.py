"""Training samples left out, relabelled or moved between tasks. Test data stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from pdcl.lab.benchmarks.changed_data import ChangedData
from pdcl.streams.checks import BadData
from pdcl.streams.columns import CodedColumn
from pdcl.streams.data import Data
from pdcl.streams.joined import joined
from pdcl.streams.task import Spec, Task

PER_CLASS, UNBALANCED, NOISE, BLURRY = 2, 3, 4, 5
TRUE_LABEL = "true_label"


def domains(tasks: Sequence[Task], count: int) -> list[Task]:
    """`count` tasks, each with the samples and classes of all `tasks`."""
    train, test = joined([task.data for task in tasks]), joined([task.test for task in tasks])
    classes = tuple(sorted({label for task in tasks for label in task.classes}))
    return [Task(index, f"domain {index}", train, test, classes) for index in range(count)]


def per_class(tasks: Sequence[Task], spec: Spec, count: int, seed: int) -> list[Task]:
    """At most `count` training samples of each class in each task, drawn at random."""
    _require_classes(spec, "per_class")
    if all(int(task.data.targets.bincount().max()) <= count for task in tasks):
        raise BadData(f"per_class={count} has no effect: no class of a task has more training samples")
    return [_thinned(task, lambda label, have: count, (seed, PER_CLASS, task.index)) for task in tasks]


def unbalanced(tasks: Sequence[Task], spec: Spec, ratio: float, seed: int) -> list[Task]:
    """Class c keeps the share ratio^(−r_c / (C − 1)) of its training samples; r is a random ranking 0 … C − 1.

    The first class of the ranking keeps all, the last one 1/ratio, and none fewer than one sample.
    """
    _require_classes(spec, "unbalanced")
    if spec.outputs < 2:
        raise BadData("unbalanced needs at least two classes")
    rank = np.random.default_rng((seed, UNBALANCED)).permutation(spec.outputs)
    shares = ratio ** (-rank / (spec.outputs - 1))

    def wanted(label: int, have: int) -> int:
        return max(1, round(float(shares[label]) * have))

    return [_thinned(task, wanted, (seed, UNBALANCED, task.index)) for task in tasks]


def _thinned(task: Task, wanted: Callable[[int, int], int], seed: tuple[int, ...]) -> Task:
    """`wanted(class, how many there are)` samples of each class at most, in their old order."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(task.data)))
    labels = task.data.targets[order]
    kept = []
    for label in labels.unique().tolist():
        members = order[labels == label]
        kept.append(members[: wanted(label, len(members))])
    return replace(task, data=task.data.subset(torch.cat(kept).sort().values))


def noisy(tasks: Sequence[Task], spec: Spec, share: float, seed: int) -> list[Task]:
    """round(share · n) of the n training labels of every task become another label of the task, each as likely.

    The column `true_label` of the training data keeps what every label was.
    """
    _require_classes(spec, "noise")
    if not any(round(share * len(task.data)) for task in tasks):
        raise BadData(f"noise={share} changes no label: the largest task has {max(len(task.data) for task in tasks)}")
    return [replace(task, data=_relabelled(task, spec, share, seed)) for task in tasks]


def _relabelled(task: Task, spec: Spec, share: float, seed: int) -> Data:
    classes = torch.tensor(task.classes)
    if len(classes) < 2:
        raise BadData(f"noise needs two classes in every task; task {task.index} ({task.name!r}) has one")
    generator = np.random.default_rng((seed, NOISE, task.index))
    true = task.data.targets
    wrong = torch.from_numpy(generator.permutation(len(true)) < round(share * len(true)))
    steps = torch.from_numpy(generator.integers(1, len(classes), len(true)))
    other = classes[(torch.searchsorted(classes, true) + steps) % len(classes)]
    names = spec.labels or tuple(range(spec.outputs))
    return ChangedData(
        task.data, targets=torch.where(wrong, other, true), columns={TRUE_LABEL: CodedColumn(true, names)}
    )


def blurry(tasks: Sequence[Task], share: float, seed: int) -> list[Task]:
    """Neighbouring tasks k and k + 1 exchange ⌊share/2 · min(n_k, n_{k+1})⌋ training samples, drawn at random.

    Every training sample stays in the stream exactly once, and tasks keep their sizes. `classes` of a task are all that
    its training data then holds.
    """
    if len(tasks) < 2:
        raise BadData("blurry needs at least two tasks")
    sizes = [len(task.data) for task in tasks]
    across = [int(share / 2 * min(pair)) for pair in pairwise(sizes)]
    if not any(across):
        raise BadData(f"blurry={share} moves no sample: the tasks have {sizes} training samples")
    before, after = [0, *across], [*across, 0]
    cuts = [_cut(size, before[k], after[k], (seed, BLURRY, k)) for k, size in enumerate(sizes)]
    return [_blurred(tasks, cuts, k) for k in range(len(tasks))]


def _cut(size: int, back: int, on: int, seed: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Positions that stay, that go to the task before and that go to the task after."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(size))
    return order[back + on :].sort().values, order[:back], order[back : back + on]


def _blurred(tasks: Sequence[Task], cuts: Sequence[tuple[Tensor, Tensor, Tensor]], k: int) -> Task:
    parts = [tasks[k].data.subset(cuts[k][0])]
    if k > 0:
        parts.append(tasks[k - 1].data.subset(cuts[k - 1][2]))
    if k + 1 < len(tasks):
        parts.append(tasks[k + 1].data.subset(cuts[k + 1][1]))
    data = joined([part for part in parts if len(part)])
    classes = tuple(data.targets.unique().tolist()) if tasks[k].classes else ()
    return replace(tasks[k], data=data, classes=tuple(sorted({*classes, *tasks[k].classes})))


def _require_classes(spec: Spec, option: str) -> None:
    if spec.kind != "classification":
        raise BadData(f"{option} needs classes; this stream is for {spec.kind}")
