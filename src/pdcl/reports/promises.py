"""A table of promises as a page shows it: plain texts, cut to a bearable length."""

from __future__ import annotations

from typing import Any

from pdcl.judging.table import Promises

LONGEST = 400
MOST_ROWS = 1000


def shown(promises: Promises) -> dict[str, Any]:
    """Headings, and of each row its cells and its verdict."""
    told = zip(promises.rows[:MOST_ROWS], promises.cells, strict=False)
    rows = [{"cells": [cell[:LONGEST].strip() for cell in cells], "verdict": str(row.verdict)} for row, cells in told]
    return {"headings": promises.headings, "rows": rows, "notes": promises.notes}


def judged(content: Any) -> dict[str, Any] | None:
    """The same of a table from a file; None where no row was measured."""
    promises = Promises.from_json(content)
    return shown(promises) if any(row.samples for row in promises) else None
