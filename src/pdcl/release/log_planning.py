"""What two logs of these items can decide, from the log of the model in use alone; no look is taken."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pdcl.logs.reading import Form, Reader, read_log
from pdcl.printable import printable
from pdcl.release.comparing import beside, stated_of
from pdcl.release.foresight import drop_line, error_line
from pdcl.release.ledger import Ledger
from pdcl.release.ledgers import others_of
from pdcl.release.looks import Sample, level_of
from pdcl.release.pairing import Compared


def plan_logs(
    before: Any,
    limits: Any,
    *,
    by: str | None = None,
    groups: str | None = None,
    columns: Mapping[str, str] | None = None,
    metric: str | None = None,
    reader: Reader | None = None,
    confidence: float | None = None,
    looks: int | None = None,
    ledger: str | Path | None = None,
) -> str:
    """One line a limit. The arguments are those of `pdcl.compare`."""
    plan, stated = stated_of(limits)
    log = read_log(before, Form(dict(columns or {}), metric, reader), "before")
    case = Compared.of(log, log, stated, by or (plan.by if plan else None) or "task", groups)
    book, sample = Ledger(ledger or beside(plan, before)), Sample(case.marks, case.question(False)["audit"])
    looks = looks if plan is None or looks is not None else plan.looks
    confidence = confidence if plan is None or confidence is not None else plan.confidence
    looks, confidence = book.planned(looks, confidence, sample, others_of(book)[0])
    level = level_of(confidence, looks)
    head = f"With {looks} planned looks at {100 * confidence:g} % together:"
    lines = []
    for row, _ in case.made:
        name, units = printable(row.group), row.estimate.units
        told = drop_line(name, units, row.limit, level)
        lines.append(told if row.criterion == "drop" else error_line(name, units, level, row.limit))
    if not np.isin(case.old, (0.0, 1.0)).all():
        lines.append("These are scores, not right or wrong: they are judged by betting, which needs more items.")
    return "\n".join([head, *lines, "No look was taken, and the log after was not read.", ""])
