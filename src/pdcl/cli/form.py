"""A command line made from a method's options: their types, their help, their preset's values as defaults."""

from __future__ import annotations

import re
import typing
from dataclasses import MISSING, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import tyro

# Options that take several kinds of value are written as text on the command line.
AS_TEXT: dict[str, Any] = {
    "network": str,
    "features": str,
    "memory": str,
    "tolerance": str | None,
    "optimizer": str,
    "scheduler": str | None,
}
T = TypeVar("T")
NOT_OFFERED = ("objective", "backbone", "class_weights")


def explained(kind: type) -> dict[str, str]:
    """Help by option: `name: text` in the docstrings of a class and its bases, with the indented lines that follow."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        for name, text in re.findall(r"^    (\w+): (.+(?:\n {8}\S.*)*)", base.__doc__ or "", re.MULTILINE):
            found[name] = " ".join(text.split())
    return found


def as_people_write(type_: Any, value: Any) -> dict[str, Any]:
    """How help shows an option: `FLOAT` in place of `{None}|FLOAT`, and no `(default: None)`."""
    kinds = [kind for kind in typing.get_args(type_) if kind is not type(None)]
    open_ended = type(None) in typing.get_args(type_) and len(kinds) == 1
    names = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}
    only = kinds[0] if open_ended else type_
    shown: dict[str, Any] = {"metavar": names[only]} if only in (int, float, str, Path) else {}
    # A list that must be given has no default to show; tyro would show an empty one.
    several = value is MISSING and typing.get_origin(type_) is tuple
    if isinstance(value, bool):
        return {"help_behavior_hint": "(on by default)" if value else ""}
    return shown | ({"help_behavior_hint": ""} if several or value is None or value == () else {})


def plain(kind: type[T]) -> type[T]:
    """A dataclass of options, whose help is made as people write it. What an option says of itself stands."""
    for each in fields(cast(Any, kind)):
        hint = typing.get_type_hints(kind, include_extras=True)[each.name]
        type_, *notes = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
        shown = as_people_write(type_, each.default)
        own = [note for note in notes if hasattr(note, "metavar")]
        stated = {name: value for note in own for name in ("metavar", "aliases") if (value := getattr(note, name))}
        if shown:
            rest = [note for note in notes if note not in own]
            kind.__annotations__[each.name] = Annotated[(type_, *rest, tyro.conf.arg(**shown | stated))]
    return kind


def given(argv: list[str]) -> set[str]:
    """Names of the options that stand on the command line."""
    words = [word[2:].split("=")[0].replace("-", "_") for word in argv if word.startswith("--")]
    return set(words) | {word[3:] for word in words if word.startswith("no_")}


def parse(kinds: list[type], defaults: dict[str, Any], argv: list[str], prog: str, about: str) -> dict[str, Any]:
    """The values of all fields of these dataclasses that stand in `argv`, by name."""
    columns: dict[str, tuple[str, Any, Any]] = {}
    idle = {*NOT_OFFERED, *(name for kind in kinds for name in getattr(kind, "unused", ()))}
    for kind in kinds:
        hints, helps = typing.get_type_hints(kind), explained(kind)
        for each in fields(kind):
            if each.init and each.name not in idle:
                type_: Any = AS_TEXT.get(each.name, hints[each.name])
                value = defaults.get(each.name, each.default)
                value = str(value) if each.name in AS_TEXT and value is not None else value
                type_ = str | None if type_ is str and value is None else type_
                about_it = tyro.conf.arg(help=helps.get(each.name, ""), **as_people_write(type_, value))
                # Annotated of a type that is only known at run time.
                note: Any = typing.cast(Any, Annotated)[type_, about_it]
                columns[each.name] = (each.name, note, field(default=value))
    form: Any = make_dataclass("Options", list(columns.values()), kw_only=True)
    try:
        parsed: Any = tyro.cli(form, prog=prog, description=about, args=argv)
    except SystemExit as stop:
        # What was wrong, and where help is, has been said.
        raise SystemExit(1 if stop.code else 0) from stop
    return {name: getattr(parsed, name) for name in given(argv) if name in columns}
