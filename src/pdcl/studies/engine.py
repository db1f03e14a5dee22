"""The one interface between a study and whatever carries its runs: jobs go in, what became of them comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pdcl.studies.spec import RunSpec


@dataclass(frozen=True)
class Job:
    """A run and all that a process elsewhere needs to carry it out."""

    spec: RunSpec
    out: str
    plugins: tuple[str, ...] = ()
    snapshot: bool = True


@dataclass(frozen=True)
class Started:
    """Some process began this job."""

    job: Job


@dataclass(frozen=True)
class Ended:
    """A job is over: with a record at `path`, or with a `cause` (and `trace`, for those who want to know more).

    `note` is what a user should know of a run that came to its end.
    """

    job: Job
    seconds: float
    path: str | None = None
    accuracy: float | None = None
    cause: str | None = None
    trace: str = ""
    note: str = ""


class Engine(Protocol):
    """Carries jobs. A job that fails is an `Ended` with a cause, never an exception; other jobs go on."""

    @property
    def workers(self) -> int:
        """How many jobs run at a time, for estimates."""
        ...

    def submit(self, jobs: Sequence[Job]) -> Iterator[Started | Ended]:
        """Carry out all jobs; what happens is told as it happens, an `Ended` for every job."""
        ...

    def close(self) -> None:
        """End all that still runs. Records stay as they are and can be resumed."""
        ...
