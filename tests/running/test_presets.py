"""The page on presets says what the presets do; the paper's preset is the paper's."""

from __future__ import annotations

import re
import runpy
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from pdcl.lab.methods.lwf import LwF
from pdcl.lab.methods.xder import XDER
from pdcl.lab.presets import layers, stream_options, tables
from pdcl.methods.catalog import Method, method, methods
from pdcl.methods.plain import Finetune
from pdcl.running.options import resolve, standing
from pdcl.streams.catalog import load

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "presets.md"
# Its table of rates, and its text: η_p, η_d, ε.
PRINTED = {
    "tiny_imagenet": (0.01, 0.05, 0.08),
    "speech": (0.001, 0.01, 0.02),
    "organa": (0.005, 0.01, 0.05),
    "mnist": (0.01, 0.1, 0.005),
}
LITERAL = {
    "optimizer": "adam", "alpha": 0.5, "start": 0.0, "current_cap": 0.0, "normalise": False, "clip": 1.0,
    "uniform_share": 0.0, "balance": False, "drift": 0.0, "decay": None, "gain": None, "warm": False,
    "base": 0.0, "guard": 0, "witness": 0,
}  # fmt: skip


# Deviations that are values, not rules; the table of printed rules leaves these out.
VALUES = {"network", "optimizer", "lr", "dual_lr", "tolerance", "partition", "stream.size"}


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "presets.py"))


