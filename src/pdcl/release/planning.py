"""What an audit set can certify by its size alone: to be known before a look is spent, or a task is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pdcl.printable import printable
from pdcl.release.amounts import Stated, amount_of
from pdcl.release.criteria import criteria_of
from pdcl.release.foresight import drop_line, error_line
from pdcl.release.ledger import Ledger
from pdcl.release.ledgers import others_of
from pdcl.release.looks import level_of
from pdcl.release.remembering import sample_of
from pdcl.streams.audits import Audit, as_audit


def sizes(audit: Audit, by: str = "auto", groups: str | None = None) -> dict[str, int]:
    """Distinct samples, or groups of samples, by group of the gate."""
    if by == "auto":
        by = "task" if "task" in audit.columns else "all"
    values = {"all": np.full(len(audit), "all"), "class": audit.y}.get(by)
    values = audit.column(by, f"by={by}") if values is None else values
    clusters = None if groups is None else audit.column(groups, f"groups={groups}")
    names = np.asarray([str(value) for value in values.tolist()])
    alike = audit.numbers() if clusters is None else clusters
    return {name: len(np.unique(alike[names == name])) for name in dict.fromkeys(names.tolist())}


def plan_text(
    audit: Any,
    by: str = "auto",
    groups: str | None = None,
    confidence: float | None = None,
    looks: int | None = None,
    max_error: Stated | None = None,
    ledger: str | Path | None = None,
    max_drop: Stated | None = None,
) -> str:
    """Per group, what its samples can decide in one of `looks` looks.

    Where the first look was taken, the ledger has fixed `looks` and `confidence`.
    """
    examined = as_audit(audit)
    return told(examined, Ledger(ledger or examined.place), by, groups, confidence, looks, max_error, max_drop)


def told(
    audit: Audit,
    book: Ledger,
    by: str,
    groups: str | None,
    confidence: float | None,
    looks: int | None,
    max_error: Stated | None,
    max_drop: Stated | None,
) -> str:
    """The lines of a plan, for audit data that may not be on disk yet."""
    error = None if max_error is None else amount_of(max_error, "max_error")
    drop = None if max_drop is None else amount_of(max_drop, "max_drop")
    if error is not None or drop is not None:
        criteria_of(error, max_drop=drop)
    looks, confidence = book.planned(looks, confidence, sample_of(audit), others_of(book)[0])
    level = level_of(confidence, looks)
    lines = []
    for name, count in sizes(audit, by, groups).items():
        if drop is not None:
            lines.append(drop_line(printable(name), count, drop, level))
        if error is not None or drop is None:
            lines.append(error_line(printable(name), count, level, error))
    best = "" if drop is not None else ", at best (no error at all)"
    head = f"With {looks} planned looks at {100 * confidence:g} % together{best}:"
    return "\n".join([head, *lines, "No look was taken.", ""])
