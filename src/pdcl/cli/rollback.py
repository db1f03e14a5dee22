"""`pdcl rollback MODEL`: the state before the newest update, again in use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pdcl.cli.form import plain
from pdcl.printable import counted, printable, say


@dataclass
class Rollback:
    """Put the state before the newest update back in use. What was in use goes to MODEL/previous."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Where the model is saved."""

    audit: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The audit set that samples of the undone update leave; otherwise the one beside MODEL that it recorded."""

    why: str = ""
    """A reason, for the lineage."""

    network: Annotated[str | None, tyro.conf.arg(metavar="PKG.MOD:BUILD")] = None
    """Function that builds the model's own network."""


def main(argv: list[str]) -> int:
    asked = tyro.cli(plain(Rollback), args=argv, prog="pdcl rollback")
    from pdcl.cli.building import own_network
    from pdcl.release.rolling_back import rollback

    handed = {} if asked.network is None else {"network": own_network(asked.network)}
    entry = rollback(asked.model, audit=asked.audit, why=asked.why, **handed)
    done = "was rolled back before, and a model goes back by one update" if entry.repeated else "is rolled back"
    say(f"{asked.model}: {printable(entry['name'])} {done}; {counted(entry['task'], 'task')} in use")
    say(f"next: pdcl report {asked.model}")
    return 0
