"""When the state of a data-parallel run is saved: all ranks agree, and rank 0 writes."""

from __future__ import annotations

import signal
import time

from pdcl.errors import Interrupted
from pdcl.learning.loop import Loop
from pdcl.ranks import Ranks
from pdcl.records import checkpoint
from pdcl.records.record import Record
from pdcl.records.row_chain import RowChain
from pdcl.running.checkpointing import Pace
from pdcl.running.result import Clock
from pdcl.running.signals import Signals

# Agreeing takes one small reduction: not after every step.
ASK_EVERY = 20
SAVE = 1


class JointKeeper:
    """`Keeper` for several ranks. record: None on all ranks but the first, or where nothing is recorded."""

    def __init__(self, record: Record | None, pace: Pace, clock: Clock, signals: Signals, ranks: Ranks) -> None:
        self.record, self.pace, self.clock, self.signals, self.ranks = record, pace, clock, signals, ranks
        self.chain = RowChain()
        self._ask_every = min(ASK_EVERY, pace.steps or ASK_EVERY)
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
            name = signal.Signals(wish).name
            raise Interrupted(f"stopped by {name}; all is saved: continue with `pdcl resume`", 128 + wish)

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
