"""One look for every figure: the same sizes, fonts and colours, told apart without colour too."""

from __future__ import annotations

import itertools
import re
import textwrap
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from pdcl.storage.disk import write_whole

# Okabe and Ito's colours, yellow darkened so that it shows on paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1b1f24", "#B5A900")
MARKERS = ("o", "s", "D", "^", "X", "v", "P", "*")
DASHES = ("-", "--", ":", "-.", (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----", "++++", "oooo")
# Methods in the order of the paper's argument. Each has its look in every figure.
METHODS = ("er", "er-ring", "agem", "gss", "xder", "pdcl0", "pdcl", "pdcl-s")
LONGEST = 100
# Beyond this a legend leaves no room for what it is about.
NAME_WIDTH = 28
FORMATS = ("svg", "pdf", "png")
# Inches: the width of one column of a two-column paper, and the usual height to it.
SIZE = (3.4, 2.5)

LOOK: Any = {
    "figure.figsize": SIZE, "figure.constrained_layout.use": True, "font.size": 8, "axes.titlesize": 8,
    "axes.labelsize": 8, "legend.fontsize": 7, "xtick.labelsize": 7, "ytick.labelsize": 7, "text.parse_math": False,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": "#e1e4e8", "grid.linewidth": 0.5, "hatch.linewidth": 0.4,
    "lines.linewidth": 1.3, "lines.markersize": 4, "legend.frameon": False, "pdf.fonttype": 42, "svg.fonttype": "none",
    # The same figure is the same file, so that a repository of a paper shows real changes only.
    "svg.hashsalt": "pdcl",
}  # fmt: skip


def look(k: int) -> dict[str, Any]:
    """Colour, marker and dash of the k-th method or task."""
    return {
        "color": COLOURS[k % len(COLOURS)],
        "marker": MARKERS[k % len(MARKERS)],
        "linestyle": DASHES[(k + k // len(COLOURS)) % len(DASHES)],
    }


def shortened(name: str) -> str:
    """A task's name as a legend has room for it."""
    return textwrap.shorten(name, NAME_WIDTH, placeholder="…")


def ordered(labels: Iterable[str], first: Sequence[str] = METHODS) -> list[str]:
    """Names in the order of `first`; others come after, by name."""
    return sorted(labels, key=lambda name: (first.index(name) if name in first else len(first), name))


def places(labels: Iterable[str]) -> dict[str, int]:
    """The number by which each method looks as it does: the same in every figure; others take numbers that are free.

    >>> places(["pdcl", "derpp", "er", "even"])
    {'er': 0, 'pdcl': 6, 'derpp': 1, 'even': 2}
    """
    found = ordered(set(labels))
    taken = {label: METHODS.index(label) for label in found if label in METHODS}
    free = (k for k in itertools.count() if k not in taken.values())
    return taken | {label: next(free) for label in found if label not in METHODS}


@contextmanager
def figure(width: float = 1.0, height: float = 1.0, rows: int = 1, columns: int = 1, **more: Any) -> Iterator[Any]:
    """(figure, axes) in the house style. No display is needed, and nothing stays open."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(LOOK):
        made = Figure(figsize=(SIZE[0] * width, SIZE[1] * height))
        FigureCanvasAgg(made)
        yield made, made.subplots(rows, columns, **more)


def save(made: Any, out: Path, name: str, formats: Sequence[str] | None = None) -> list[Path]:
    """The figure in every format, or in these."""
    from matplotlib import rc_context

    paths = [out / f"{_short(name)}.{form}" for form in formats or FORMATS]
    with rc_context(LOOK):
        # Laid out once, not once per format.
        made.draw_without_rendering()
        made.set_layout_engine("none")
        for path in paths:
            dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(path.suffix[1:], {})
            content = BytesIO()
            made.savefig(content, format=path.suffix[1:], dpi=300, metadata=dated)
            write_whole(path, content.getvalue())
    return paths


def _short(name: str) -> str:
    """A name that any file system takes and that stays in its directory; the end of a long one is its checksum."""
    name = re.sub(r"[\0/\\]|^\.+", "_", name)
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 9]}-{zlib.crc32(name.encode()):08x}"
