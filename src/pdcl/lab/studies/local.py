"""The first engine: processes on this machine, one thread each."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from pdcl.errors import UsageError
from pdcl.lab.studies.engine import Carrier, Ended, Job, Notice, Returned, Started, Work, failed
from pdcl.lab.studies.worker import serve

GRACE_SECONDS = 5.0


@dataclass
class _Worker:
    """A process and what it works on."""

    process: BaseProcess
    connection: Connection
    job: Work | None = None

    @classmethod
    def start(cls) -> _Worker:
        # Spawned, never forked: torch's threads don't survive a fork, and Windows knows none.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        return cls(process, ours)

    def give(self, job: Work) -> None:
        self.job = job
        # One that died while it was idle is found out by `outcome`.
        with suppress(OSError):
            self.connection.send(job)

    def outcome(self) -> Ended | Returned:
        """What became of the job; a process that died without a word is one way for it to end."""
        assert self.job is not None
        try:
            ended: Ended | Returned = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
            ended = failed(self.job, f"its process {how}; if memory ran out, run fewer at a time with --workers")
        self.job = None
        return ended

    def ask_to_end(self) -> None:
        """Stop the workers: an idle one ends at once, a busy one saves the state of its run first."""
        self.connection.close()
        if self.process.is_alive():
            self.process.terminate()

    def end(self) -> None:
        self.process.join(GRACE_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@dataclass
class LocalProcesses(Carrier):
    """`workers` processes that are kept from job to job, so that what they loaded stays loaded."""

    workers: int = 2
    _pool: list[_Worker] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise UsageError(f"workers={self.workers} must be at least 1")

    def carry(self, work: Sequence[Work]) -> Iterator[Notice]:
        waiting = deque(work)
        try:
            while waiting or any(worker.job for worker in self._pool):
                yield from self._hand_out(waiting)
                yield from self._collect()
        except BaseException:
            self.close()
            raise

    def _hand_out(self, waiting: deque[Work]) -> Iterator[Started]:
        self._pool = [worker for worker in self._pool if worker.job or worker.process.is_alive()]
        busy = sum(worker.job is not None for worker in self._pool)
        while len(self._pool) < min(self.workers, busy + len(waiting)):
            self._pool.append(_Worker.start())
        for worker in self._pool:
            if worker.job is None and waiting:
                job = waiting.popleft()
                worker.give(job)
                if isinstance(job, Job):
                    yield Started(job)

    def _collect(self) -> Iterator[Ended | Returned]:
        busy: dict[Any, _Worker] = {worker.connection: worker for worker in self._pool if worker.job}
        for ready in wait(list(busy)):
            yield busy[ready].outcome()

    def close(self) -> None:
        for worker in self._pool:
            worker.ask_to_end()
        for worker in self._pool:
            worker.end()
        self._pool = []
