"""Texts with a tokenizer: its columns are what the network is called with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import pdcl
from pdcl.ragged import Ragged
from pdcl.streams.checks import BadData
from pdcl.streams.texts import tokenized

TEXTS = [f"{word} number {'very ' * (k % 3)}{k % 7}" for k in range(40) for word in ("card", "cash", "loan", "fee")]
LABELS = ["card", "cash", "loan", "fee"] * 40


class Words:
    """A tokenizer that numbers words as they come."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __call__(self, texts: list[str]) -> dict[str, Any]:
        ids = [[self.known.setdefault(word, len(self.known) + 1) for word in text.split()] for text in texts]
        return {"input_ids": ids, "attention_mask": [[1] * len(row) for row in ids]}


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.vectors, self.head = nn.Embedding(40, 12), nn.Linear(12, 4)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        there = attention_mask[..., None].float()
        return self.head((self.vectors(input_ids) * there).sum(1) / there.sum(1))  # type: ignore[no-any-return]


def test_texts_are_learned_as_sequences() -> None:
    stream = pdcl.split(TEXTS, LABELS, tokenizer=Words())
    assert [leaf.name for leaf in stream.spec.leaves] == ["attention_mask", "input_ids"]
    assert all(leaf.ragged for leaf in stream.spec.leaves)
    result = pdcl.run(stream, "pdcl", network=Bag(), memory=40, epochs=3, lr=0.02)
    assert result.mean_accuracy > 0.9


def test_test_texts_go_through_the_same_tokenizer() -> None:
    stream = pdcl.split(np.asarray(TEXTS), LABELS, test=(TEXTS[:8], LABELS[:8]), tokenizer=Words())
    assert sum(len(task.test) for task in stream.tasks) == 8
    x, _ = stream.tasks[0].test.fetch(torch.arange(2))
    assert isinstance(x["input_ids"], Ragged)


def test_a_tokenizer_that_knows_its_longest_text_is_asked_to_cut() -> None:
    class Short(Words):
        model_max_length = 2

        def __call__(self, texts: list[str], truncation: bool = False) -> dict[str, Any]:
            found = super().__call__(texts)
            return {name: [row[:2] if truncation else row for row in rows] for name, rows in found.items()}

    assert tokenized(["a b c d"], Short())["input_ids"].lengths.tolist() == [2]


def test_columns_that_are_padded_already_stay_tables() -> None:
    columns = tokenized(["a", "b"], lambda texts: {"input_ids": np.ones((len(texts), 5), dtype="int64")})
    assert columns["input_ids"].shape == (2, 5)


@pytest.mark.parametrize(
    ("texts", "tokenizer", "said"),
    [
        ("one text", Words(), "list of texts, not str"),
        ([["a"], ["b"]], Words(), "row 0 is list"),
        (["a", None], Words(), "row 1 is NoneType"),
        (["a", ""], Words(), "row 1 has no tokens"),
        (["a"], lambda texts: [1], "gave list"),
        (["a", "b"], lambda texts: {"input_ids": [[1]]}, "1 rows of input_ids for 2 texts"),
        (["a"], "bert", "must be a function"),
    ],
)
def test_what_is_no_text_or_no_tokenizer_is_refused(texts: Any, tokenizer: Any, said: str) -> None:
    with pytest.raises(BadData, match=said):
        tokenized(texts, tokenizer)


def test_texts_without_a_tokenizer_say_the_way_out() -> None:
    with pytest.raises(BadData, match=r"tokenizer= of pdcl\.split"):
        pdcl.split(np.asarray(TEXTS)[:, None], LABELS)
