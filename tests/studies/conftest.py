"""Small studies, and an engine that needs no processes: the interface is small enough to write one here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from pdcl.lab.studies import Ended, Job, Started
from pdcl.lab.studies.worker import Streams, carry_out

QUICK = """
[study]
name = "quick"
streams = ["synthetic"]
methods = ["finetune", "er"]
memory = [10]
seeds = 2

[streams.synthetic]
stream_options = { tasks = 2, size = 40, test_size = 20 }

[options]
epochs = 1
network = "linear"
"""


class InProcess:
    """Carries jobs one after another, here."""

    workers = 1

    def __init__(self) -> None:
        self.streams = Streams()
        self.jobs: list[Job] = []

    def submit(self, jobs: Sequence[Job]) -> Iterator[Started | Ended]:
        for job in jobs:
            self.jobs.append(job)
            yield Started(job)
            yield carry_out(job, self.streams, set())

    def map(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
        return [function(argument) for argument in arguments]

    def close(self) -> None:
        pass


@pytest.fixture
def engine() -> InProcess:
    return InProcess()


@pytest.fixture
def quick() -> str:
    return QUICK
