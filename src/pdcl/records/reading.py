"""The files of a run, read back. Whatever is wrong with them is said with the path."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from pdcl.errors import RecordError
from pdcl.records import checksum, schema

# Where no preset was named, version 0.1 took what it called `default`.
TUNED = "tuned"


def read_config(run: str | Path) -> schema.Config:
    return cast(schema.Config, _checked(Path(run), schema.CONFIG, schema.Config))


def read_result(run: str | Path) -> schema.Result:
    """The result of a finished run. One that was changed, cut or lost its keys is refused."""
    path = Path(run) / schema.RESULT
    with _opened(path) as file:
        content = result_in(file.read(), path)
    content.pop(checksum.KEY, None)
    return cast(schema.Result, checked(content, path, schema.Result))


def result_in(text: bytes, path: Path, parts: Callable[[bytes], bytes] = bytes) -> dict[str, Any]:
    """The object of a result.json whose checksum is right; `parts` may shorten the text before it is parsed."""
    try:
        checksum.is_sealed(text, path)
        return parsed(parts(text), path)
    except RecordError as error:
        raise RecordError(f"{error}; delete it and make it again with `pdcl resume {path.parent}`", path) from None


def is_finished(run: Path) -> bool:
    """Whether the run has a result. RecordError where it has one that can't be trusted."""
    return os.path.lexists(run / schema.RESULT) and bool(read_result(run))


def read_events(run: str | Path) -> Iterator[dict[str, Any]]:
    """Every event in order. A last line that a crash cut short is left out; any other bad line is an error."""
    path = Path(run) / schema.EVENTS
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            yield parsed(line, path, f"line {number} of ")


def _checked(run: Path, name: str, kind: type) -> dict[str, Any]:
    path = run / name
    with _opened(path) as file:
        content = parsed(file.read(), path)
    return checked(content, path, kind)


def checked(content: dict[str, Any], path: str | Path, kind: type) -> dict[str, Any]:
    """The content, if it is of the version and has the keys that `kind` (from `schema`) asks for."""
    version = content.get("schema")
    if version != schema.VERSION:
        raise RecordError(f"{path} has schema version {version}; this pdcl reads version {schema.VERSION}", path)
    if missing := schema.missing_keys(content, kind):
        raise RecordError(f"{path} lacks {', '.join(missing)}: it was not written by pdcl, or changed since", path)
    if wrong := schema.wrong_kinds(content):
        shown = repr(content[wrong[0]])[:60]
        raise RecordError(f"{path}: {wrong[0]} is {shown}: it was not written by pdcl, or changed since", path)
    return todays(content)


def todays(config: dict[str, Any]) -> dict[str, Any]:
    """A config in today's words: what version 0.1 called the preset `default` is `tuned`."""
    return {**config, "preset": TUNED} if config.get("preset") == "default" else config


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        what = "no result yet" if path.name == schema.RESULT and (path.parent / schema.CONFIG).exists() else "no run"
        raise RecordError(f"{path.parent}: {what} (there is no {path.name})", path) from None
    except OSError as error:
        raise RecordError(f"{path} can't be read: {error.strerror}", path) from error


def parsed(text: bytes, path: str | Path, where: str = "") -> dict[str, Any]:
    """The JSON object that `text` is; `path` and `where` are for the error if it isn't one."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where}{path} is not JSON: {error}", path) from None
    if not isinstance(content, dict):
        raise RecordError(f"{where}{path} holds {type(content).__name__}, not an object", path)
    return content
