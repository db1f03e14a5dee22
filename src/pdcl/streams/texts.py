"""Texts as a tokenizer's columns: sequences of unequal length, which are padded only when a network is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdcl.ragged import Ragged
from pdcl.streams.checks import BadData
from pdcl.streams.inputs import inputs_of
from pdcl.trees import Tree

Tokenizer = Callable[..., Any]


def tokenized(texts: Any, tokenizer: Tokenizer, where: str = "x") -> Tree:
    """{"input_ids": …, "attention_mask": …}, whatever the tokenizer gives for a list of texts.

    Like those of Hugging Face it maps a list of texts to named columns. One that knows its longest text
    (`model_max_length`) is asked to cut longer ones; for another length give `partial(tokenizer, truncation=True,
    max_length=64)`.

    >>> columns = tokenized(["a bc", "d"], lambda texts: {"input_ids": [[len(w) for w in t.split()] for t in texts]})
    >>> columns["input_ids"].lengths.tolist()
    [2, 1]
    """
    found = texts_of(texts, where)
    if not callable(tokenizer):
        raise BadData(f"tokenizer={tokenizer!r} must be a function of a list of texts, such as one of Hugging Face's")
    cuts = {"truncation": True} if hasattr(tokenizer, "model_max_length") else {}
    given = tokenizer(found, **cuts)
    if not isinstance(given, Mapping) or not given:
        raise BadData(f"{where}: the tokenizer gave {type(given).__name__}; it must give named columns (input_ids, …)")
    columns = {str(name): _column(values, f"{where}: {name}") for name, values in given.items()}
    for name, column in columns.items():
        if len(column) != len(found):
            raise BadData(f"{where}: the tokenizer gave {len(column)} rows of {name} for {len(found)} texts")
    return columns


def texts_of(texts: Any, where: str) -> list[str]:
    """A list of texts, or why this isn't one."""
    if isinstance(texts, str) or not (isinstance(texts, Sequence | np.ndarray) or hasattr(texts, "__array__")):
        raise BadData(f"{where}: tokenizer= wants a list of texts, not {type(texts).__name__}")
    found = list(texts)
    for row, text in enumerate(found):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise BadData(f"{where}: row {row} is {kind}, and tokenizer= wants texts; drop or fill such rows first")
    return [str(text) for text in found]


def _column(values: Any, where: str) -> Tensor | Ragged:
    """A table as it is; lists as sequences, even where all happen to be of one length."""
    if isinstance(values, Tensor | np.ndarray):
        return inputs_of(values, where)
    rows = [torch.as_tensor(row) for row in values]
    if empty := [k for k, row in enumerate(rows) if not row.numel()]:
        raise BadData(f"{where}: row {empty[0]} has no tokens; drop empty texts, or let the tokenizer add its own")
    return Ragged.of(rows) if rows and rows[0].dim() else inputs_of(values, where)
