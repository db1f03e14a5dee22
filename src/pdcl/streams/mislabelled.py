"""A stream with wrong labels in its training data: a known share of every task, seeded, test data untouched."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from pdcl.streams.checks import BadData
from pdcl.streams.data import Data
from pdcl.streams.task import Stream, Task


class Relabelled(Data):
    """Data whose targets are others; inputs are those of `data`."""

    def __init__(self, data: Data, targets: Tensor) -> None:
        self.data, self.targets, self.groups = data, targets, data.groups

    def fetch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        return self.data.fetch(index)[0], self.targets[index]

    def subset(self, index: Tensor) -> Relabelled:
        return Relabelled(self.data.subset(index), self.targets[index])


def mislabel(stream: Stream, share: float, seed: int = 0) -> Stream:
    """The same stream; in each task `share` of the training samples carry another class of the task."""
    if not 0 < share < 1:
        raise BadData(f"mislabelled={share} must lie between 0 and 1: the share of training labels to get wrong")
    if stream.spec.kind != "classification" or any(len(task.classes) < 2 for task in stream.tasks):
        raise BadData("mislabelled needs tasks with two classes or more each; leave it out for this stream")
    tasks = [replace(task, data=_mislabelled(task, share, seed)) for task in stream.tasks]
    return replace(stream, tasks=tasks, options={**stream.options, "mislabelled": share})


def _mislabelled(task: Task, share: float, seed: int) -> Relabelled:
    random = torch.Generator().manual_seed(1_000_003 * seed + task.index)
    count = round(share * len(task.data))
    wrong = torch.randperm(len(task.data), generator=random)[:count]
    classes = torch.tensor(task.classes)
    targets = task.data.targets.clone()
    place = (targets[wrong, None] == classes).long().argmax(1)
    shift = torch.randint(1, len(classes), (count,), generator=random)
    targets[wrong] = classes[(place + shift) % len(classes)]
    return Relabelled(task.data, targets)