def test_both_tables_of_the_page_are_what_the_presets_say(script: dict[str, Any]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == script["entered"](page), "run python docs/presets.py --write"
    assert all(line in page for line in (*script["lines"](), *script["baseline_lines"]()))


@pytest.mark.parametrize("name", ["pdcl0", "pdcl", "pdcl-s", "er", "er-ring", "agem", "gss", "xder"])
@pytest.mark.parametrize("preset", ["tuned", "equal", "paper", "tamed"])
def test_values_of_the_page_are_those_of_a_run(script: dict[str, Any], preset: str, name: str) -> None:
    run = resolve(method(name), load("digits"), preset, {}).values
    shown = script["effective"]("digits", preset, name)
    assert shown == {key: run[key] for key in shown}
    assert {key for key in run if run[key] is not None} - {*shown} <= {"base_most"}


def declared_in(kind: type, option: str) -> str:
    """The class that gives an option of this learner its meaning: the first of its ancestors to have it."""
    return next(each.__name__ for each in reversed(kind.__mro__) if option in vars(each).get("__annotations__", {}))


@pytest.mark.parametrize(
    "stream", sorted(path.stem for path in (ROOT / "src" / "pdcl" / "lab" / "presets").glob("*.toml"))
)
def test_what_a_preset_says_to_all_methods_means_the_same_in_each(stream: str) -> None:
    """Of two options with one name, such as the α of the partition and X-DER's, only one was meant."""
    meanings: dict[tuple[str, str], set[str]] = {}
    for preset in tables(stream):
        for entry in methods().values():
            kind = entry.load()
            own = {each.name for each in fields(kind)} - {*kind.not_from_presets}
            for source, said in layers(stream, preset, entry, 500):
                for option in said.keys() & own if source == f"preset {preset}" else ():
                    meanings.setdefault((preset, option), set()).add(declared_in(kind, option))
    assert meanings
    assert {key: classes for key, classes in meanings.items() if len(classes) > 1} == {}


def test_samples_in_memory_and_limits_of_a_preset_reach_no_method_that_keeps_statistics() -> None:
    run = resolve(method("exact"), load("digits"), "tuned", {}).values
    assert [run[name] for name in ("memory", "tolerance", "guard", "witness")] == [None] * 4


@pytest.mark.parametrize("preset", ["paper", "tamed"])
def test_the_alpha_of_the_partition_reaches_no_baseline(preset: str) -> None:
    found = {
        name: resolve(method(name), load("digits"), preset, {}).values["alpha"] for name in ("pdcl", "xder", "lwf")
    }
    assert found == {"pdcl": 0.5, "xder": XDER.alpha, "lwf": LwF.alpha}


def test_a_preset_says_nothing_to_an_option_of_ones_own_that_has_the_name_of_one_of_pdcl() -> None:
    @dataclass(eq=False)
    class Mine(Finetune):
        clip: float = 7.0

    assert standing(Method("mine", Mine, ""), "digits", "paper", None)["clip"] == 7.0


def test_an_option_that_is_left_open_is_no_deviation_at_the_value_of_the_paper(script: dict[str, Any]) -> None:
    found = script["deviations"]("mnist", "equal", "pdcl-s")
    assert "alpha" not in found
    told = {"clip": (0.9, 1.0), "candidates": (4, 0), "rescore": (True, False), "slack_samples": (512, 1_000_000)}
    assert {key: found[key] for key in told} == told
    assert not {*told} - {"slack_samples"} & {*script["deviations"]("mnist", "equal", "pdcl")}


def test_every_rule_that_a_preset_changes_is_explained(script: dict[str, Any]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = page.split("## What a printed rule is")[1].split("\n## ")[0]
    changed = {
        key
        for stream in (*PRINTED, "digits")
        for preset in tables(stream)
        for name in ("pdcl0", "pdcl", "pdcl-s")
        for key in script["deviations"](stream, preset, name)
    }
    assert changed - VALUES <= set(re.findall(r"`(\w+)`", table))


@pytest.mark.parametrize(("name", "given"), [("er", "10 + 10"), ("agem", "10 + 128"), ("gss", "128 + 10")])
def test_the_page_says_what_baselines_get_and_what_is_reported(script: dict[str, Any], name: str, given: str) -> None:
    """Mammoth's values for split MNIST at memory 500."""
    (row,) = [line for line in script["baseline_lines"]() if re.match(rf"\| mnist \| `paper` \| {name}\b[^-]", line)]
    assert "| adam 0.01, 10 + 10, " in row
    assert f"| `tuned`: sgd 0.1, {given}, " in row


def test_every_preset_of_every_stream_has_a_line() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for path in (ROOT / "src" / "pdcl" / "lab" / "presets").glob("*.toml"):
        for preset in tables(path.stem) if "paper" in tables(path.stem) else ():
            assert f"| {path.stem} | `{preset}` |" in text


@pytest.mark.parametrize("stream", [*PRINTED, "digits"])
def test_presets_hold_outputs_as_they_were_recorded(stream: str) -> None:
    """Their values were chosen so."""
    for preset in tables(stream):
        for name in ("pdcl0", "pdcl", "pdcl-s", "even"):
            assert standing(method(name), stream, preset, None)["soften"] == 0.0


@pytest.mark.parametrize("stream", PRINTED)
@pytest.mark.parametrize("name", ["pdcl0", "pdcl", "pdcl-s"])
def test_the_preset_paper_has_the_printed_values_and_rules(stream: str, name: str) -> None:
    found = standing(method(name), stream, "paper", None)
    assert (found["lr"], found["dual_lr"], found["tolerance"]) == PRINTED[stream]
    assert {key: found[key] for key in LITERAL} == LITERAL
    assert found["slack_samples"] >= found["memory"]


def test_tamed_is_paper_but_for_the_normalised_lagrangian() -> None:
    for stream in PRINTED:
        paper, tamed = (standing(method("pdcl"), stream, preset, None) for preset in ("paper", "tamed"))
        assert {key for key in paper if paper[key] != tamed[key]} == {"normalise"}


def test_small_presets_of_tiny_imagenet_constrain_the_loss_alone_on_small_images() -> None:
    for preset in ("small-equal", "small-paper"):
        found = standing(method("pdcl"), "tiny_imagenet", preset, None)
        assert (found["drift"], found["network"]) == (0.0, "resnet18:20")
        assert stream_options("tiny_imagenet", preset) == {"size": 32}


@pytest.mark.parametrize("preset", ["tuned", "equal", "paper"])
def test_a_limit_that_a_user_states_is_judged_in_every_preset(preset: str) -> None:
    digits, entry = load("digits"), method("pdcl")
    assert resolve(entry, digits, preset, {}).values["witness"] == 0
    stated = resolve(entry, digits, preset, {"tolerance": "+2pt"}).values
    assert (stated["guard"], stated["witness"]) == (None, None)
    assert resolve(entry, digits, preset, {"tolerance": "+2pt", "witness": 0}).values["witness"] == 0
