"""What `pdcl gate` does, once its exit codes are safe."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from pdcl.cli.form import plain
from pdcl.errors import UsageError
from pdcl.printable import say
from pdcl.screen import Screen

ABOUT = """Does this model keep its limits? PASS (exit 0), FAIL (1) or UNDECIDED (2), with known confidence.

  pdcl gate model/ --audit audit/ --max-error 0.05
  pdcl gate model/ --audit audit/ --max-error 0.05 --by class --groups patient --evidence evidence/2026-12
  pdcl gate candidate/ --against model/ --audit audit/ --max-drop 0.02 --by segment
  pdcl gate --audit audit/ --max-error 0.05 --plan        what so many samples can certify; no look is taken
  pdcl gate --verify evidence/2026-12                     recompute a verdict
  pdcl gate --before old/ --after new/ --limit "math:+2pt, *:+3pt"   two evaluation logs, of any models"""


@dataclass
class Gate:
    model: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")] = None
    """Where a learner was saved."""
    audit: Annotated[str | None, tyro.conf.arg(metavar="DIR|STREAM")] = None
    """Directory with samples.npz (x, y and columns), or a stream, whose test data is taken."""
    max_error: Annotated[str | None, tyro.conf.arg(metavar="5%|0.05")] = None
    """Limit on the error rate of every group, such as 0.05."""
    max_loss: Annotated[str | None, tyro.conf.arg(metavar="LOSS")] = None
    """Limit on the mean loss; PASS needs that no loss reaches --clip."""
    min_sensitivity: Annotated[str | None, tyro.conf.arg(metavar="95%|0.95")] = None
    """Limit from below on the sensitivity of every class."""
    min_specificity: Annotated[str | None, tyro.conf.arg(metavar="95%|0.95")] = None
    """Limit from below on the specificity of every class."""
    max_drop: Annotated[str | None, tyro.conf.arg(metavar="+2pt|0.02")] = None
    """Limit on how much the error rate of every group rises, on the same samples: 0.02 is two points."""
    against: Annotated[Path | None, tyro.conf.arg(metavar="OLD")] = None
    """The model in use, which --max-drop compares with; drops since a task was learned count in any case."""
    before: Annotated[Path | None, tyro.conf.arg(metavar="LOGS")] = None
    """Log of the model in use: a file or a directory of lm-eval, Inspect, JSONL, CSV, Parquet."""
    after: Annotated[Path | None, tyro.conf.arg(metavar="LOGS")] = None
    """Log of the new model on the same items."""
    rerun: Annotated[Path | None, tyro.conf.arg(metavar="LOGS")] = None
    """Log of the model in use, asked again: how often outcomes flip by themselves."""
    limits: Annotated[Path | None, tyro.conf.arg(metavar="LIMITS.toml")] = None
    """The plan of a gate on logs; its ledger lies beside it."""
    columns: Annotated[str | None, tyro.conf.arg(metavar="ROLE=NAME,...")] = None
    """Names of columns in logs by role: id, score, task, epoch, prompt."""
    metric: str | None = None
    """Which of several scores in logs counts."""
    unpaired: Literal["undecided", "drop"] = "undecided"
    """Items that one log lacks: PASS is impossible, or they are left out."""
    limit: Annotated[tuple[str, ...], tyro.conf.arg(metavar="GROUP=VALUE ...")] = ()
    """Limits of groups that have their own, such as owl=10%; on logs: "math:+2pt, *:+3pt"."""
    by: Annotated[str, tyro.conf.arg(metavar="task|class|COLUMN|all")] = "auto"
    """What the groups are; auto: task where the audit set has that column."""
    groups: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = None
    """Column whose samples are not independent: patient, speaker."""
    confidence: float | None = None
    """Of all planned looks together (0.95); fixed at the first look."""
    looks: int | None = None
    """How many looks this audit set will ever get (1); fixed at the first look."""
    clip: float | None = None
    """Where losses are cut off in bounds (limit · max(10, √n), at least 4.605: 1 % for the right class)."""
    ledger: Path | None = None
    """Where looks are written, if not beside the audit set; those that other ledgers know of count, too."""
    evidence: Path | None = None
    """New directory for all that the verdict rests on."""
    no_samples: bool = False
    """Keep the content of audit samples, and the names of groups, out of the evidence."""
    network: Annotated[str | None, tyro.conf.arg(metavar="PKG.MOD:BUILD")] = None
    """Function that builds the model's own network."""
    format: Literal["table", "json", "md", "junit"] = "table"
    """How to print the verdict."""
    plan: bool = False
    """Say what the audit set can certify by its size, without a look."""
    verify: Annotated[Path | None, tyro.conf.arg(metavar="EVIDENCE")] = None
    """Recompute a verdict from its evidence, and from MODEL where given."""


