"""Every option of every method, typed on the command line: it takes effect, or one line says why it can't."""

from __future__ import annotations

import typing
from dataclasses import fields
from typing import Any

import pytest

from pdcl.algorithm.rules import HOMES, rule_names
from pdcl.cli import main
from pdcl.cli.form import AS_TEXT, NOT_OFFERED
from pdcl.errors import PdclError
from pdcl.learning.schedule import Schedule
from pdcl.methods.catalog import method, methods
from pdcl.methods.pdcl import PDCL
from pdcl.methods.rule_options import SHORT
from pdcl.running import run
from pdcl.streams import catalog

NUMBERS: dict[Any, Any] = {int: 9, float: 0.7}


class Built(PdclError):
    """All is there to begin with."""


@pytest.fixture(scope="module")
def digits() -> Any:
    return catalog.load("digits")


@pytest.fixture
def typed(digits: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any) -> Any:
    """Types words behind `pdcl run digits`: what stands on stderr, and the options of the run if it would begin."""
    begun: list[dict[str, Any]] = []

    def begin(learner: Any, stream: Any, name: str, schedule: Schedule, *_: Any) -> None:
        begun.append({each.name: getattr(one, each.name) for one in (learner, schedule) for each in fields(one)})
        raise Built("built")

    monkeypatch.setattr(catalog, "load", lambda name, **options: digits)
    monkeypatch.setattr(run, "Execution", begin)

    def type_in(*words: str) -> tuple[str, dict[str, Any]]:
        begun.clear()
        assert main(["run", "digits", *words, "--out", str(tmp_path)]) == 1
        return capsys.readouterr().err, {**begun[0]} if begun else {}

    return type_in


def kind_of(hint: Any) -> Any:
    """int of `int | None`."""
    return next(each for each in (*typing.get_args(hint), hint) if each is not type(None))


def values_of(name: str, kind: Any, usual: Any) -> list[Any]:
    """A number, the other switch, every rule there is; of other texts the one that stands there, and nonsense."""
    if kind is bool:
        return [not usual] if usual is not None else ["True", "False"]
    if kind in NUMBERS:
        return [NUMBERS[kind]]
    return rule_names(name) if name in HOMES else [*([usual] if isinstance(usual, str) else []), "nonsense"]


def each_option(name: str) -> list[tuple[str, Any]]:
    kind = method(name).load()
    hints = {**typing.get_type_hints(kind), **typing.get_type_hints(Schedule)}
    return [
        (each.name, value)
        for each in (*fields(kind), *fields(Schedule))
        if each.init and each.name not in (*NOT_OFFERED, *kind.unused)
        for value in values_of(each.name, kind_of(AS_TEXT.get(each.name, hints[each.name])), each.default)
    ]


def words(option: str, value: Any) -> list[str]:
    flag = option.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", str(value)]


def fault(option: str, value: Any, said: str, begun: dict[str, Any]) -> str | None:
    """Anything but the value in effect, or one line that names the option."""
    last = [line for line in said.splitlines() if not line.startswith("auto: ")]
    if begun:
        return None if str(begun[option]) == str(value) else f"{option}={value} became {begun[option]}"
    one_line = len(last) == 1 and last[0].startswith("pdcl run: ") and option in last[0]
    return None if one_line else f"{option}={value}: {said}"


@pytest.mark.parametrize("name", list(methods()))
def test_an_option_takes_effect_or_is_refused_in_one_line(typed: Any, name: str) -> None:
    asked = each_option(name)
    assert {"seed", "batch", "device"} <= {option for option, _ in asked}
    found = [fault(option, value, *typed(name, *words(option, value))) for option, value in asked]
    assert [each for each in found if each] == []


@pytest.mark.parametrize("kind", HOMES)
def test_a_setting_of_a_rule_takes_effect_beside_the_rule_or_is_refused_in_one_line(typed: Any, kind: str) -> None:
    hints = typing.get_type_hints(PDCL)
    short = {option: kind_of(hints[option]) for option, (home, _) in SHORT.items() if home == kind}
    found = [
        fault(option, value, *typed("pdcl", f"--{kind}", rule, *words(option, value)))
        for rule in rule_names(kind)
        for option, type_ in short.items()
        for value in values_of(option, type_, None)
    ]
    assert [each for each in found if each] == []
