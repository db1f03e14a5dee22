"""Batches whose samples are joined in one row, without padding: TRL's packing and padding_free, and
`DataCollatorWithFlattening`.

A sample starts where positions do, so that a batch can give its last ones up for old ones. Old samples and guards are
padded instead: each has a loss of its own, the same one, since no sample of a joined batch sees another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import DataCollatorWithFlattening

from pdcl.streams.checks import IGNORED

PLACES = "position_ids"
BOUNDS, LONGEST = ("cu_seq_lens_q", "cu_seq_lens_k"), ("max_length_q", "max_length_k")


def joins(collator: Any) -> bool:
    return isinstance(collator, DataCollatorWithFlattening) or getattr(collator, "padding_free", False) is True


def padded(samples: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
    """A row for each sample. Without labels its tokens are its labels."""
    ids = [torch.as_tensor(each["input_ids"]) for each in samples]
    labels = [torch.as_tensor(each.get("labels", each["input_ids"])) for each in samples]
    return {
        "input_ids": pad_sequence(ids, batch_first=True),
        "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED),
        "attention_mask": pad_sequence([torch.ones_like(each) for each in ids], batch_first=True),
    }


def starts(inputs: Mapping[str, Any]) -> list[int]:
    """Where samples of a joined batch start; fewer than two: it isn't one. Padding at its end is no sample."""
    places, labels = inputs.get(PLACES), inputs.get("labels")
    if not isinstance(places, Tensor) or not isinstance(labels, Tensor) or places.dim() != 2 or len(places) != 1:
        return []
    found = (places[0] == places[0, 0]).nonzero().flatten().tolist()
    ends = [*found[1:], places.shape[1]]
    return [a for a, b in zip(found, ends, strict=True) if bool((labels[0, a:b] != IGNORED).any())]


def without_last_joined(few: int, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A joined batch without its last `few` samples; at least one is left."""
    found = starts(inputs)
    if not few:
        return dict(inputs)
    cut, length = found[max(1, len(found) - few)], inputs[PLACES].shape[1]
    left = {
        name: each[:, :cut] if isinstance(each, Tensor) and each.dim() > 1 and each.shape[1] == length else each
        for name, each in inputs.items()
    }
    for name, longest in zip(BOUNDS, LONGEST, strict=True):
        if isinstance(inputs.get(name), Tensor):
            bounds = inputs[name].flatten()
            left[name] = bounds[bounds <= cut].view(*inputs[name].shape[:-1], -1)
            left[longest] = int(bounds[bounds <= cut].diff().max())
    return left
