"""A study as a user writes it: TOML to a `Study`, checked as far as names alone can tell."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from pdcl.errors import UsageError
from pdcl.given import short
from pdcl.lab.studies.study import OnStream, Study, Tuning, Variant, WhatIf
from pdcl.lab.studies.toml_table import Table, axes, names, numbers, only, product, tables
from pdcl.printable import printable

SECTIONS = ("study", "options", "grid", "methods", "streams", "variants", "tune", "whatif", "parts")
LARGEST = 2**24


def load(name_or_path: str | Path) -> Study:
    """A study of ours by name, or anyone's by the path of its TOML file."""
    text, place = _text(str(name_or_path))
    try:
        content = tomllib.loads(text)
    except RecursionError as error:
        raise UsageError(f"{name_or_path} is nested too deeply; a study has tables of tables, and no more") from error
    except ValueError as error:
        # Also a number of more digits than Python reads.
        raise UsageError(f"{name_or_path} is not TOML: {error}") from error
    try:
        return parse(content, text, place)
    except UsageError as error:
        raise UsageError(f"study {name_or_path}: {error}") from error


def shipped() -> list[str]:
    """The names of the studies inside the package."""
    found = [entry.name for entry in files(__package__).iterdir()]
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


def _text(name: str) -> tuple[str, Path]:
    path = Path(name)
    if path.is_file():
        return _read(path), path.parent
    if name not in shipped():
        raise UsageError(f"there is no study file {name!r}, and no study of that name; ours: {', '.join(shipped())}")
    return files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"), Path()


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{path} has {path.stat().st_size:,} bytes; a study has at most {LARGEST:,}")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start}), so it is no TOML; save it as UTF-8") from error
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error


def parse(content: Mapping[str, Any], text: str = "", place: Path | None = None) -> Study:
    """The study that a TOML document describes; paths of plug-ins count from `place`."""
    only(content, SECTIONS, "the file")
    content = _with_limits_in_one_line(content)
    if "parts" in content:
        return _in_parts(content, text, place)
    head = Table(content.get("study", {}), "[study]")
    study = Study(
        name=_name(head.take("name", str)),
        streams=names(head.take("streams", list), "streams"),
        methods=names(head.take("methods", list), "methods"),
        memory=_memory(head.take("memory", object, ()), "[study]") or (),
        seeds=numbers(head.take("seeds", object, 5), "seeds"),
        preset=head.take("preset", str, None),
        options=_without_columns(content.get("options", {}), "[options]"),
        grid=axes(_without_columns(content.get("grid", {}), "[grid]"), "[grid]"),
        method_options={name: dict(table) for name, table in tables(content, "methods").items()},
        on_stream={name: _on_stream(name, table) for name, table in tables(content, "streams").items()},
        variants={label: _variant(label, table) for label, table in tables(content, "variants").items()},
        tuning=None if "tune" not in content else _tuning(content["tune"], head.given("memory")),
        whatif=None if "whatif" not in content else _whatif(content["whatif"]),
        plugins=tuple(str((place or Path()) / path) for path in names(head.take("plugins", list, []), "plugins")),
        snapshot=head.take("snapshot", bool, True),
        text=text,
    )
    head.nothing_left()
    return study


def _in_parts(content: Mapping[str, Any], text: str, place: Path | None) -> Study:
    """A study whose `[parts.NAME]` each say what a file would; `[study]` holds what they share."""
    only(content, ("study", "parts"), "a file with [parts]")
    shared = dict(content.get("study", {}))
    parts = {name: _part(name, shared, table, place) for name, table in tables(content, "parts").items()}
    if not parts:
        raise UsageError("[parts] is empty; give each part a table: [parts.NAME]")
    first = next(iter(parts.values()))
    return Study(
        name=first.name,
        streams=tuple(dict.fromkeys(stream for part in parts.values() for stream in part.streams)),
        methods=tuple(dict.fromkeys(method for part in parts.values() for method in part.methods)),
        plugins=first.plugins,
        snapshot=first.snapshot,
        text=text,
        parts=parts,
    )


def _part(name: str, shared: Mapping[str, Any], table: Mapping[str, Any], place: Path | None) -> Study:
    sections = ("options", "grid", "variants", "on", "whatif")
    head = {**shared, **{key: value for key, value in table.items() if key not in sections}}
    own = {key: value for key, value in table.items() if key in sections}
    if "on" in own:
        own["streams"] = own.pop("on")
    try:
        return parse({"study": head, **own}, place=place)
    except UsageError as error:
        raise UsageError(f"[parts.{name}]: {error}") from error


