"""What runs a study has."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdcl.errors import UsageError
from pdcl.lab.studies import Study, load, shipped
from pdcl.lab.studies.expansion import chosen_by
from pdcl.lab.studies.parsing import parse

HEAD = {"name": "s", "streams": ["digits"], "methods": ["er", "pdcl"], "memory": [50], "seeds": 1}


def study(head: dict[str, Any] | None = None, **sections: Any) -> Study:
    return parse({"study": {**HEAD, **(head or {})}, **sections})


sizes = st.lists(st.integers(10, 500), unique=True, min_size=1, max_size=3)
values = st.lists(st.floats(0.01, 1.0), unique=True, min_size=1, max_size=3)
chosen_methods = st.lists(st.sampled_from(["er", "pdcl", "finetune"]), unique=True, min_size=1)


@given(sizes, values, values, st.integers(1, 3), chosen_methods)
def test_runs_are_the_product_of_the_axes_that_a_method_uses(
    memory: list[int], lr: list[float], alpha: list[float], seeds: int, methods: list[str]
) -> None:
    grid = {"lr": lr, "alpha": alpha} if "pdcl" in methods else {"lr": lr}
    runs = study({"memory": memory, "seeds": seeds, "methods": methods}, grid=grid).runs()
    used = {"er": (memory, lr), "pdcl": (memory, lr, alpha), "finetune": (lr,)}
    for method in methods:
        own = [run for run in runs if run.method == method]
        assert len(own) == seeds * math.prod(len(axis) for axis in used[method])
        assert len({repr(run) for run in own}) == len(own)


@given(st.lists(st.integers(0, 50), unique=True, min_size=1, max_size=4))
def test_all_methods_have_the_first_seed_before_any_has_the_second(seeds: list[int]) -> None:
    found = [run.seed for run in study({"seeds": seeds}).runs()]
    assert found == [seed for seed in seeds for _ in range(2)]


def test_an_axis_that_a_method_does_not_use_collapses() -> None:
    runs = study({"methods": ["finetune", "pdcl"], "memory": [50, 100]}, grid={"alpha": [0.1, 0.5, 0.9]}).runs()
    finetune = [run for run in runs if run.method == "finetune"]
    assert [(run.memory, run.options) for run in finetune] == [(None, {})]
    assert len(runs) == 1 + 2 * 3


def test_what_a_method_is_given_pins_an_axis_for_it() -> None:
    runs = study(grid={"lr": [0.1, 0.2]}, methods={"pdcl": {"lr": 0.7}}).runs()
    assert [run.options["lr"] for run in runs if run.method == "pdcl"] == [0.7]
    assert [run.options["lr"] for run in runs if run.method == "er"] == [0.1, 0.2]


def test_what_is_special_stands_above_what_is_general() -> None:
    made = study(
        options={"lr": 0.1, "replay": 1},
        methods={"pdcl": {"replay": 3}},
        variants={"mine": {"method": "pdcl", "replay": 4}},
        streams={"digits": {"lr": 0.2, "replay": 2, "mine": {"alpha": 0.9}}},
    )
    options = {run.label: run.options for run in made.runs()}
    assert options["er"] == {"lr": 0.2, "replay": 2}
    assert options["pdcl"] == {"lr": 0.2, "replay": 3}
    assert options["mine"] == {"lr": 0.2, "replay": 4, "alpha": 0.9}


def test_a_variant_is_its_method_under_its_own_label() -> None:
    runs = study(variants={"pdcl-wide": {"method": "pdcl", "alpha": 0.9}}).runs()
    assert [(run.label, run.method) for run in runs] == [("er", "er"), ("pdcl", "pdcl"), ("pdcl-wide", "pdcl")]


def test_a_stream_may_have_sizes_seeds_and_methods_of_its_own() -> None:
    made = study(
        {"streams": ["digits", "synthetic"], "seeds": 2},
        streams={"synthetic": {"memory": [20, 30], "seeds": [7], "methods": ["er"], "stream_options": {"tasks": 2}}},
    )
    runs = made.runs()
    assert {(run.method, run.seed, run.memory) for run in runs if run.stream == "digits"} == {
        ("er", 0, 50), ("er", 1, 50), ("pdcl", 0, 50), ("pdcl", 1, 50)
    }  # fmt: skip
    assert [(run.memory, run.seed, run.stream_options) for run in runs if run.stream == "synthetic"] == [
        (20, 7, {"tasks": 2}), (30, 7, {"tasks": 2})
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"options": {"lrr": 0.1}}, "Did you mean 'lr'?"),
        ({"grid": {"alpha": 0.3}}, "must be a list"),
        ({"grid": {"memory": [1]}}, "stand in"),
        ({"methods": {"er": {"alpha": 0.3}}}, "'alpha'"),
        ({"methods": {"gone": {}}}, "'gone'"),
        ({"variants": {"mine": {"alpha": 0.3}}}, "which method"),
        ({"streams": {"mnist": {"lr": 0.1}}}, "'mnist'"),
        ({"gird": {}}, "Did you mean 'grid'?"),
        ({"tune": {"budget": 1, "candidates": {"er": [{"lr": 0.1}, {"lr": 0.2}]}}}, "the budget for every method is 1"),
        ({"tune": {"budget": 2, "candidates": {"er": {"lr": [0.1]}}}, "grid": {"lr": [0.1]}}, "an axis of"),
    ],
)
def test_what_would_have_no_effect_is_refused(sections: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        study(**sections).runs()
    assert said in str(refused.value)


def test_a_misspelt_method_or_stream_is_refused() -> None:
    for head in ({"methods": ["pdlc"]}, {"streams": ["digit"]}):
        with pytest.raises(UsageError, match=r"[Dd]id you mean"):
            study(head).runs()


def test_words_choose_a_part_of_a_study() -> None:
    made = study({"methods": ["finetune", "er", "pdcl"], "memory": [50, 100], "seeds": 3})
    chosen = chosen_by(made, ["m50", "s1", "s2", "er", "finetune"])
    kept = [(run.label, run.memory, run.seed) for run in made.runs() if chosen(run)]
    assert kept == [("finetune", None, 1), ("er", 50, 1), ("finetune", None, 2), ("er", 50, 2)]
    with pytest.raises(UsageError, match="m51"):
        chosen_by(made, ["m51"])


@pytest.mark.parametrize("name", shipped())
def test_our_own_studies_are_sound(name: str) -> None:
    made = load(name)
    assert made.name == name
    assert made.runs()


def test_the_first_look_is_what_it_was_announced_to_be() -> None:
    made = load("first_look")
    cells = {(run.stream, run.label, run.memory) for run in made.runs()}
    assert made.preset == "equal"
    assert made.seeds == (0, 1, 2, 3, 4)
    assert {memory for stream, label, memory in cells if (stream, label) == ("mnist", "pdcl")} == {200, 500, 2000}
    assert {memory for stream, label, memory in cells if (stream, label) == ("speech", "er")} == {500}
    assert made.tuning is None or made.tuning.budget <= 4


def test_a_file_that_is_not_there_names_our_studies(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="first_look"):
        load(tmp_path / "gone.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[study\n")
    with pytest.raises(UsageError, match="not TOML"):
        load(broken)


def test_plugins_are_found_beside_the_study_file(tmp_path: Path) -> None:
    text = '[study]\nname = "p"\nstreams = ["digits"]\nmethods = ["er"]\nplugins = ["own.py"]\n'
    assert parse(tomllib.loads(text), text, tmp_path).plugins == (str(tmp_path / "own.py"),)


def test_the_studies_of_the_documentation_are_sound() -> None:
    page = Path(__file__).parents[2] / "docs" / "studies.md"
    if not page.exists():
        pytest.skip("the documentation isn't here")
    simple, full, parts = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(parse(tomllib.loads(simple)).runs()) == 5 * (1 + 2 + 2)
    assert {run.label for run in parse(tomllib.loads(full)).runs()} == {"er", "pdcl", "pdcl-tight"}
    # 2 methods, 2 values of α for pdcl, 2 methods at 2 sizes; five seeds each.
    assert len(parse(tomllib.loads(parts)).runs()) == 5 * (2 + 2 + 4)
