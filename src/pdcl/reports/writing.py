"""`report`: any set of runs, or the life of one model, as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pdcl.errors import UsageError
from pdcl.laboratory import lab
from pdcl.reports.life import is_model, life
from pdcl.storage.disk import write_whole


def report(directories: Sequence[Path], samples: bool = True, title: str | None = None) -> str:
    """The page for all runs below these directories, or for the life of one saved model."""
    if models := [directory for directory in directories if is_model(directory)]:
        if len(directories) > 1:
            raise UsageError(f"{models[0]} is a saved model, whose life is a page of its own: give it alone")
        return life(models[0], title)
    made: str = lab("reports.runs").report_of_runs(directories, samples, title)
    return made


def write_report(directories: Sequence[Path], out: Path, samples: bool = True, title: str | None = None) -> Path:
    text = report(directories, samples, title)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, text.encode(errors="replace"))
    except OSError as error:
        raise UsageError(f"can't write {out}: {error.strerror}; choose another file with --out") from error
    return out
