"""Gaussian classes with task difficulty as a knob: the stream to use where the hard task must be known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.given import seed_of
from pdcl.streams.checks import BadData
from pdcl.streams.task import Stream
from pdcl.streams.task_list import from_tasks
from pdcl.streams.transform import Transform

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def load(
    tasks: int = 5,
    classes_per_task: int = 2,
    dim: int = 16,
    separation: float | Sequence[float] = 4.0,
    label_noise: float | Sequence[float] = 0.0,
    size: int | Sequence[int] = 200,
    test_size: int = 100,
    shared_classes: bool = False,
    contradictions: int = 0,
    seed: int = 0,
) -> Stream:
    """Classes are unit Gaussians whose centres lie `separation` apart inside a task.

    The Bayes error of two classes is Φ(−separation/2). `separation`, `label_noise` (the share of training labels that
    are moved to another class of the task) and `size` (training samples a task) are one number for all tasks or one per
    task. `shared_classes` makes the stream domain-incremental. `contradictions` adds that many training points a task
    which carry each of its labels once: with `shared_classes` and more of them than `dim`, logistic regression has a
    finite optimum, unique up to softmax's shift.
    """
    options = dict(locals())
    if dim < classes_per_task:
        raise BadData(f"dim is {dim}; {classes_per_task} classes at equal distances need at least as many dimensions")
    generator = np.random.default_rng(seed_of(seed))
    columns = [_per_task(name, options[name], tasks) for name in ("separation", "label_noise", "size")]
    parts = []
    for index, (apart, noise, count) in enumerate(zip(*columns, strict=True)):
        mixture = Mixture.drawn(classes_per_task, dim, apart, generator)
        first = 0 if shared_classes else index * classes_per_task
        x, y = mixture.sample(count, generator)
        both_x, both_y = mixture.contradictions(contradictions, generator)
        test_x, test_y = mixture.sample(test_size, generator)
        train_y = np.concatenate([_noisy(y, noise, classes_per_task, generator), both_y])
        parts.append((np.concatenate([x, both_x]), first + train_y, test_x, first + test_y))
    return replace(from_tasks(parts, name="synthetic", transform=Transform()), options=options)


@dataclass(frozen=True)
class Mixture:
    """Unit Gaussians around `centres` (classes, dim)."""

    centres: Floats

    @classmethod
    def drawn(cls, classes: int, dim: int, separation: float, generator: np.random.Generator) -> Mixture:
        """Centres on orthogonal directions, so that any two lie `separation` apart, around a random place."""
        directions, _ = np.linalg.qr(generator.normal(size=(dim, classes)))
        return cls(2 * generator.normal(size=dim) + separation / np.sqrt(2) * directions.T)

    def sample(self, count: int, generator: np.random.Generator) -> tuple[Floats, Integers]:
        """Classes in turn, so that all are equally frequent."""
        y = np.arange(count) % len(self.centres)
        return self.centres[y] + generator.normal(size=(count, self.centres.shape[1])), y

    def contradictions(self, count: int, generator: np.random.Generator) -> tuple[Floats, Integers]:
        """`count` points, each once with every label."""
        points, _ = self.sample(count, generator)
        return np.repeat(points, len(self.centres), axis=0), np.tile(np.arange(len(self.centres)), count)


def _noisy(y: Integers, noise: float, classes: int, generator: np.random.Generator) -> Integers:
    """Labels of which a share of `noise` are moved to another class."""
    wrong = generator.permutation(len(y)) < round(noise * len(y))
    return np.where(wrong, (y + generator.integers(1, max(classes, 2), len(y))) % classes, y)


def _per_task(name: str, value: Any, tasks: int) -> list[Any]:
    if not isinstance(value, Sequence):
        return [value] * tasks
    if len(value) != tasks:
        raise BadData(f"{name} has {len(value)} values for {tasks} tasks; give one number or one per task")
    return list(value)
