"""The page on limits of language models is what its command makes of the runs that are kept."""

import json
import sys
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "docs/results"
sys.path.append(str(RESULTS))


@pytest.fixture
def tables():
    import llm_tables

    llm_tables.read()
    return llm_tables


def test_the_page_is_what_the_command_makes(tables):
    import llm

    assert (RESULTS / "llm.md").read_text(encoding="utf-8") == llm.page(), "run: python docs/results/llm.py"


def test_a_miss_counts_only_beyond_the_noise_of_the_test(tables):
    row = {"reached": {"code": 1.06, "shakespeare": 1.3}, "se": {"code": 0.006, "shakespeare": 0.01}}
    assert tables.keeps(row, (1.05, None, None))
    assert not tables.keeps({**row, "se": {"code": 0.004}}, (1.05, None, None))
    assert not tables.keeps(row, (1.05, 1.2, None))
    assert tables.over(row, (1.05, 1.2, None)) == pytest.approx([0.01, 0.1])


def test_regret_is_against_the_best_mix_that_keeps_the_limits(tables):
    def row(method, new, code, **more):
        reached, se = {"code": code, "shakespeare": 1.5, "manual": 1.5, "new": new}, dict.fromkeys(tables.OLD, 0.001)
        return {"run": {"method": method, "seed": 0, **more}, "reached": reached, "se": se}

    stated = [1.05, None, None]
    tables.ROWS[:] = [
        row("limits", 1.5, 1.05, stated=stated), row("mix", 1.2, 1.2, shares=[0.0] * 3),
        row("mix", 1.6, 1.01, shares=[0.1] * 3), row("grid", 1.45, 1.04, shares=[0.1, 0, 0]),
    ]  # fmt: skip
    assert tables.regrets_of(stated, with_grid=False) == pytest.approx([1.5 / 1.6 - 1])
    assert tables.regrets_of(stated, with_grid=True) == pytest.approx([1.5 / 1.45 - 1])


def test_every_line_of_the_data_is_a_run_of_the_study(tables):
    names = [json.dumps(row["run"]) for row in tables.ROWS]
    assert len(names) == len(set(names))
    assert {"limits", "mix", "grid", "frozen", "mean", "beside", "self", "again", "anchor"} == {
        row["run"]["method"] for row in tables.ROWS
    }
