"""A plan, written before the first look: `limits.toml`. The first look writes it into the ledger.

intended_use = "answers to customers, in English"
responsible = "A. Person"
data = "gsm8k test, 1,319 items, and our 500 tickets"
on_fail = "the model in use stays; the vendor is told"
looks = 12
confidence = 0.95

[limits]
"*" = { limit = "+3pt", reason = "nobody notices less" }
tickets = { limit = "+1pt", reason = "each point is 40 calls a day" }
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdcl.errors import UsageError
from pdcl.given import short
from pdcl.limits.limits import Limits, as_limits
from pdcl.release.looks import check_plan, digest

TEXTS = ("intended_use", "responsible", "data", "on_fail")
OPTIONAL = ("change", "by")


@dataclass(frozen=True)
class Plan:
    """content: the file as read."""

    path: Path
    content: dict[str, Any]
    limits: Limits

    @property
    def looks(self) -> int | None:
        return self.content.get("looks")

    @property
    def confidence(self) -> float | None:
        return self.content.get("confidence")

    @property
    def by(self) -> str | None:
        return self.content.get("by")

    @property
    def hash(self) -> str:
        return digest(self.content)


def read_plan(path: Path) -> Plan:
    """A plan; what is missing or misspelt is refused before any look."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: there is no such plan ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no TOML: {short(str(error))}") from None
    if unknown := set(content) - {*TEXTS, *OPTIONAL, "looks", "confidence", "limits"}:
        raise UsageError(
            f"{path} has {sorted(unknown)[0]!r}, which no plan has: {', '.join((*TEXTS, *OPTIONAL))}, limits"
        )
    for name in TEXTS:
        if not isinstance(content.get(name), str) or not content[name].strip():
            raise UsageError(f'{path} says no {name}: write {name} = "…"')
    for name in OPTIONAL:
        if not isinstance(content.get(name, ""), str):
            raise UsageError(f"{path}: {name} = {short(content[name])} must be text")
    check_plan(content.get("looks"), content.get("confidence"))
    return Plan(path, content, _limits(path, content.get("limits")))


def _limits(path: Path, table: Any) -> Limits:
    if not isinstance(table, dict) or not table:
        raise UsageError(f'{path} has no [limits]: write "*" = {{ limit = "+2pt", reason = "…" }}')
    for name, each in table.items():
        right = isinstance(each, dict) and set(each) == {"limit", "reason"}
        if not right or not all(isinstance(part, str) and part.strip() for part in each.values()):
            raise UsageError(f'{path}: {name} must be {{ limit = "+2pt", reason = "…" }}, not {short(each)}')
    try:
        return as_limits({name: each["limit"] for name, each in table.items()})
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: {error}") from None


def remarks(plan: Plan | None, limits: Limits, first: tuple[int, dict[str, Any]] | None) -> list[str]:
    """What a verdict says of the plan. first: the plan that was stated first, and at which look."""
    if first is None:
        return []
    number, content = first
    then = f"the plan of look {number} ({digest(content)[:16]})"
    if plan is None:
        same = as_limits({name: each["limit"] for name, each in content["limits"].items()}) == limits
        return [
            f"No plan is named here. {'Limits are those of' if same else 'CHANGED: limits are not those of'} {then}."
        ]
    told = f"Plan: {plan.path.name}, sha256 {plan.hash[:16]}"
    moved = [f"{name}: {short(old)} → {short(new)}" for name, old, new in _differences(content, plan.content)]
    if moved:
        return [f"{told}. CHANGED since {then}: {'; '.join(moved)}."]
    return [f"{told}, as at {'the first look' if number == 1 else f'look {number}; looks before it had no plan'}."]


def _differences(first: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    flat = [{**each, **{f"limits.{k}": v for k, v in each.get("limits", {}).items()}} for each in (first, now)]
    names = [name for name in dict.fromkeys([*flat[0], *flat[1]]) if name != "limits"]
    return [(n, flat[0].get(n), flat[1].get(n)) for n in names if flat[0].get(n) != flat[1].get(n)]