def _with_limits_in_one_line(content: Any, key: str = "") -> Any:
    """The document with every `tolerance` that is a table as its text: tables mean methods elsewhere."""
    from pdcl.learning.stated import in_one_line
    from pdcl.limits.tolerances import read_limits

    if isinstance(content, Mapping):
        if key == "tolerance":
            return in_one_line(content)
        return {name: _with_limits_in_one_line(value, name) for name, value in content.items()}
    if isinstance(content, list):
        return [_with_limits_in_one_line(value, key) for value in content]
    if key == "tolerance":
        read_limits(content)
    return content


def _variant(label: str, table: Mapping[str, Any]) -> Variant:
    options = dict(table)
    if "method" not in options:
        raise UsageError(f"[variants.{label}] doesn't say which method it is a variant of: method = …")
    return Variant(options.pop("method"), options)


def _on_stream(name: str, content: Mapping[str, Any]) -> OnStream:
    table = Table(content, f"[streams.{name}]")
    methods, memory, seeds = (table.take(key, object, None) for key in ("methods", "memory", "seeds"))
    preset, stream_options = table.take("preset", str, None), table.take("stream_options", dict, {})
    own = {key: dict(value) for key, value in table.rest().items() if isinstance(value, dict)}
    return OnStream(
        None if methods is None else names(methods, f"streams.{name}.methods"),
        None if memory is None else _memory(memory, f"[streams.{name}]"),
        None if seeds is None else numbers(seeds, f"streams.{name}.seeds"),
        preset,
        stream_options,
        {key: value for key, value in table.rest().items() if key not in own},
        own,
    )


def _tuning(content: Mapping[str, Any], memory: Any) -> Tuning:
    table = Table(content, "[tune]")
    budget = table.take("budget", int)
    chosen = table.take("memory", object, next(iter(_memory(memory, "[tune]") or ()), None))
    candidates = {label: _candidates(given, label) for label, given in table.take("candidates", dict).items()}
    for label, given in candidates.items():
        if len(given) > budget:
            raise UsageError(f"[tune] gives {label!r} {len(given)} candidates; the budget for every method is {budget}")
    seeds = numbers(table.take("seeds", object, 1), "[tune] seeds")
    tuning = Tuning(candidates, budget, seeds, chosen, table.take("share", float, 0.1))
    table.nothing_left()
    return tuning


def _whatif(content: Mapping[str, Any]) -> WhatIf:
    table = Table(content, "[whatif]")
    values = table.take("tolerances", list)
    if not values or not all(type(value) in (int, float) and value >= 0 for value in values):
        raise UsageError(f"[whatif] tolerances = {values!r} must be a list of losses, none below 0")
    asked = WhatIf(
        table.take("task", int), tuple(map(float, values)), table.take("repeats", int, 1), table.take("longer", int, 1)
    )
    table.nothing_left()
    for name in ("task", "repeats", "longer"):
        if getattr(asked, name) < 1:
            raise UsageError(f"[whatif] {name} = {getattr(asked, name)} must be 1 or more")
    return asked


def _candidates(given: Any, label: str) -> list[dict[str, Any]]:
    """A list of option tables as it is, or the product of lists of values."""
    if isinstance(given, list):
        if not all(isinstance(table, Mapping) for table in given):
            raise UsageError(f"[tune] candidates of {label!r} = {short(given)} must be tables of options")
        return [dict(table) for table in given]
    return product(axes(given, f"[tune] candidates of {label!r}"))


def _name(given: str) -> str:
    """A name that is also that of a directory, in no other place than it should be."""
    if given in ("", ".", "..") or Path(given).name != given or printable(given) != given:
        raise UsageError(f"[study] name = {given!r} must be a name that a directory can have: letters, digits, - and _")
    return given


def _memory(given: Any, where: str) -> tuple[int | str, ...] | None:
    if given is None:
        return None
    sizes = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not all(type(size) in (int, str) for size in sizes):
        raise UsageError(f"{where} memory = {short(given)} must be a size or a list of sizes: 500, '64MB'")
    return sizes


def _without_columns(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    for name in ("memory", "seed", "seeds"):
        if name in table:
            raise UsageError(f"{where} has {name!r}; memory and seeds stand in [study] or [streams.NAME]")
    return dict(table)
