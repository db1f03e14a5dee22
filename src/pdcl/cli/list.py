"""`pdcl list`: the streams and methods there are, without importing torch."""

from __future__ import annotations

from rich.table import Table

from pdcl.methods.catalog import methods
from pdcl.printable import say
from pdcl.screen import Screen
from pdcl.streams.catalog import catalog

USAGE = """usage: pdcl list [--plugin FILE]

The streams and methods there are.

  --plugin FILE   a Python file that registers methods or streams of your own: they are listed too"""


def main(argv: list[str]) -> int:
    if argv[:1] == ["--plugin"] and len(argv) == 2:
        from pdcl.running.plugins import load_file

        load_file(argv[1])
    elif argv:
        say(USAGE)
        return 0 if argv[0] in ("-h", "--help") else 2
    console = Screen()
    streams = Table(
        "stream", "tasks", "classes", "regime", "what it is", title="Streams", title_justify="left", box=None
    )
    for entry in catalog():
        note = " (pdcl data fetch " + entry.name + ")" if entry.needs_download else ""
        streams.add_row(entry.name, _text(entry.tasks), _text(entry.classes), entry.regime, entry.summary + note)
    learners = Table(
        "method", "family", "memory", "boundaries", "what it does", title="\nMethods", title_justify="left", box=None
    )
    for found in methods().values():
        learners.add_row(
            found.name, found.family, _yes(found.uses_memory), _yes(found.needs_boundaries),
            found.summary + (f" [dim]{found.reference}[/dim]" if found.reference else ""),
        )  # fmt: skip
    console.print(streams)
    console.print(learners)
    console.print("\nnext: pdcl run digits pdcl --memory 100")
    return 0


def _text(value: object) -> str:
    return "–" if value is None else str(value)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
