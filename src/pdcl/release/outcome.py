"""A verdict with all that a reader needs to believe it or not."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pdcl.release.deciding import FAIL, PASS, UNDECIDED, Decision, Judged
from pdcl.release.looks import Look

# 2: the hash of an audit set doesn't depend on the order of its rows. 3: copies of a sample count once, and a loss that
# reaches the clip forbids a PASS.
SCHEMA, ORDERLESS, BEYOND = 3, 2, 3
CODES = {PASS: 0, FAIL: 1, UNDECIDED: 2}
CAVEAT = "The optimiser guarantees nothing for a non-convex network; a PASS is right with the stated confidence."

LOGS_CAVEAT = "A verdict is on items like these, and right with the stated confidence; it says nothing of others."


@dataclass(frozen=True)
class Verdict:
    """What the gate says. `bool(verdict)` is whether it is a PASS; `print` shows the table."""

    decision: Decision
    look: Look
    question: dict[str, Any]
    notes: list[str]
    levers: dict[str, list[str]] = field(default_factory=dict)
    command: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return self.decision.verdict

    @property
    def rows(self) -> list[Judged]:
        return self.decision.rows

    @property
    def exit_code(self) -> int:
        return CODES[self.verdict]

    def __bool__(self) -> bool:
        return self.verdict == PASS

    def __str__(self) -> str:
        from pdcl.release.output import as_text

        return as_text(self)

    @property
    def confidence_text(self) -> str:
        """Which look this is and how sure it can be."""
        look = self.look
        planned = f"look {look.number} of {look.looks}" + (" (taken before)" if look.repeated else "")
        together = "" if look.looks == 1 else f", so that all {look.looks} together keep {_percent(look.confidence)}"
        return f"{planned}, at {_percent(1 - look.level)} confidence{together}"

    @property
    def caveat(self) -> str:
        return LOGS_CAVEAT if "before" in self.question else CAVEAT

    def as_json(self) -> dict[str, Any]:
        look = self.look
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "confidence": look.confidence,
            "look": {"number": look.number, "of": look.looks, "level": look.level, "confidence": 1 - look.level},
            "rows": [row.as_json() for row in self.rows],
            "levers": self.levers,
            "notes": self.notes,
            "caveat": self.caveat,
            "question": self.question,
            "command": self.command,
            "versions": versions(),
            **self.more,
        }


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def versions() -> dict[str, str]:
    """What the numbers depend on."""
    found = {"python": platform.python_version()}
    for package in ("pdcl", "torch", "numpy", "scipy"):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
