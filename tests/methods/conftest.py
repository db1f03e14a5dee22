"""Small streams and prepared learners for the methods' own tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pdcl.lab.benchmarks.synthetic import load
from pdcl.learning.batches import Batch
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule
from pdcl.lifelong.learner import Learner
from pdcl.methods.catalog import method
from pdcl.streams.task import Stream

Trained = Callable[..., Learner]


@pytest.fixture
def stream() -> Stream:
    """Three tasks of two Gaussian classes in eight dimensions."""
    return load(tasks=3, dim=8, size=60, test_size=40)


@pytest.fixture
def learner(stream: Stream) -> Trained:
    """A learner of this name, prepared for the stream but not trained."""

    def make(name: str, **options: Any) -> Learner:
        plain = {"optimizer": "sgd", "lr": 0.1, "keep_optimizer": False}
        made: Learner = method(name).load()(network=options.pop("network", "mlp:16"), **{**plain, **options})
        made.prepare(stream.spec)
        return made

    return make


@pytest.fixture
def trained(stream: Stream, learner: Trained) -> Trained:
    """The same after some tasks of the stream."""

    def make(name: str, tasks: int = 3, epochs: int = 2, batch: int = 10, **options: Any) -> Learner:
        from dataclasses import replace

        made = learner(name, **options)
        Loop(made, replace(stream, tasks=stream.tasks[:tasks]), Schedule(epochs, batch)).run()
        return made

    return make


@pytest.fixture
def batch(stream: Stream) -> Callable[..., Batch]:
    """The first samples of a task."""

    def make(task: int = 0, size: int = 10) -> Batch:
        index = torch.arange(size)
        x, y = stream.tasks[task].data.fetch(index)
        return Batch(x, y, index, task)

    return make
