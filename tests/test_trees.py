"""Trees come apart by name and go together again; what is done to a tree is done to each of its leaves."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pdcl.errors import UsageError
from pdcl.ragged import Ragged, is_ragged
from pdcl.streams.samples import tree_of
from pdcl.trees import call, cat, check_names, flatten, length, map_leaves, padded, split, take, unflatten

NAMES = st.sampled_from(["input_ids", "mask", "image", "x", "_a"])
LEAVES = st.sampled_from(["plain", "ragged"])
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.dictionaries(NAMES, inner, min_size=1, max_size=3) | st.lists(inner, min_size=1, max_size=12).map(tuple)
    ),
    max_leaves=14,
)


def filled(tree, ids):
    """The tree with a leaf of these samples in place of each word."""

    def leaf(kind):
        if kind == "plain":
            return ids[:, None].float().expand(-1, 2)
        return Ragged(torch.repeat_interleave(ids, ids % 4), ids % 4)

    return map_leaves(leaf, tree)


def told(tree):
    """The tree as lists, to compare."""
    return map_leaves(lambda leaf: [row.tolist() for row in leaf], tree)


@given(TREES)
def test_names_give_the_tree_back(tree):
    assert unflatten(flatten(tree)) == tree


@given(TREES, st.lists(st.integers(0, 9), min_size=1, max_size=8), st.data())
def test_samples_are_taken_split_and_put_together_alike_in_all_leaves(tree, ids, data):
    ids = torch.tensor(ids)
    whole = filled(tree, ids)
    assert length(whole) == len(ids)
    index = torch.tensor(data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=6)), dtype=torch.long)
    assert told(take(whole, index)) == told(filled(tree, ids[index]))
    size = data.draw(st.integers(1, 4))
    parts = split(whole, size)
    assert [length(part) for part in parts] == [len(part) for part in ids.split(size)]
    assert told(cat(parts)) == told(whole)


@given(st.lists(st.lists(st.integers(1, 9), max_size=5), min_size=1, max_size=6))
def test_padding_puts_zeros_behind_and_nothing_else(rows):
    longest = max(1, *map(len, rows), 1)
    lengths = torch.tensor([len(row) for row in rows])
    values = torch.tensor([value for row in rows for value in row], dtype=torch.long)
    assert Ragged(values, lengths).padded().tolist() == [row + [0] * (longest - len(row)) for row in rows]


def test_a_dict_is_handed_over_as_keywords_and_a_tuple_as_arguments():
    leaf = torch.ones(2, 1)
    assert call(lambda x: ("one", x.shape), leaf) == ("one", leaf.shape)
    assert call(lambda *x: len(x), (leaf, leaf)) == 2
    assert call(lambda b, a: (a, b), {"a": 1 * leaf, "b": Ragged.of([[5], [6, 7]])})[1].tolist() == [[5, 0], [6, 7]]


@pytest.mark.parametrize("key", ["a.b", "0", 3, "with space", ""])
def test_keys_that_no_argument_can_have_are_refused(key):
    with pytest.raises(UsageError, match="names of a network's arguments"):
        check_names({"fine": torch.ones(1), key: torch.ones(1)})


def test_arrays_are_read_as_the_tree_that_they_are():
    words = [[1, 2], [3]]
    found = tree_of({"ids": words, "age": np.array([1.0, 2.0]), "pair": (np.ones((2, 1)), torch.zeros(2, 3))})
    assert isinstance(found["ids"], Ragged)
    assert found["age"].dtype == torch.float32
    assert [tuple(leaf.shape) for leaf in found["pair"]] == [(2, 1), (2, 3)]
    assert tree_of(((0.0, 1.0), (2.0, 3.0))).shape == (2, 2)
    assert tree_of([[0.0, 1.0], [2.0, 3.0]]).shape == (2, 2)


def test_only_lists_of_unequal_length_are_ragged():
    assert is_ragged([[1], [1, 2]])
    assert is_ragged([torch.ones(3, 2), torch.ones(1, 2)])
    assert not is_ragged([[1], [2]])
    assert not is_ragged(["a", "bc"])
    assert not is_ragged([1, 2])


def test_sequences_of_different_entries_are_refused():
    with pytest.raises(UsageError, match="one shape and dtype"):
        Ragged.of([torch.ones(3, 2), torch.ones(1, 3)])
    assert Ragged.of([[], [1, 2]]).values.dtype == torch.int64
    assert padded(Ragged.of([[], []])).shape == (2, 1)
