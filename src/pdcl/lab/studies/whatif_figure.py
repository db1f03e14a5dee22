"""A what-if curve and its price line, as a small figure."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from pdcl.errors import UsageError
from pdcl.lab.studies.whatif import Curve, line
from pdcl.storage.disk import reported, write_whole


def draw(found: Curve, path: str | Path) -> Path:
    """Points with two standard errors, and the line −λγ. The file's ending says the format."""
    from matplotlib.figure import Figure

    place = Path(path)
    figure = Figure(figsize=(5.2, 3.4), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    changes = [0.0, *(point.change for point in found.points)]
    ends = [min(changes), max(changes)]
    heights = [line(found.dual, end) for end in ends]
    axes.plot(ends, heights, color="#888888", linewidth=1.2, label=f"−λγ, λ = {found.dual:.3g}")
    spread = [2 * (point.error or 0.0) for point in found.points]
    gains = [point.gain for point in found.points]
    axes.errorbar(changes[1:], gains, yerr=spread, fmt="o", color="#1f5fa8", capsize=3, label="P(ε + γ) − P(ε)")
    axes.plot(0, 0, "o", color="black", markersize=4)
    axes.set_xlabel(f"γ: change of the tolerance of {found.name!r} (ε = {found.tolerance:.3g})")
    axes.set_ylabel("change of the current task's loss")
    axes.set_title(f"{100 * found.share_above:.0f} % of the points above the line", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    # matplotlib is given no path: it would follow a link of that name.
    picture, form = BytesIO(), place.suffix.removeprefix(".") or "png"
    if form not in (known := figure.canvas.get_supported_filetypes()):
        raise UsageError(f"{place} can't be drawn: .{form} is none of {', '.join(sorted(known))}")
    figure.savefig(picture, format=form)
    with reported(place):
        write_whole(place, picture.getvalue())
    return place
