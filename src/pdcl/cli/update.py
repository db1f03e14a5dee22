"""`pdcl update MODEL`: a month's data learned, gated, and promoted or not, as one step.

0 promoted   1 refused: a limit is broken   2 refused: the data can't tell   3 a wrong option or file   4 a defect
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pdcl.cli.form import plain
from pdcl.cli.gate import guarded
from pdcl.printable import say

ABOUT = """Learn new data, and use the updated model only if it passes the gate: promoted (exit 0), or the old one stays
(exit 1: a limit is broken; 2: the audit data can't tell).

  pdcl update model/ --data 2026-12.csv                       (the model's own limits decide, on its witnesses)
  pdcl update model/ --data 2026-12.csv --name 2026-12 --audit audit/ --max-drop 0.02 --looks 12

Made again with the same name and data it gives the same answer; interrupted anywhere, it goes on where it was."""


@dataclass
class Options:
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Where the model is saved."""
    data: Annotated[Path, tyro.conf.arg(metavar="FILE.csv|FILE.parquet|FILE.npz|DIR")]
    """The new data: a table, if the model learned from tables; otherwise arrays x and y, and one more per column."""
    audit: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The audit set, to which part of the new data goes before anything is learned; by default the model's own.
    Without a limit of the gate (--max-drop …) the model's own limits decide."""
    name: str | None = None
    """What the new task is called, such as 2026-12; of a table, what its task column says."""
    max_drop: Annotated[str | None, tyro.conf.arg(metavar="+2pt|0.02")] = None
    """Limit on how much an error rate rises, against the model in use and since each task was learned: 0.02."""
    max_error: Annotated[str | None, tyro.conf.arg(metavar="5%|0.05")] = None
    """Limit on the error rate of every group."""
    max_loss: Annotated[str | None, tyro.conf.arg(metavar="LOSS")] = None
    """Limit on the mean loss; a PASS needs that no loss reaches the clip."""
    min_sensitivity: Annotated[str | None, tyro.conf.arg(metavar="95%|0.95")] = None
    """Limit from below on the sensitivity of every class."""
    min_specificity: Annotated[str | None, tyro.conf.arg(metavar="95%|0.95")] = None
    """Limit from below on the specificity of every class."""
    limit: Annotated[tuple[str, ...], tyro.conf.arg(metavar="GROUP=VALUE ...")] = ()
    """Limits of groups that have their own."""
    by: Annotated[str, tyro.conf.arg(metavar="task|class|COLUMN|all")] = "auto"
    """What the groups are; auto: task."""
    groups: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = None
    """Column of the data whose samples are not independent: patient, speaker."""
    confidence: float | None = None
    """Of all planned looks together (0.95); fixed at the first look."""
    looks: int | None = None
    """How many looks the audit set will ever get (1); fixed at the first look."""
    audit_share: float = 0.1
    """Part of the new data that is set aside; 0 where the audit set is complete."""
    audit_budget: int | None = None
    """The most samples that the audit set may hold."""
    tolerance: str | None = None
    """Limit of the new task from now on, such as +2pt."""
    epochs: int | None = None
    """Passes over the new data; by its size otherwise."""
    batch: int | None = None
    """Batch size; by the size of the data otherwise."""
    evidence: Path | None = None
    """New directory for all that the verdict rests on."""
    no_samples: bool = False
    """Keep the content of audit samples, and the names of groups, out of the evidence."""
    again: bool = False
    """Decide anew what was refused or rolled back; it takes a look."""
    accept_undecided: bool = False
    """Promote what the gate can't decide; --why says the reason. A FAIL is never accepted."""
    why: str | None = None
    """Why an undecided update is accepted; lineage, ledger and report keep it."""
    plan: bool = False
    """Say what the audit set can decide with this data's part of it; nothing is learned, no look is taken."""
    network: Annotated[str | None, tyro.conf.arg(metavar="PKG.MOD:BUILD")] = None
    """Function that builds the model's own network."""


def main(argv: list[str]) -> int:
    return guarded("update", lambda: _updated(argv))


def _updated(argv: list[str]) -> int:
    config = (tyro.conf.AvoidSubcommands, tyro.conf.FlagCreatePairsOff)
    asked = tyro.cli(plain(Options), args=argv, prog="pdcl update", description=ABOUT, config=config)
    from pdcl.cli.building import own_network
    from pdcl.cli.gate_command import limits
    from pdcl.release.output import show
    from pdcl.release.updating import update

    apart = ("model", "data", "limit", "network", "plan", "no_samples")
    options = {name: value for name, value in vars(asked).items() if name not in apart}
    handed = {} if asked.network is None else {"network": own_network(asked.network)}
    if asked.plan:
        return _plan(asked, handed)
    made = update(
        asked.model, asked.data, limits=limits(asked.limit) or None, samples=not asked.no_samples, **options, **handed
    )
    if made.verdict is not None:
        show(made.verdict)
        say()
    # The table has said the reason; it stands once.
    told = made.verdict is not None and "override" not in made.record
    say(" ".join([f"{made.name}: {made.decision}.", *made.remarks]) if told else made)
    say(f"next: pdcl report {asked.model}" + ("" if not made else f", or back: pdcl rollback {asked.model}"))
    return made.exit_code


PLANNED = (
    "name", "audit", "max_drop", "max_error", "by", "groups", "confidence", "looks", "audit_share", "audit_budget",
)  # fmt: skip


def _plan(asked: Options, handed: dict[str, Any]) -> int:
    from pdcl.errors import UsageError
    from pdcl.release.update_plan import plan_update

    usual = Options(asked.model, asked.data)
    for name, value in vars(asked).items():
        if name not in (*PLANNED, "model", "data", "plan", "network") and value != getattr(usual, name):
            raise UsageError(f"--{name.replace('_', '-')} has no effect on --plan")
    say(plan_update(asked.model, asked.data, **{name: getattr(asked, name) for name in PLANNED}, **handed).rstrip())
    return 0
