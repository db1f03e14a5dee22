"""When a run's state is saved: every so many steps or seconds, at each task's end, and when asked to stop."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from pdcl.errors import Interrupted, UsageError
from pdcl.learning.loop import Loop
from pdcl.records import checkpoint
from pdcl.records.record import Record
from pdcl.records.row_chain import RowChain
from pdcl.running.result import Clock
from pdcl.running.signals import Signals

DEFAULT = "30s"
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Pace:
    """How often within a task: after so many steps, or seconds, or never."""

    steps: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str | int) -> Self:
        """`500` steps, `30s`, `5m`, `never`.

        >>> Pace.parse("5m").seconds
        300.0
        """
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])|(\d+)|never", str(text).strip())
        if match is None or match[3] == "0":
            raise UsageError(f"checkpoint_every={text!r} must be a number of steps (500), a time (30s, 5m) or 'never'")
        if match[3]:
            return cls(steps=int(match[3]))
        return cls(seconds=float(match[1]) * _SECONDS[match[2]]) if match[1] else cls()


class Keeper:
    """Offered the loop after every step, saves it when it is time; stops the run once a signal was caught."""

    def __init__(
        self, record: Record, pace: Pace, clock: Clock, signals: Signals, now: Callable[[], float] = time.perf_counter
    ) -> None:
        self.record, self.pace, self.clock, self.signals, self.now = record, pace, clock, signals, now
        self.chain = RowChain()
        self._steps, self._last = 0, now()

    def __call__(self, loop: Loop) -> None:
        self._steps += 1
        if loop.position.step == 0 or self.signals.caught is not None or self._is_due():
            checkpoint.write(self.record.path, loop, self.record.position, self.clock.cost(), self.chain)
            self._steps, self._last = 0, self.now()
        if self.signals.caught is not None:
            self._stop(self.signals.caught)

    def _is_due(self) -> bool:
        if self.pace.steps is not None:
            return self._steps >= self.pace.steps
        return self.pace.seconds is not None and self.now() - self._last >= self.pace.seconds

    def _stop(self, number: int) -> None:
        name, path = signal.Signals(number).name, self.record.path
        raise Interrupted(f"stopped by {name}; all is saved: continue with `pdcl resume {path}`", 128 + number)
