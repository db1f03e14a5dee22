"""Which samples a look saw: 48 bits of a hash of each input, eight characters a sample in a ledger.

The key is the same everywhere, so that any two ledgers can be compared: whoever has a sample can tell whether a look
saw it. Labels and columns don't count: a sample with another label is still the sample. Among 10,000 samples against
10,000 others, some two are taken for the same with probability 4 in ten million; that counts a look too many.

>>> import torch
>>> import torch
>>> one = marks_of(torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
>>> len(one), bool((as_marks(as_text(one)) == one).all())
(2, True)
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

Marks = npt.NDArray[np.int64]
KEY = b"pdcl: looks at audit samples"
BYTES = 6


def marks_of(x: Tensor) -> Marks:
    """A mark per distinct input, sorted."""
    # Ledgers of logs are read without torch.
    from pdcl.streams.hashes import sample_hashes

    return np.unique(sample_hashes(x, KEY).numpy() & (2 ** (8 * BYTES) - 1))


def as_text(marks: Marks) -> str:
    return base64.b64encode(marks.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :BYTES].tobytes()).decode()


def as_marks(text: str) -> Marks:
    held = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8).reshape(-1, BYTES)
    padded = np.zeros((len(held), 8), dtype=np.uint8)
    padded[:, :BYTES] = held
    return padded.reshape(-1).view("<i8").astype(np.int64)


def shared(one: Marks, other: Marks) -> int:
    """How many samples both have."""
    return int(np.isin(one, other).sum())


def difference(marks: Marks, earlier: dict[int, Marks]) -> dict[str, Any]:
    """A set as what it has more and less than the earlier one that is most like it: a set is seldom written twice."""
    like = max(earlier, key=lambda number: (shared(marks, earlier[number]), number), default=None)
    if like is None or not shared(marks, earlier[like]):
        return {"like": None, "more": as_text(marks), "less": ""}
    base = earlier[like]
    more, less = (np.setdiff1d(*pair, assume_unique=True) for pair in ((marks, base), (base, marks)))
    return {"like": like, "more": as_text(more), "less": as_text(less)}


def applied(written: dict[str, Any], earlier: dict[int, Marks]) -> Marks:
    """The set that `difference` wrote."""
    base = np.zeros(0, dtype=np.int64) if written["like"] is None else earlier[written["like"]]
    kept = np.setdiff1d(base, as_marks(written["less"]))
    return np.union1d(kept, as_marks(written["more"]))
