"""Token numbers as counts of hashed words and pairs of words: 1 + log(count), divided by the length of the vector."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.features.feature_map import FeatureMap
from pdcl.ragged import Ragged

# Odd multipliers: Knuth's, and the golden ratio's.
FIRST, SECOND = 2654435761, 0x9E3779B97F4A7C15 - 2**64


class NGrams(FeatureMap):
    """width: buckets that words and pairs are hashed into."""

    def __init__(self, width: int) -> None:
        super().__init__(f"ngrams:{width}", width)

    def compute(self, x: Any) -> Tensor:
        tokens = x["input_ids"] if isinstance(x, dict) else x
        if not isinstance(tokens, Ragged):
            raise UsageError("n-grams are made of token numbers of unequal length (input_ids); give features=module")
        values, lengths = tokens.values.long(), tokens.lengths
        rows = torch.repeat_interleave(torch.arange(len(lengths), device=values.device), lengths)
        same = rows[1:] == rows[:-1]
        pairs = (values[:-1] * FIRST + values[1:] + 1)[same]
        counts = self.centre.new_zeros(len(lengths), self.width)
        places, owners = torch.cat([values, pairs]), torch.cat([rows, rows[1:][same]])
        buckets = (places * SECOND >> 20) % self.width
        counts.index_put_((owners, buckets), self.centre.new_ones(()), accumulate=True)
        found = torch.where(counts > 0, 1 + counts.clamp(min=1).log(), 0.0)
        scaled: Tensor = found / found.norm(dim=1, keepdim=True).clamp(min=1e-12)
        return scaled

    def spreads(self, found: Tensor, usual: Tensor) -> Tensor:
        """One for all: rare words must not count more than common ones."""
        return found.std(correction=0).clamp(min=1e-12).expand_as(usual)
