"""`pdcl gate --before LOGS --after LOGS`: two logs, judged without torch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pdcl.errors import UsageError
from pdcl.screen import Screen

if TYPE_CHECKING:
    from pdcl.cli.gate_command import Gate
    from pdcl.release.outcome import Verdict

# Options that speak of a model and its audit set.
OF_MODELS = (
    "model", "audit", "max_error", "max_loss", "min_sensitivity", "min_specificity", "max_drop", "against", "clip",
    "network", "verify",
)  # fmt: skip


def compare_logs(asked: Gate) -> int:
    from pdcl.release.comparing import compare

    for name in OF_MODELS:
        if getattr(asked, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} has no effect on logs; limits are --limit or --limits FILE")
    if asked.plan and asked.before is not None and (asked.limits is None) != (not asked.limit):
        return _plan(asked)
    if asked.before is None or asked.after is None:
        raise UsageError("two logs are compared: give --before LOGS and --after LOGS")
    if (asked.limits is None) == (not asked.limit):
        raise UsageError('give either --limit "math:+2pt, *:+3pt" or --limits limits.toml')
    verdict = compare(
        asked.before, asked.after, asked.limits or ", ".join(asked.limit), by=None if asked.by == "auto" else asked.by,
        groups=asked.groups, rerun=asked.rerun, columns=columns(asked.columns), metric=asked.metric,
        unpaired=asked.unpaired, confidence=asked.confidence, looks=asked.looks, ledger=asked.ledger,
        evidence=asked.evidence,
    )  # fmt: skip
    print_verdict(verdict, asked.format)
    if asked.evidence is not None:
        notes = Screen(stderr=asked.format != "table", soft_wrap=True)
        notes.print(f"evidence: {asked.evidence}\nnext: pdcl gate --verify {asked.evidence}")
    return verdict.exit_code


def _plan(asked: Gate) -> int:
    from pdcl.release.log_planning import plan_logs

    text = plan_logs(
        asked.before, asked.limits or ", ".join(asked.limit), by=None if asked.by == "auto" else asked.by,
        groups=asked.groups, columns=columns(asked.columns), metric=asked.metric, confidence=asked.confidence,
        looks=asked.looks, ledger=asked.ledger,
    )  # fmt: skip
    sys.stdout.write(text)
    return 0


def columns(text: str | None) -> dict[str, str]:
    """`ROLE=NAME,…`"""
    pairs = [each.partition("=") for each in (text or "").split(",") if each.strip()]
    if any(not equals or not role.strip() or not name.strip() for role, equals, name in pairs):
        raise UsageError(f"--columns {text!r} must be ROLE=NAME,…, such as id=doc,score=correct")
    return {role.strip(): name.strip() for role, _, name in pairs}


def print_verdict(verdict: Verdict, form: str) -> None:
    from pdcl.release.output import FORMATS, show

    if form == "table":
        show(verdict)
    else:
        sys.stdout.write(FORMATS[form](verdict))
