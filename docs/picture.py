"""The picture of the README: what four months do to each month's error, without limits and with them.

python docs/picture.py        (needs the extra `report`)
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pdcl
from pdcl.lab.figures.style import figure, look, save

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))

from months import LIMITS, MONTHS, month, new_learner  # noqa: E402


def errors(learner: Any) -> list[list[float]]:
    """Row j: the error of months 0 … j on fresh samples, after month j was learned."""
    found = []
    for newest, name in enumerate(MONTHS):
        learner.learn(*month(newest), name=name)
        found.append([1 - learner.evaluate(*month(k, stage="test")) for k in range(newest + 1)])
    return found


def draw() -> None:
    warnings.simplefilter("ignore", pdcl.LimitBroken)
    sides = {
        "Trained on each month alone": errors(pdcl.learner("finetune", "mlp:64", seed=0)),
        "pdcl, with limits and a memory": errors(new_learner()),
    }
    with figure(2.1, 1.05, columns=2, sharey=True) as (made, axes):
        for axis, (title, found) in zip(axes, sides.items(), strict=True):
            _side(axis, title, found)
        for k, row in enumerate(sides["pdcl, with limits and a memory"][:-1]):
            allowed = float(LIMITS.get(MONTHS[k], LIMITS["*"]).strip("+pt"))
            colour = look(k)["color"]
            axes[1].plot([k, len(MONTHS) - 1], [100 * row[k] + allowed] * 2, color=colour, lw=0.9, ls="--")
        axes[0].set_ylabel("error on that month's parts, %")
        axes[1].legend(title="parts of", title_fontsize=7, loc="upper left")
        axes[1].text(3, 13, "dashed: the month's limit", ha="right", fontsize=7, color="#57606a")
        save(made, ROOT / "docs" / "images", "months", ["png"])


def _side(axis: Any, title: str, found: list[list[float]]) -> None:
    for k, name in enumerate(MONTHS):
        axis.plot(
            range(k, len(MONTHS)), [100 * row[k] for row in found[k:]], label=name, **look(k) | {"linestyle": "-"}
        )
    axis.set_title(title)
    axis.set_xticks(range(len(MONTHS)), [f"after {name[5:]}" for name in MONTHS])
    axis.set_ylim(-3, 103)


if __name__ == "__main__":
    draw()
