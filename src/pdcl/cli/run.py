"""`pdcl run STREAM METHOD`: one method through one stream, for one seed or several."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pdcl.errors import RunFinished, UsageError
from pdcl.printable import say

USAGE = """usage: pdcl run STREAM METHOD [options]

  pdcl run digits pdcl --memory 100 --seeds 5
  pdcl run digits er --help      the options of er, with the values that digits gives them

'pdcl list' names the streams and methods."""


STREAM_OPTION = "--stream-option"


@dataclass
class Running:
    """How a run is carried out.

    preset: which option table of the stream: auto (if nothing is said), tuned, paper, equal, … (docs/presets.md)
    seeds: run seeds 0 … N−1
    out: where records go
    data: where the data of benchmarks lies
    stream_option: options of the stream, as NAME=VALUE, those of every stream too (noise=0.1, per_class=50)
    plugin: a Python file that registers methods or streams
    snapshot: keep what memory holds at the end
    checkpoint_every: save the state every so many steps (500) or so often (30s, 5m)
    """

    preset: str | None = None
    seeds: int | None = None
    out: str = "runs"
    data: str | None = None
    stream_option: tuple[str, ...] = ()
    plugin: str | None = None
    snapshot: bool = True
    checkpoint_every: str = "30s"


def main(argv: list[str]) -> int:
    if len(argv) < 2 or argv[0].startswith("-") or argv[1].startswith("-"):
        say(USAGE)
        return 0 if "--help" in argv or "-h" in argv else 2
    stream_name, method_name, rest = argv[0], argv[1], gathered(argv[2:])
    _plug_in(rest)
    options, running = _options(stream_name, method_name, rest)
    if running.seeds is not None and running.seeds < 1:
        raise UsageError(f"--seeds {running.seeds} must be at least 1: seeds 0 to N−1 are run")
    if "seed" in options and running.seeds is not None:
        raise UsageError("give --seed or --seeds, not both")
    from pdcl.learning.placement import keep_freed_memory

    keep_freed_memory()
    seeds = [options.pop("seed", 0)] if running.seeds is None else range(running.seeds)
    paths = [_one(stream_name, method_name, running, {**options, "seed": seed}) for seed in seeds]
    close(paths)
    return 0


def gathered(argv: list[str]) -> list[str]:
    """The words with all stream options behind one flag: of a repeated flag the last one alone would count."""
    pairs: list[str] = []
    rest: list[str] = []
    seen = taking = False
    for word in argv:
        flag, equals, value = word.partition("=")
        if flag == STREAM_OPTION:
            seen, taking = True, not equals
            pairs += [value] if equals else []
        else:
            taking = taking and not word.startswith("--")
            (pairs if taking else rest).append(word)
    return [*rest, STREAM_OPTION, *pairs] if seen else rest


def _plug_in(argv: list[str]) -> None:
    """Plug-ins come first: they may be what STREAM or METHOD names."""
    for word, path in pairwise(argv):
        if word == "--plugin":
            from pdcl.running.plugins import load_file

            load_file(path)


def _options(stream: str, method: str, argv: list[str]) -> tuple[dict[str, Any], Running]:
    from pdcl.cli.form import parse
    from pdcl.learning.schedule import Schedule
    from pdcl.limits.tolerances import read_limits
    from pdcl.methods.catalog import method as find
    from pdcl.running.options import standing
    from pdcl.streams.catalog import find as find_stream

    entry, kind = find(method), find(method).load()
    find_stream(stream)
    defaults = standing(entry, stream, _value_of("--preset", argv), _value_of("--memory", argv))
    about = f"{(kind.__doc__ or '').splitlines()[0]} On the stream {stream!r}."
    found = parse([Running, kind, Schedule], defaults, argv, f"pdcl run {stream} {method}", about)
    read_limits(found.get("tolerance"))
    running = Running(**{name: found.pop(name) for name in list(found) if name in Running.__dataclass_fields__})
    return found, running


def _value_of(option: str, argv: list[str]) -> str | None:
    for place, word in enumerate(argv):
        if word == option and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _one(stream: str, method: str, running: Running, options: dict[str, Any]) -> Path:
    from pdcl.cli.building import own_network
    from pdcl.cli.display import Display
    from pdcl.laboratory import lab
    from pdcl.running.run import run
    from pdcl.streams.catalog import load

    asked = {
        **lab("presets").stream_options(stream, running.preset),
        **stream_options(running.stream_option, running.data),
    }
    made = load(stream, **asked)
    if "network" in options:
        options = {**options, "network": own_network(options["network"], options["seed"])}
    try:
        with Display() as display:
            listeners = [display.listener]
            found = run(
                made, method, preset=running.preset, out=running.out, listeners=listeners,
                snapshot=running.snapshot, checkpoint_every=running.checkpoint_every, **options,
            )  # fmt: skip
    except RunFinished as done:
        say(f"finished before, not run again: {_summary(done.path)}")
        return done.path
    assert found.path is not None
    return found.path


def stream_options(pairs: tuple[str, ...], data: str | None) -> dict[str, Any]:
    """`NAME=VALUE` words as options of a stream; numbers become numbers."""
    import json

    options: dict[str, Any] = {} if data is None else {"data": data}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{STREAM_OPTION} {pair!r} must be NAME=VALUE")
        try:
            options[name] = json.loads(value)
        except RecursionError as error:
            raise UsageError(f"{STREAM_OPTION} {name}=… is nested too deeply") from error
        except ValueError:
            options[name] = value
    return options


def close(paths: list[Path]) -> None:
    """Say where the records lie and what to type next."""
    for path in paths:
        say(f"record: {path}")
    say(f"next: pdcl results {paths[-1].parent}")
    sys.stdout.flush()


def _summary(path: Path) -> str:
    from pdcl.records.reading import read_result

    result = read_result(path)
    return f"accuracy {_percent(result['mean_accuracy'])} %, forgetting {_percent(result['mean_forgetting'])} %"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"
