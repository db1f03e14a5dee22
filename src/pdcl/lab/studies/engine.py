"""Engine protocol: submit jobs, yield Started and Ended; map a function over arguments. And what engines share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from pdcl.errors import WorkFailed
from pdcl.lab.studies.spec import RunSpec


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


@dataclass(frozen=True)
class Call:
    """A function of a module and its argument, for work that isn't a run."""

    function: Callable[[Any], Any]
    argument: Any
    place: int = 0


@dataclass(frozen=True)
class Returned:
    """What a call gave, or the cause that it gave nothing."""

    job: Call
    value: Any = None
    cause: str | None = None
    trace: str = ""


Work = Job | Call
Notice = Started | Ended | Returned


class Engine(Protocol):
    """Carries jobs. A job that fails is an `Ended` with a cause, never an exception; other jobs go on."""

    @property
    def workers(self) -> int:
        """How many jobs run at a time, for estimates."""

    def submit(self, jobs: Sequence[Job]) -> Iterator[Started | Ended]:
        """Carry out all jobs; what happens is told as it happens, an `Ended` for every job."""

    def map(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
        """function(argument) for each, in order. Raises WorkFailed for the first that fails."""

    def close(self) -> None:
        """End all that still runs. Records stay as they are and can be resumed."""


class Carrier(ABC):
    """An engine that only has to say how work is carried; close it, or use it in a `with` statement."""

    @abstractmethod
    def carry(self, work: Sequence[Work]) -> Iterator[Notice]:
        """Started for every job that begins; Ended or Returned for all work."""

    @abstractmethod
    def close(self) -> None:
        """End all that still runs."""

    def submit(self, jobs: Sequence[Job]) -> Iterator[Started | Ended]:
        for notice in self.carry(jobs):
            assert not isinstance(notice, Returned)
            yield notice

    def map(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
        found: dict[int, Any] = {}
        for notice in self.carry([Call(function, argument, place) for place, argument in enumerate(arguments)]):
            if isinstance(notice, Returned):
                if notice.cause is not None:
                    raise WorkFailed(f"{notice.cause}\n{notice.trace}".strip())
                found[notice.job.place] = notice.value
        return [found[place] for place in range(len(arguments))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()


def failed(work: Work, cause: str, trace: str = "", seconds: float = 0.0) -> Ended | Returned:
    """The end of work that came to nothing."""
    if isinstance(work, Call):
        return Returned(work, cause=cause, trace=trace)
    return Ended(work, seconds, cause=cause, trace=trace)
