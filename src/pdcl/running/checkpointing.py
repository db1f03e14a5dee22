"""When a run's state is saved: every so many steps or seconds, at each task's end, and when asked to stop."""

from __future__ import annotations

import re
import signal
import time
from dataclasses import dataclass
from typing import Self

from pdcl.errors import Interrupted, UsageError
from pdcl.learning.loop import Loop
from pdcl.ranks import ALONE, Ranks
from pdcl.records import checkpoint
from pdcl.records.record import Record
from pdcl.records.row_chain import RowChain
from pdcl.running.result import Clock
from pdcl.running.signals import Signals

DEFAULT = "30s"
# Agreeing among ranks takes one small reduction: not after every step.
ASK_EVERY = 20
SAVE = 1
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
    """Offered the loop after every step, saves it when it is time; stops the run once a signal was caught.

    Of several ranks all agree on both, and rank 0 writes. record: None on the others, or where nothing is recorded.
    """

    def __init__(self, record: Record | None, pace: Pace, clock: Clock, signals: Signals, ranks: Ranks = ALONE) -> None:
        self.record, self.pace, self.clock, self.signals, self.ranks = record, pace, clock, signals, ranks
        self.chain = RowChain()
        self._ask_every = 1 if ranks.alone else min(ASK_EVERY, pace.steps or ASK_EVERY)
        self._steps, self._last = 0, time.perf_counter()

    def __call__(self, loop: Loop) -> None:
        self._steps += 1
        between_tasks = loop.position.step == 0
        if not between_tasks and self._steps % self._ask_every:
            return
        wish = self.ranks.largest(self.signals.caught or (SAVE if between_tasks or self._is_due() else 0))
        if wish:
            self._save(loop)
        if wish > SAVE:
            where = "" if self.record is None else f" {self.record.path}"
            name = signal.Signals(wish).name
            raise Interrupted(f"stopped by {name}; all is saved: continue with `pdcl resume{where}`", 128 + wish)

    def _is_due(self) -> bool:
        if self.pace.steps is not None:
            return self._steps >= self.pace.steps
        return self.pace.seconds is not None and time.perf_counter() - self._last >= self.pace.seconds

    def _save(self, loop: Loop) -> None:
        loop.synchronise()
        if self.record is not None:
            checkpoint.write(self.record.path, loop, self.record.position, self.clock.cost(), self.chain)
        self.ranks.wait()
        self._steps, self._last = 0, time.perf_counter()
