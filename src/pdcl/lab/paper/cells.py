"""Cells of the tables that give reasons."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

from pdcl.records.tables import MINUS


def mean(values: Mapping[int, float]) -> float:
    return statistics.fmean(values.values()) if values else math.nan


def shown(value: float, form: str = ".3g") -> str:
    return "–" if math.isnan(value) else f"{value:{form}}".replace("-", MINUS)


def row_of(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
