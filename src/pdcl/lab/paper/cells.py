"""Cells of the tables that give reasons, and sections made of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from pdcl.lab.comparing.tables import MINUS


def mean(values: Mapping[int, float]) -> float:
    return statistics.fmean(values.values()) if values else math.nan


def shown(value: float, form: str = ".3g") -> str:
    return "–" if math.isnan(value) else f"{value:{form}}".replace("-", MINUS)


def row_of(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def section(text: str, columns: str, align: str, lines: Sequence[str]) -> str:
    """A text and the table below it; empty where the table is.

    columns: their names, with ` | ` between them; align: `l` or `r` for each.
    """
    rule = "".join("|---:" if side == "r" else "|---" for side in align)
    return "\n".join([text, "", row_of(columns), f"{rule}|", *lines]) if lines else ""
