"""Streams of dicts and sequences: derived, held out, and asked for what they can't give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.streams.checks import BadData
from pdcl.streams.data import everything
from pdcl.streams.task import Stream


def told() -> Stream:
    """Two tasks of 20 sentences; the age of each is its number, and so is its first word."""
    tasks = []
    for task in range(2):
        numbers = range(20 * task, 20 * task + 20)
        words = [torch.full((1 + number % 4,), number) for number in numbers]
        tasks.append(({"words": words, "age": np.asarray(numbers)}, [f"{'ab'[n % 2]}{task}" for n in numbers]))
    return pdcl.from_tasks(tasks, test_share=0.2)


def together(stream: Stream) -> list[int]:
    """The numbers of all training samples, after looking that the parts of each belong together."""
    found: list[int] = []
    for task in stream.tasks:
        x, _ = task.data.fetch(torch.randperm(len(task.data), generator=torch.Generator().manual_seed(0)))
        ages: list[int] = x["age"].tolist()
        assert [(int(words[0]), len(words)) for words in x["words"]] == [(age, 1 + age % 4) for age in ages]
        found += ages
    return found


@pytest.mark.parametrize("options", [{"blurry": 0.5}, {"noise": 0.2}, {"per_class": 3}])
def test_a_derived_stream_keeps_the_parts_of_a_sample_together(options: dict[str, Any]) -> None:
    whole, derived = together(told()), together(told().derive(**options))
    assert set(derived) <= set(whole)
    assert len(derived) == (12 if "per_class" in options else len(whole))


@pytest.mark.parametrize("option", [{"permuted": True}, {"rotated": 30.0}, {"gain": 2.0}])
def test_inputs_that_are_no_tensor_cant_be_permuted_or_turned(option: dict[str, Any]) -> None:
    with pytest.raises(BadData, match=r"needs inputs that are one tensor; this stream has age \(\) int64, words"):
        told().derive(domains=2, **option)


def test_what_is_held_out_for_tuning_is_trained_on_no_more() -> None:
    stream = told().for_tuning(0.25)
    tested = [age for task in stream.tasks for age in task.test.fetch(everything(task.test))[0]["age"].tolist()]
    assert sorted(tested + together(stream)) == sorted(together(told()))


def test_a_stream_shows_its_parts() -> None:
    assert "inputs age () int64, words (length) int64" in repr(told())


@pytest.mark.parametrize("kind", ["classification", "regression", "multilabel"])
def test_targets_of_unequal_length_belong_to_tokens_alone(kind: Any) -> None:
    with pytest.raises(BadData, match=r"rows of different lengths \(row 0 has 2, row 3 has 1\)"):
        pdcl.from_tasks([(torch.zeros(4, 2), [[0, 1]] * 3 + [[1]])], kind=kind)
