"""A class for every token: learned, saved and loaded, and what can't be done with tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import pdcl
from pdcl.errors import UsageError
from pdcl.storage.serialize import same

from .test_trees import LENGTH, LIMITS, Bag, in_form, made, sentences


def tagged(ragged: bool, task: int, seed: int = 0) -> tuple[Any, Any]:
    """Each word's tag is its parity; half of the tags are masked, and masked ones may be anything."""
    words, _ = sentences(task, 40, seed)
    tags = [torch.where(torch.arange(len(each)) % 2 == 0, each % 2, -100) for each in words]
    if ragged:
        return words, tags
    return in_form("dict", words)["input_ids"], torch.stack(
        [nn.functional.pad(each, (0, LENGTH - len(each)), value=-100) for each in tags]
    )


def taught(learner: Any, ragged: bool, tasks: range) -> Any:
    for task in tasks:
        learner.learn(*tagged(ragged, task), kind="tokens", epochs=6, batch=8)
    return learner


@pytest.mark.parametrize("name", ["er", "even", "pdcl0", "pdcl", "pdcl-s"])
@pytest.mark.parametrize("ragged", [True, False])
def test_tags_of_words_are_learned_and_ignored_ones_dont_count(ragged: bool, name: str, tmp_path: Path) -> None:
    learner = taught(made(name, per_token=True), ragged, range(2))
    again = pdcl.load(learner.save(tmp_path / "model"), network=Bag(per_token=True))
    for each in (learner, again):
        taught(each, ragged, range(2, 3))
    assert same(again.state_dict(), learner.state_dict())
    assert [learner.evaluate(*tagged(ragged, task, seed=1)) > 0.95 for task in range(3)] == [True] * 3
    assert learner.predict(tagged(ragged, 0)[0]).shape[0] == 40
    x, y = tagged(ragged, 0)
    with pytest.raises(UsageError, match="a token has class 2"):
        learner.learn(x, [each * 0 + 2 for each in y] if ragged else y * 0 + 2)


def test_limits_on_tokens_are_held_to_the_share_of_wrong_ones() -> None:
    learner = taught(made("pdcl", LIMITS, per_token=True), True, range(2))
    assert [promise.task for promise in learner.promises.rows] == ["0", "1"]


def test_drift_is_left_out_for_tokens_unless_it_is_stated() -> None:
    plain = taught(made("pdcl", {"tolerance": None}, per_token=True), True, range(1))
    assert "outputs" not in plain.held.columns
    with pytest.raises(UsageError, match="those of tokens have none; use drift=0"):
        taught(made("pdcl", {"drift": 0.3}, per_token=True), True, range(1))
    assert "outputs" in _classes().held.columns


def _classes() -> Any:
    learner = made("pdcl")
    learner.learn(*sentences(0), epochs=1)
    return learner