def judge(argv: list[str]) -> int:
    config = (tyro.conf.AvoidSubcommands, tyro.conf.FlagCreatePairsOff)
    asked = tyro.cli(plain(Gate), args=argv, prog="pdcl gate", description=ABOUT, config=config)
    if asked.verify is not None:
        return _verify(asked)
    if asked.before is not None or asked.after is not None:
        return _compare(asked)
    if asked.audit is None:
        raise UsageError("--audit is missing: a directory with samples.npz, or a stream")
    if asked.plan:
        return _plan(asked)
    if asked.model is None:
        raise UsageError("MODEL is missing: where the learner was saved")
    return _gate(asked)


def _gate(asked: Gate) -> int:
    from pdcl.cli.building import own_network
    from pdcl.cli.gate_logs import print_verdict
    from pdcl.release.gate import gate

    assert asked.model is not None
    verdict = gate(
        asked.model, asked.audit, max_error=asked.max_error, max_loss=asked.max_loss,
        min_sensitivity=asked.min_sensitivity, min_specificity=asked.min_specificity,
        max_drop=asked.max_drop, against=asked.against, limits=limits(asked.limit), by=asked.by,
        groups=asked.groups, confidence=asked.confidence, looks=asked.looks, clip=asked.clip,
        ledger=asked.ledger, evidence=asked.evidence, samples=not asked.no_samples, network=own_network(asked.network),
    )  # fmt: skip
    print_verdict(verdict, asked.format)
    notes = Screen(stderr=asked.format != "table", soft_wrap=True)
    if asked.evidence is not None:
        notes.print(f"evidence: {asked.evidence}")
        notes.print(f"next: pdcl gate --verify {asked.evidence}")
    else:
        notes.print(f"next: {verdict.command} --evidence evidence")
    return verdict.exit_code


def _compare(asked: Gate) -> int:
    from pdcl.cli.gate_logs import compare_logs

    return compare_logs(asked)


def _plan(asked: Gate) -> int:
    from pdcl.release.planning import plan_text

    for name in ("max_loss", "min_sensitivity", "min_specificity", "clip"):
        if getattr(asked, name) is not None:
            raise UsageError(
                f"--plan speaks of --max-error and --max-drop; --{name.replace('_', '-')} has no effect on it"
            )
    given = (asked.confidence, asked.looks, asked.max_error, asked.ledger, asked.max_drop)
    sys.stdout.write(plan_text(asked.audit, asked.by, asked.groups, *given))
    return 0


def _verify(asked: Gate) -> int:
    from pdcl.cli.building import own_network
    from pdcl.release.evidence import verify
    from pdcl.release.outcome import CODES
    from pdcl.release.reopen import recalled

    assert asked.verify is not None
    case = None
    if asked.model is not None:
        case = recalled(asked.verify, asked.model, asked.audit, own_network(asked.network), asked.against)
    verdict = verify(asked.verify, case)
    from_what = "outcomes and ledger" if case is None else "outcomes, ledger, model and audit set"
    say(f"{verdict['verdict']}: recomputed from {from_what}; all agrees ({asked.verify})")
    return CODES[str(verdict["verdict"])]


def limits(pairs: tuple[str, ...]) -> dict[str, str]:
    """`GROUP=VALUE` or `GROUP:VALUE` words."""
    found = {}
    for pair in pairs:
        at = max(pair.rfind("="), pair.rfind(":"))
        if at < 1:
            raise UsageError(f"--limit {pair!r} must be GROUP=VALUE, such as --limit owl=10% or --limit owl=+2pt")
        found[pair[:at]] = pair[at + 1 :]
    return found
