"""MODEL.md says of every limit what was measured, once and in its unit."""

from __future__ import annotations

import re
from typing import Any

import pytest

import pdcl

pytestmark = pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")


def _card(learner: Any, tmp_path: Any) -> str:
    return str((learner.save(tmp_path / "model") / "MODEL.md").read_text())


def test_the_newest_table_stands_in_the_card_and_no_other_number_for_a_task(tmp_path: Any, blobs: Any) -> None:
    learner = pdcl.PDCL("mlp:12", memory=60, lr=0.02, witness=4, tolerance={"a|b": "+2pt", "*": "5%"})
    for number, name in enumerate(("a|b", "second", "third")):
        learner.learn(*blobs([f"c{number}", f"d{number}"], 60, seed=number), name=name, epochs=2)
    text = _card(learner, tmp_path)
    assert learner.promises.markdown() in text
    assert "→" in text
    limits = text.split("## Limits")[1].split("##")[0]
    rows = [line for line in limits.splitlines() if re.match(r"\| (a&#124;b|second|third) \|", line)]
    assert [row.count("|") for row in rows] == [6, 6, 6]
    assert "olerance" not in text


def test_a_reference_that_was_moved_is_told_with_both_limits(tmp_path: Any, blobs: Any) -> None:
    learner = pdcl.PDCL("mlp:12", memory=60, tolerance="+2pt")
    learner.learn(*blobs(["a", "b"], 60), name="first", epochs=2)
    learner.learn(*blobs(["c", "d"], 60, seed=1), name="second", epochs=2)
    learner.rebase("first")
    text = _card(learner, tmp_path)
    assert re.search(r"first was rebased: \+2pt was [\d.]+ % error and is now [\d.]+ % error\.", text)
    row = next(line for line in text.splitlines() if line.startswith("| first |"))
    assert "rebased: judged after the next task" in row, (
        "what was judged against the old limit is not shown as the new one's"
    )


def test_without_limits_the_card_has_none(tmp_path: Any, blobs: Any) -> None:
    learner = pdcl.PDCL("mlp:12", memory=60)
    learner.learn(*blobs(["a", "b"], 30), epochs=1)
    assert "## Limits" not in _card(learner, tmp_path)
