"""Keyed 64-bit hashes of samples and of group names: enough to recognise them again, too little to tell what they were.

The key is random and belongs to one learner, so that the lists of two learners can't be matched with each other. An
input is hashed by its bytes as a network gets them raw, leaf by leaf; the same image as bytes and as floats is two
inputs. Targets don't count: a sample with another label is still the sample. Hashes are int64, ready to be stored as
a tensor.

>>> key = bytes(16)
>>> one, same, other = sample_hashes(torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 2.5]]), key).tolist()
>>> one == same, one == other
(True, False)
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from pdcl.ragged import Ragged
from pdcl.streams.data import Data, everything
from pdcl.streams.readers import fetched
from pdcl.trees import Leaf, Tree, flatten

CHUNK = 1000


def new_key() -> bytes:
    """16 random bytes, not of any seeded generator: two learners of one seed still have two keys."""
    return secrets.token_bytes(16)


def sample_hashes(x: Tree, key: bytes) -> Tensor:
    """One hash per row of raw inputs; (n,) int64."""
    if isinstance(x, Tensor):
        return _hashed(_flat_rows(x), key)
    leaves = [(name.encode(), _row_bytes(leaf)) for name, leaf in sorted(flatten(x).items())]
    rows = zip(*(rows for _, rows in leaves), strict=True)
    names = [name for name, _ in leaves]
    # A leaf's name and length stand before its bytes, so that no two different samples give the same bytes.
    return _hashed(
        (b"".join(b"%s %d " % (n, len(row)) + row for n, row in zip(names, each, strict=True)) for each in rows), key
    )


def _row_bytes(leaf: Leaf) -> list[bytes]:
    if isinstance(leaf, Ragged):
        return [sequence.contiguous().numpy().tobytes() for sequence in leaf.cpu()]
    return [row.tobytes() for row in _flat_rows(leaf)]


def _flat_rows(leaf: Tensor) -> Any:
    """Rows × what each holds, without a copy where possible."""
    return leaf.detach().cpu().contiguous().reshape(len(leaf), -1).numpy()


def data_hashes(data: Data, key: bytes) -> Tensor:
    """One hash per sample of `data`, read in pieces; (n,) int64."""
    parts = [sample_hashes(x, key) for x, _ in fetched(data, everything(data).split(CHUNK), ahead=1)]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.int64)


def name_hashes(names: Iterable[Any], key: bytes) -> Tensor:
    """One hash per name of a group (a patient, a speaker), by its text; (n,) int64."""
    return _hashed((str(name).encode() for name in names), key)


def group_numbers(names: Iterable[Any], key: bytes) -> Tensor:
    """A number ≥ 0 for the group of every sample, the same for a group whenever it comes again; (n,) int64."""
    return as_numbers(name_hashes(names, key))


def as_numbers(hashes: Tensor) -> Tensor:
    """Hashes of the names of groups as the numbers that their samples have."""
    return hashes & (2**63 - 1)


def _hashed(contents: Iterable[Any], key: bytes) -> Tensor:
    digests = (hashlib.blake2b(content, digest_size=8, key=key).digest() for content in contents)
    return torch.tensor([int.from_bytes(each, "little", signed=True) for each in digests], dtype=torch.int64)
