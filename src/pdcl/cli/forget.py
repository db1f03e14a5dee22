"""`pdcl forget MODEL`: samples, or all that belongs to somebody, taken out of a model and of what is kept beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pdcl.cli.form import plain
from pdcl.printable import say


@dataclass
class Forget:
    """Take samples out of memory, guards, witnesses, the previous state, audit data and evidence.

    It lists where they still are. The lineage keeps that it happened, not what it was.
    """

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Where the model is saved."""

    samples: Annotated[Path | None, tyro.conf.arg(metavar="FILE.csv|FILE.npz|DIR")] = None
    """The samples, by their inputs: rows of a table, or a file or directory with an array x."""

    group: Annotated[str | None, tyro.conf.arg(metavar="COLUMN=VALUE")] = None
    """All that belongs to somebody, such as patient=17."""

    audit: Path | None = None
    """The audit set."""

    evidence: Path | None = None
    """A directory of evidence folders."""

    network: Annotated[str | None, tyro.conf.arg(metavar="PKG.MOD:BUILD")] = None
    """Function that builds the model's own network."""


def main(argv: list[str]) -> int:
    asked = tyro.cli(plain(Forget), args=argv, prog="pdcl forget")
    from pdcl.cli.building import own_network
    from pdcl.release.forgetting import forget

    handed = {} if asked.network is None else {"network": own_network(asked.network)}
    made = forget(
        asked.model, samples=asked.samples, group=asked.group, audit=asked.audit, evidence=asked.evidence, **handed
    )
    say(made)
    say(f"next: pdcl report {asked.model}")
    return 0
