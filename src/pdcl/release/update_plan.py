"""`pdcl update --plan`: what the audit set, with this month's part of it, can decide; nothing is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pdcl.errors import UsageError
from pdcl.given import path_of
from pdcl.lifelong.audit_split import plan_aside
from pdcl.release.amounts import Stated
from pdcl.release.ledger import Ledger
from pdcl.release.planning import told
from pdcl.release.update_job import own_audit_set, rows_of
from pdcl.running.load import load
from pdcl.storage.cache import LEDGER
from pdcl.streams.audits import as_audit


def plan_update(
    model: str | Path,
    data: Any,
    *,
    name: str | None = None,
    audit: str | Path | None = None,
    max_drop: Stated | None = None,
    max_error: Stated | None = None,
    by: str = "auto",
    groups: str | None = None,
    confidence: float | None = None,
    looks: int | None = None,
    audit_share: float = 0.1,
    audit_budget: int | None = None,
    **handed: Any,
) -> str:
    """One line a group and limit. The arguments are those of `pdcl.update`."""
    path = path_of(model, "model")
    place = own_audit_set(path, handed) if audit is None else path_of(audit, "audit")
    if place is None:
        raise UsageError("--plan needs an audit set, and the model has none beside it; name one: --audit DIR")
    old = load(path, **handed)
    samples, own_name = rows_of(path, data, groups, handed)
    whole = as_audit(place) if audit_share == 0 else None
    if whole is None:
        whole = plan_aside(samples, place, str(name or own_name), old, audit_share, audit_budget).whole()
    grouped = "group" if groups is not None and "group" in whole.columns else None
    return told(whole, Ledger(place / LEDGER), by, grouped, confidence, looks, max_error, max_drop)
