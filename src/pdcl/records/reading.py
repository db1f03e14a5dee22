"""The files of a run, read back. Whatever is wrong with them is said with the path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pdcl.errors import RecordError
from pdcl.records import schema


def read_config(run: str | Path) -> schema.Config:
    return cast(schema.Config, _checked(Path(run), schema.CONFIG, schema.Config))


def read_result(run: str | Path) -> schema.Result:
    return cast(schema.Result, _checked(Path(run), schema.RESULT, schema.Result))


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
    return content


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
    except ValueError as error:
        raise RecordError(f"{where}{path} is not JSON: {error}", path) from None
    if not isinstance(content, dict):
        raise RecordError(f"{where}{path} holds {type(content).__name__}, not an object", path)
    return content
