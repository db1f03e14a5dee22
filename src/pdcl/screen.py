"""What people see on a terminal: names that others chose can be read there, and do nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pdcl.printable import printable


class Screen(Console):
    """A console whose texts pass `printable`, and in which [brackets] are brackets unless `markup` is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        # Rich's own codes, such as those that move the cursor, are segments of control.
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, lines=True), segment.style)

    def on_broken_pipe(self) -> None:
        """As with `print`: the command decides what its exit code is."""
        raise BrokenPipeError
