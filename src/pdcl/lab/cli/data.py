"""`pdcl data list|fetch|verify`: the raw files of the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from pdcl.errors import UsageError
from pdcl.lab.benchmarks.raw.archive import directories, fetch, status, verify
from pdcl.lab.cli.asking import parsed, unfolded
from pdcl.printable import say
from pdcl.storage.cache import cache_directory

FAILED = 1
Names = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME ...")]


@dataclass
class Listing:
    """What is here, what is missing, how large it is and under which licence."""

    data: Path | None = None
    """Where to look first."""


@dataclass
class Fetching:
    """Download the original files of a stream, verify them, and go on where a download broke off."""

    names: Names
    """Streams whose data is wanted: see `pdcl data list`."""

    data: Path | None = None
    """Where to put the files; the user's cache by default."""


@dataclass
class Verifying:
    """Read every file through and compare it with its published checksum."""

    names: Names = ()
    """Streams to verify; all that are here by default."""

    data: Path | None = None
    """Where to look first."""


VERBS = {"list": Listing, "fetch": Fetching, "verify": Verifying}


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in VERBS:
        lines = "\n".join(f"  {verb:<8}{(kind.__doc__ or '').rstrip('.')}" for verb, kind in VERBS.items())
        say(f"usage: pdcl data list|fetch|verify …\n\n{lines}")
        return 0 if argv and argv[0] in ("-h", "--help") else 2
    asked: Any = parsed(VERBS[argv[0]], argv[1:], f"pdcl data {argv[0]}")
    if isinstance(asked, Listing):
        return _list(asked.data)
    return (_fetch if isinstance(asked, Fetching) else _verify)(asked.names, asked.data)


def _list(data: Path | None) -> int:
    found = status(data)
    table = Table("stream", "here", "size", "files", "licence", "where", box=None, padding=(0, 2, 0, 0))
    for line in found:
        here = "yes" if line.present else "no"
        table.add_row(line.name, here, _size(line.size), line.variant or "–", line.licence, line.where or "–")
    unfolded().print(table)
    say("looked in: " + ", ".join(str(place) for place in directories(data)))
    missing = [line.name for line in found if not line.present]
    say(f"next: pdcl data fetch {missing[0]}" if missing else f"next: pdcl run {found[0].name} pdcl --memory 500")
    return 0


def _fetch(names: tuple[str, ...], data: Path | None) -> int:
    if not names:
        raise UsageError("name the streams to fetch; 'pdcl data list' shows which are missing")
    for name in names:
        for path in fetch(name, data):
            say(f"{path}  {_size(path.stat().st_size)}, verified")
    where = "" if data is None else f" --data {data}"
    say(f"wrote {data or cache_directory() / 'data'}\nnext: pdcl run {names[0]} pdcl --memory 500{where}")
    return 0


def _verify(names: tuple[str, ...], data: Path | None) -> int:
    chosen = names or tuple(line.name for line in status(data) if line.present)
    if not chosen:
        raise UsageError("there is no data here to verify; 'pdcl data fetch NAME' gets some")
    checks = [(name, check) for name in chosen for check in verify(name, data)]
    for _, check in checks:
        say(f"{'right' if check.right else 'WRONG'}  {check.path}")
    wrong = list(dict.fromkeys(name for name, check in checks if not check.right))
    if wrong:
        say(f"{', '.join(wrong)}: damaged or other files; delete them and get them again")
        say(f"next: pdcl data fetch {' '.join(wrong)}")
        return FAILED
    say(f"next: pdcl run {chosen[0]} pdcl --memory 500")
    return 0


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
