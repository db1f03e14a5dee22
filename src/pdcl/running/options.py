"""From names and presets to values: each option resolved once, with the place it came from.

method default < stream default (preset) < (stream, method, nearest memory) < study < user
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from types import FunctionType
from typing import Any

from pdcl.errors import UsageError
from pdcl.laboratory import lab
from pdcl.learning.schedule import Schedule
from pdcl.learning.stated import check_against, check_kind, in_one_line
from pdcl.methods.catalog import Method
from pdcl.past.bound import parse_bound
from pdcl.running.auto import auto
from pdcl.streams.task import Stream


@dataclass
class Options:
    """Values by name and, for each, its source."""

    preset: str
    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def put(self, options: Mapping[str, Any], source: str) -> None:
        for name, value in options.items():
            # "500" from a command line and 500 from Python are the same memory, and the same run.
            value = int(value) if name == "memory" and str(value).isdigit() else value
            self.values[name] = in_one_line(value) if name == "tolerance" else value
            self.sources[name] = source

    def settle(self, found: Mapping[str, Any]) -> None:
        """Enter what options that were left open came to."""
        for name, value in found.items():
            if self.values.get(name) is None and name in self.values:
                self.values[name] = value

    def of(self, kind: Any) -> dict[str, Any]:
        """Those that are fields of this dataclass."""
        names = {f.name for f in fields(kind) if f.init}
        return {name: value for name, value in self.values.items() if name in names}

    def changed(self) -> dict[str, Any]:
        """What sets this run apart from the default, for its name."""
        own = {n: v for n, v in self.values.items() if self.sources[n] in ("user", "study") and n not in _IN_NAME}
        return own | ({"preset": self.preset} if self.preset != AUTO else {})

    def as_config(self) -> dict[str, dict[str, Any]]:
        return {n: {"value": plain(self.values[n]), "source": self.sources[n]} for n in sorted(self.values)}


# The one default: options by the size and shape of the data, the same rules for every stream.
AUTO = "auto"
_IN_NAME = ("memory", "seed")
_SCHEDULE = tuple(f.name for f in fields(Schedule))


def names(kind: Any) -> list[str]:
    """Every option that a method has: its own and those of the loop, without those that it has no use for."""
    return [name for name in (*(f.name for f in fields(kind) if f.init), *_SCHEDULE) if name not in kind.unused]


def standing(entry: Method, stream: str, preset: str | None, memory: Any) -> dict[str, Any]:
    """What the options are before a user changes any, as far as a stream's name alone can tell."""
    kind = entry.load()
    known = names(kind)
    values: dict[str, Any] = {f.name: f.default for f in (*fields(kind), *fields(Schedule)) if f.init}
    values |= entry.defaults
    bound = memory or values.get("memory")
    size = None if bound is None else parse_bound(bound)[0]
    if preset not in (None, AUTO):
        for _, table in lab("presets").layers(stream, preset, entry, size):
            values |= _for_method(table, kind, known)
    return values


def resolve(
    entry: Method, stream: Stream, preset: str | None, user: Mapping[str, Any], study: Mapping[str, Any] | None = None
) -> Options:
    """All options of one run. An option that the method doesn't have is an error."""
    kind = entry.load()
    known = names(kind)
    check(entry.name, known, user)
    preset = preset or AUTO
    options = Options(preset)
    options.put({f.name: f.default for f in (*fields(kind), *fields(Schedule)) if f.name in known}, "method")
    options.put(entry.defaults, "method")
    given = {**(study or {}), **user}
    for source, table in _preset_layers(stream, preset, entry, given.get("memory", options.values.get("memory"))):
        options.put(_for_method(table, kind, known), source)
    options.put(study or {}, "study")
    options.put(user, "user")
    _judge_what_users_state(options)
    check_against(options.values.get("tolerance"), stream.tasks)
    check_kind(options.values.get("tolerance"), stream.spec.kind, options.values.get("objective"))
    _leave_out(options, kind)
    if any(name in given for name in options.of(kind)):
        # A learner refuses what has no effect or isn't of its kind. It has to before open options are settled by it.
        kind(**options.of(kind))
    options.settle(kind.settled(options.values))
    return options


def _for_method(table: Mapping[str, Any], kind: Any, known: list[str]) -> dict[str, Any]:
    """A preset's options that a method has, and that presets may set."""
    return {name: value for name, value in table.items() if name in known and name not in kind.not_from_presets}


def _judge_what_users_state(options: Options) -> None:
    """A table may leave limits unjudged (guard and witness 0); one that a user states is judged, in every preset."""
    if options.sources.get("tolerance") == "user":
        for name in ("guard", "witness"):
            if options.sources.get(name) not in (None, "user", "study"):
                options.put({name: None}, "method")


def _leave_out(options: Options, kind: Any) -> None:
    """Drop a preset's options that have no effect beside the user's: a preset serves all methods of a stream.

    What a user or a study asked for is left for the learner to refuse.
    """
    for name in kind.without_effect(options.values):
        if options.sources[name] not in ("user", "study"):
            del options.values[name], options.sources[name]


def _preset_layers(stream: Stream, preset: str, entry: Method, memory: Any) -> list[tuple[str, dict[str, Any]]]:
    if preset == AUTO:
        return [(AUTO, auto(stream))]
    if stream.preset is None:
        raise UsageError(f"stream {stream.name!r} has no presets, so preset={preset!r} can't apply; leave it out")
    samples = None if memory is None else parse_bound(memory)[0]
    found: list[tuple[str, dict[str, Any]]] = lab("presets").layers(stream.preset, preset, entry, samples)
    return found


def check(method: str, known: list[str], given: Mapping[str, Any]) -> None:
    """Refuse what the method doesn't use, and suggest what may have been meant."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{method!r} has no option {name!r}.{hint} It has: {', '.join(known)}")


def plain(value: Any) -> Any:
    """An option's value as it stands in a file: JSON, or its text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    from torch import nn

    from pdcl.limits.tolerance import Tolerance, describe
    from pdcl.objective import Objective

    if isinstance(value, nn.Module):
        return getattr(value, "pdcl_reference", repr(value))
    if isinstance(value, partial):
        return [plain(value.func), *map(plain, value.args), plain(value.keywords)]
    if isinstance(value, type | FunctionType):
        return f"{value.__module__}:{value.__qualname__}"
    return (
        describe(value) if isinstance(value, Tolerance) else value.name if isinstance(value, Objective) else repr(value)
    )
