"""Rules by name, written as text: `"affine:alpha=.3"` is the partition rule `affine` with one setting changed.

Four choices of the method are such rules: how duals move (`dual`), how replay estimates the Lagrangian (`estimator`),
how memory is divided (`partition`), which samples it keeps (`selection`); a fifth may act at each dual step (`lever`).
A rule is a small frozen dataclass; its fields are its settings.

>>> rule("partition", "affine:alpha=.3")
Affine(alpha=0.3, current_cap=1.0)
>>> describe_rule("partition", rule("partition", "affine:alpha=.3"))
'affine:alpha=0.3'
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any, TypeVar

from pdcl.errors import UsageError

Kind = TypeVar("Kind", bound=type)

# Where the rules of each kind are written down; they register themselves when imported.
HOMES = {
    "dual": "pdcl.algorithm.dual_rules",
    "estimator": "pdcl.algorithm.draws",
    "partition": "pdcl.algorithm.partition_rules",
    "selection": "pdcl.algorithm.selection_rules",
    "lever": "pdcl.algorithm.levers",
}
BASES = {
    "dual": "DualRule",
    "estimator": "Estimator",
    "partition": "PartitionRule",
    "selection": "SelectionRule",
    "lever": "Lever",
}
_KNOWN: dict[str, dict[str, type]] = {kind: {} for kind in HOMES}


def register_rule(kind: str, name: str) -> Callable[[Kind], Kind]:
    """Make a rule known by name: `@pdcl.register_rule("dual", "mine")` above a frozen dataclass."""
    if kind not in HOMES:
        raise UsageError(f"there are no rules of kind {kind!r}; there are: {', '.join(HOMES)}")

    def remember(found: Kind) -> Kind:
        if not is_dataclass(found):
            raise UsageError(f"{found.__name__} must be a dataclass: put @dataclass(frozen=True) above it")
        base = _base(kind)
        if not issubclass(found, base):
            raise UsageError(f"{found.__name__} must extend pdcl.{base.__name__}, which has what others ask of a rule")
        if missing := sorted(getattr(found, "__abstractmethods__", ())):
            raise UsageError(f"{found.__name__} must have the method {missing[0]}, as pdcl.{base.__name__} says")
        _KNOWN[kind][name] = found
        return found

    return remember


def _base(kind: str) -> type:
    """What rules of this kind extend."""
    found: type = getattr(import_module(HOMES[kind]), BASES[kind])
    return found


def rule_names(kind: str) -> list[str]:
    """The rules of this kind that are known."""
    import_module(HOMES[kind])
    return list(_KNOWN[kind])


def rule(kind: str, written: Any) -> Any:
    """The rule that is written, such as "ascent:lr=.05"; one that is a rule already is returned as it is."""
    if not isinstance(written, str):
        return written
    name, _, settings = written.partition(":")
    known = rule_names(kind)
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{kind}={written!r} is unknown; choose one of {', '.join(known)}.{hint}")
    found = _KNOWN[kind][name]
    return found(**dict(_setting(kind, name, found, part) for part in settings.split(",") if part.strip()))


def describe_rule(kind: str, found: Any) -> str:
    """The text that `rule` reads back as this rule: its name and the settings that differ from their defaults."""
    known = rule_names(kind)
    name = next((n for n in known if _KNOWN[kind][n] is type(found)), None)
    if name is None:
        raise UsageError(f"{type(found).__name__} isn't registered as a {kind} rule: use @pdcl.register_rule")
    changed = [f"{f.name}={getattr(found, f.name)}" for f in fields(found) if getattr(found, f.name) != f.default]
    return name + (":" + ",".join(changed) if changed else "")


def settings(found: Any) -> list[str]:
    """The names of a rule's settings."""
    return [f.name for f in fields(found)]


def stated_settings(written: Any) -> list[str]:
    """The settings that a rule's text names.

    >>> stated_settings("affine:alpha=.3")
    ['alpha']
    """
    parts = written.partition(":")[2].split(",") if isinstance(written, str) else []
    return [part.partition("=")[0].strip() for part in parts if part.strip()]


def _setting(kind: str, name: str, found: type, text: str) -> tuple[str, Any]:
    key, equals, value = (part.strip() for part in text.partition("="))
    known = {f.name: f.default for f in fields(found)}
    if not equals or key not in known:
        there = ", ".join(known) or "no settings"
        raise UsageError(f"{kind}={name!r} has no setting {key!r}: it has {there}; write {name}:name=value")
    return key, _value(f"{kind}={name}:{key}", value, known[key])


def _value(where: str, text: str, default: Any) -> Any:
    """The text as the type that the default has."""
    if default is MISSING or isinstance(default, str):
        return text
    if isinstance(default, bool):
        if text.lower() in ("true", "false", "1", "0"):
            return text.lower() in ("true", "1")
        raise UsageError(f"{where} is true or false, not {text!r}")
    try:
        return type(default)(text)
    except ValueError:
        raise UsageError(f"{where} is a number, such as {default}, not {text!r}") from None


def between(low: float, high: float, **values: float) -> None:
    """Refuse settings outside [low, high] by name."""
    for name, value in values.items():
        if not low <= value <= high:
            raise UsageError(f"{name}={value} must lie between {low:g} and {high:g}")


def not_negative(**values: float) -> None:
    """Refuse negative settings, and those that aren't numbers, by name."""
    for name, value in values.items():
        if not value >= 0:
            raise UsageError(f"{name}={value} must not be negative")
