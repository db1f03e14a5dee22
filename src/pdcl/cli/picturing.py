"""A picture that a terminal redraws in place while work goes on; nothing where there is no terminal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live

from pdcl.screen import Screen

# The picture is drawn by its own thread; hearing of progress only stores it.
REDRAWS = 4


class Pictured(ABC):
    """Use it in a `with` statement; the picture goes away at its end, printed lines stay."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Screen()
        self._live: Live | None = None

    @abstractmethod
    def picture(self) -> RenderableType:
        """What a terminal shows now."""

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            self._live = Live(
                get_renderable=self.picture, console=self.console, refresh_per_second=REDRAWS, transient=True
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
