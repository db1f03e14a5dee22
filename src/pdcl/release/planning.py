"""What an audit set can certify by its size alone: to be known before a look is spent, or a task is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pdcl.printable import printable
from pdcl.release.criteria import criteria_of
from pdcl.release.estimates import certifiable, wanted
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
    max_error: float | None = None,
    ledger: str | Path | None = None,
) -> str:
    """Per group, the smallest error rate that its samples can certify in one of `looks` looks.

    Where the first look was taken, the ledger has fixed `looks` and `confidence`.
    """
    if max_error is not None:
        criteria_of(max_error)
    examined = as_audit(audit)
    book, sample = Ledger(ledger or examined.place), sample_of(examined)
    looks, confidence = book.planned(looks, confidence, sample, others_of(book)[0])
    level = level_of(confidence, looks)
    counts = sizes(examined, by, groups)
    lines = [plan_line(printable(name), count, level, max_error) for name, count in counts.items()]
    head = f"With {looks} planned looks at {100 * confidence:g} % together, at best (no error at all):"
    return "\n".join([head, *lines, "No look was taken.", ""])


def plan_line(name: str, count: int, level: float, max_error: float | None = None) -> str:
    line = f"  {name}: {count} samples can certify an error rate of {100 * certifiable(count, level):.2f} % or more"
    if max_error is not None and certifiable(count, level) > max_error:
        line += f"; {100 * max_error:g} % needs {wanted(max_error, level)}, {wanted(max_error, level) - count} more"
    return line
