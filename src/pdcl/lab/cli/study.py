"""`pdcl study FILE_OR_NAME`: many runs, over processes or a cluster, again from where they stopped."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from pdcl.errors import Interrupted
from pdcl.lab.cli.asking import EngineOptions, parsed
from pdcl.lab.studies import Outcome, RunSpec, execute, load, shipped
from pdcl.lab.studies.execution import FAILURES
from pdcl.lab.studies.expansion import chosen_by
from pdcl.printable import say

FAILED = 1


@dataclass
class Command(EngineOptions):
    """Carry out a study: every run of it that isn't finished yet."""

    study: Annotated[str, tyro.conf.arg(metavar="FILE_OR_NAME")]
    """A TOML file, or the name of a study that comes with pdcl."""

    out: Path | None = None
    """Where records go; runs/NAME by default."""

    dry_run: bool = False
    """Show the runs and how long they may take; write nothing.
    Plug-ins of the study are run all the same: without them the runs can't be listed."""

    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="WORD ...")] = ()
    """Streams, methods, memory (m500) and seeds (s0) to restrict the study to."""

    part: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME")] = ()
    """A part of the study, by name; give it again for several. All parts by default."""

    data: str | None = None
    """Where the data of benchmarks lies."""

    plugin: str | None = None
    """A Python file that registers methods or streams. It is run."""


def main(argv: list[str]) -> int:
    if not argv:
        say(f"usage: pdcl study FILE_OR_NAME [options]\n\nOurs: {', '.join(shipped())}. See 'pdcl study --help'.")
        return 2
    kind = (tyro.conf.PositionalRequiredArgs, tyro.conf.AvoidSubcommands, tyro.conf.FlagCreatePairsOff)
    options = parsed(Command, argv, "pdcl study", kind)
    if options.data is not None:
        # Worker processes look there too.
        os.environ["PDCL_DATA"] = options.data
    study = load(options.study).restricted(options.part)
    if options.plugin is not None:
        study = replace(study, plugins=(*study.plugins, options.plugin))
    out = options.out or Path("runs") / study.name
    only = chosen_by(study, options.only)
    from pdcl.lab.cli.study_display import StudyDisplay, preview, preview_parts
    from pdcl.lab.studies.preview import look_ahead

    if options.dry_run:
        if study.plugins:
            print(f"running plug-ins, which are Python code: {', '.join(study.plugins)}")
        found = look_ahead(study, out, only)
        preview(found, options.processes)
        preview_parts(study, found, options.processes)
        return 0
    again = "pdcl study " + shlex.join(argv)
    with _terminable(again), options.new_engine() as engine, StudyDisplay(out, engine.workers) as display:
        outcome = execute(study, out, engine, display.listener, only)
    return _close(outcome, again)


@contextmanager
def _terminable(again: str) -> Iterator[None]:
    """SIGTERM ends a study as Ctrl-C does: workers save what they can, and the way on is said."""
    caught: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        caught.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        say(f"stopped; what is done is kept. To go on: {again}")
        if caught:
            raise Interrupted("stopped by SIGTERM", 128 + signal.SIGTERM) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _close(outcome: Outcome, again: str) -> int:
    """What failed and why, where the records lie, and what to type next."""
    say(f"{len(outcome.done)} run now, {len(outcome.skipped)} before, {len(outcome.failures)} failed")
    causes: dict[str | None, list[RunSpec]] = {}
    for ended in outcome.failures:
        causes.setdefault(ended.cause, []).append(ended.job.spec)
    for cause, specs in causes.items():
        lines = [f"failed: {spec.title}{'' if spec.held_out is None else ' (tuning)'}" for spec in specs]
        say("\n".join([*lines, f"    {cause}"]))
    if outcome.failures:
        say(f"their tracebacks: {outcome.out / FAILURES}")
        say(f"wrote {outcome.out}\nnext: {again}   (tries them again)")
        return FAILED
    say(f"wrote {outcome.out}\nnext: pdcl results {shlex.quote(str(outcome.out))}")
    return 0
