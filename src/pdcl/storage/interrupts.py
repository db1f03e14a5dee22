"""Ctrl-C put off for a moment, where stopping half-way would leave something that is neither old nor new."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], object]


@contextmanager
def put_off() -> Iterator[None]:
    """Within `with`, signals that Python code answers wait; they are answered at its end."""
    waiting: list[tuple[int, FrameType | None]] = []
    before: dict[int, Handler] = {}

    def note(number: int, frame: FrameType | None) -> None:
        waiting.append((number, frame))

    try:
        # Only the main thread gets signals, and only it may set handlers.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    before[number] = handler
                    signal.signal(number, note)
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
        for which, frame in waiting:
            before[which](which, frame)
