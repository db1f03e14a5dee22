"""The command line: one file per verb, and only the one that is asked for is imported."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pdcl.errors import Interrupted, LearningWarning, LimitBroken, PdclError
from pdcl.laboratory import lab
from pdcl.printable import printable

VERBS = {
    "demo": "digits learned under limits, and what became of each: under a minute",
    "list": "the streams and methods there are",
    "data": "list, fetch or verify the data of the benchmarks",
    "run": "one method through one stream: pdcl run STREAM METHOD",
    "resume": "continue a run that was interrupted",
    "study": "many runs from one file or name",
    "results": "the numbers of many runs as one table",
    "report": "many runs as one self-contained HTML page",
    "figures": "the plots of a paper, as SVG, PDF and PNG",
    "paper": "the claims of the paper, held to the runs of `pdcl study paper`",
    "unpack": "runs that `pdcl paper` keeps in one file, as records again",
    "watch": "a local page that follows runs while they happen",
    "tolerance": "measure what a stream's tasks can reach, and propose tolerances",
    "prices": "what a run's tolerances cost: λ of its tasks, and of single samples",
    "whatif": "re-solve a run's last task at other tolerances: did the price hold?",
    "gate": "does a model keep its limits? PASS, FAIL or UNDECIDED, with known confidence",
    "update": "learn a month's data, and use the updated model only if it passes the gate",
    "forget": "take samples, or all of a patient, out of a model and of what is kept beside it",
    "rollback": "put the state before the newest update back in use",
    "completion": "a script by which bash, zsh or fish complete these commands",
}
OF_THE_LAB = ("data", "figures", "paper", "prices", "results", "study", "tolerance", "unpack", "watch", "whatif")
FAILED = 1
# Not 2: a misspelt `gate` must not look like one of its answers.
UNKNOWN = 64
INTERRUPTED = 130
UNREAD = 141


def main(argv: list[str] | None = None) -> int:
    """`pdcl VERB …`; its exit code."""
    try:
        try:
            return _dispatch(argv)
        finally:
            # Also after help, which ends by SystemExit: a closed pipe is heard of here, not when Python ends.
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has seen enough, as in `pdcl run --help | head`. What is left to write goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD


def _dispatch(argv: list[str] | None) -> int:
    """Import and call what the verb names; our own errors become one message instead of a traceback."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    verb, rest = argv[0], argv[1:]
    _let_one_rank_speak()
    if verb == "--version":
        from pdcl.storage.version import own_version

        print(f"pdcl {own_version()}")
        return 0
    if verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, 1)
        hint = f" Did you mean 'pdcl {near[0]}'?" if near else ""
        print(f"pdcl: there is no command {verb!r}.{hint} See 'pdcl --help'.", file=sys.stderr)
        return UNKNOWN
    try:
        with warnings.catch_warnings():
            # Tables and reports say it where there is a screen.
            warnings.filterwarnings("ignore", category=LimitBroken)
            # Commands that show events get no such warning; of the others it is the only word.
            warnings.filterwarnings("always", category=LearningWarning)
            warnings.showwarning = _show(warnings.showwarning)
            code: int = (lab(f"cli.{verb}") if verb in OF_THE_LAB else import_module(f"pdcl.cli.{verb}")).main(rest)
        return code
    except Interrupted as stop:
        print(f"pdcl {verb}: {stop}", file=sys.stderr)
        return stop.code
    except PdclError as error:
        print(f"pdcl {verb}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"pdcl {verb}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _let_one_rank_speak() -> None:
    """Under torchrun every process runs the command; rank 0 prints for all."""
    if os.environ.get("WORLD_SIZE", "1") != "1" and os.environ.get("RANK", "0") != "0":
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def _show(usual: Callable[..., Any]) -> Callable[..., Any]:
    """How warnings are shown: ours in one line, without a place in our code; others as usual."""

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, LearningWarning):
            print(f"warning: {printable(message)}", file=sys.stderr)
        else:
            usual(message, category, *place, **more)

    return show


def _help() -> str:
    rows = "\n".join(f"  {verb:<12}{what}" for verb, what in VERBS.items())
    return (
        "usage: pdcl COMMAND …\n\n"
        "Learn task after task, and keep every past one within a tolerance.\n\n"
        f"{rows}\n\n"
        "Each has its own --help. Start with: pdcl demo"
    )
