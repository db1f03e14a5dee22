"""SIGTERM and SIGINT as a wish to stop at the next safe point, instead of the end of the process."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

WISHES = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """Within `with`, the first signal is noted in `caught`; a second one acts as it would have without us."""

    def __init__(self) -> None:
        self.caught: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread may set handlers; elsewhere signals keep their meaning.
        if threading.current_thread() is threading.main_thread():
            for number in WISHES:
                self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.caught = number
        self._restore()

    def _restore(self) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()
