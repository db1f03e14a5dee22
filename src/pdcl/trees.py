"""Inputs of any form: a tensor, sequences of unequal length (`Ragged`), or tuples and dicts of these, nested.

Every leaf has one row per sample. A leaf's name is its path, joined by dots; numbers count the places of a tuple:

>>> tree = {"text": (torch.zeros(2, 3), torch.ones(2)), "image": torch.ones(2, 5)}
>>> list(flatten(tree, "x"))
['x.text.0', 'x.text.1', 'x.image']
>>> length(cat([tree, tree]))
4
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.ragged import Ragged

# Tensor | Ragged | tuple or dict of trees; Any to the type checker, since methods for tensors alone take it too.
Tree: TypeAlias = Any
Leaf: TypeAlias = Tensor | Ragged


def map_leaves(function: Callable[[Any], Any], tree: Tree) -> Tree:
    """The same tree with `function` of every leaf."""
    if isinstance(tree, dict):
        return {key: map_leaves(function, branch) for key, branch in tree.items()}
    if isinstance(tree, tuple):
        return tuple(map_leaves(function, branch) for branch in tree)
    return function(tree)


def flatten(tree: Tree, name: str = "") -> dict[str, Leaf]:
    """Leaves by dotted name, below `name`."""
    if not isinstance(tree, tuple | dict):
        return {name: tree}
    branches = tree.items() if isinstance(tree, dict) else enumerate(tree)
    found: dict[str, Leaf] = {}
    for key, branch in branches:
        found |= flatten(branch, f"{name}.{key}" if name else str(key))
    return found


def unflatten(leaves: Mapping[str, Any]) -> Tree:
    """The tree whose `flatten` gives these names.

    >>> unflatten({"0": 1, "1.a": 2})
    (1, {'a': 2})
    """
    if "" in leaves:
        return leaves[""]
    branches: dict[str, dict[str, Any]] = {}
    for name, leaf in leaves.items():
        key, _, rest = name.partition(".")
        branches.setdefault(key, {})[rest] = leaf
    made = {key: unflatten(branch) for key, branch in branches.items()}
    return tuple(made[str(place)] for place in range(len(made))) if "0" in made else made


def check_names(tree: Tree) -> None:
    """Refuse keys that a dotted name couldn't give back."""
    if isinstance(tree, tuple | dict) and not tree:
        raise UsageError("x holds an empty tuple or dict; give it tensors")
    for key, branch in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, tuple) else ():
        if isinstance(tree, dict) and (not isinstance(key, str) or not key.isidentifier()):
            raise UsageError(f"x has the key {key!r}; keys are names of a network's arguments, such as 'input_ids'")
        check_names(branch)


def length(tree: Tree) -> int:
    """How many samples."""
    while isinstance(tree, tuple | dict):
        tree = next(iter(tree.values())) if isinstance(tree, dict) else tree[0]
    return len(tree)


def take(tree: Tree, index: Tensor) -> Tree:
    """The samples at these positions."""
    # For small batches `index_select` takes half the time of indexing with brackets.
    if isinstance(tree, Tensor):
        return tree.index_select(0, index.to(tree.device))
    return map_leaves(lambda leaf: leaf.index_select(0, index.to(leaf.device)), tree)


def cat(trees: Sequence[Tree]) -> Tree:
    """The samples of all trees, in order."""
    first = trees[0]
    if isinstance(first, Tensor):
        return torch.cat(list(trees))
    if isinstance(first, dict):
        return {key: cat([tree[key] for tree in trees]) for key in first}
    if isinstance(first, tuple):
        return tuple(cat(branches) for branches in zip(*trees, strict=True))
    return Ragged(torch.cat([part.values for part in trees]), torch.cat([part.lengths for part in trees]))


def split(tree: Tree, sizes: int | Sequence[int]) -> list[Tree]:
    """The samples in pieces of one size, or of these sizes."""
    if isinstance(tree, Tensor):
        return list(tree.split(sizes if isinstance(sizes, int) else list(sizes)))
    return [take(tree, index) for index in split(torch.arange(length(tree)), sizes)]


def to(tree: Tree, device: torch.device | str) -> Tree:
    return map_leaves(lambda leaf: leaf.to(device), tree)


def padded(tree: Tree) -> Tree:
    """The same tree with sequences filled up with zeros, n × longest × …: what a network is given."""
    return map_leaves(lambda leaf: leaf.padded() if isinstance(leaf, Ragged) else leaf, tree)


def call(network: Callable[..., Any], tree: Tree) -> Any:
    """`network(tensor)`, `network(*tuple)` or `network(**dict)`, sequences padded with zeros."""
    inputs = padded(tree)
    if isinstance(inputs, dict):
        return network(**inputs)
    return network(*inputs) if isinstance(inputs, tuple) else network(inputs)


def logits_of(given: Any) -> Tensor:
    """The logits in what a network gave: a tensor, `.logits`, `["logits"]`, or the first of a tuple."""
    while not isinstance(given, Tensor):
        if isinstance(given, Mapping) and "logits" in given:
            given = given["logits"]
        elif hasattr(given, "logits"):
            given = given.logits
        elif isinstance(given, tuple | list) and given:
            given = given[0]
        else:
            text = "a network gives a tensor, a tuple whose first is one, or something with .logits"
            raise UsageError(f"the network gave {type(given).__name__}; {text}")
    return given


def joined(parts: Sequence[Tensor]) -> Tensor:
    """`torch.cat`, where outputs n × length × … of sequences are filled up with zeros to the longest."""
    if len({part.shape[1:] for part in parts}) < 2:
        return torch.cat(list(parts))
    longest = max(part.shape[1] for part in parts)
    return torch.cat([_widened(part, longest) for part in parts])


def _widened(part: Tensor, width: int) -> Tensor:
    return torch.cat([part, part.new_zeros(len(part), width - part.shape[1], *part.shape[2:])], 1)


@dataclass(frozen=True)
class LeafSpec:
    """What is the same of all samples in one leaf; of a ragged one, `shape` is that of an entry."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    ragged: bool = False

    def __str__(self) -> str:
        sizes = ", ".join(map(str, ("length", *self.shape) if self.ragged else self.shape))
        name = self.name or ("sequences" if self.ragged else "one tensor")
        return f"{name} ({sizes}) {str(self.dtype).removeprefix('torch.')}"

    def blank(self, count: int) -> Leaf:
        """Samples of zeros; sequences of one entry."""
        zeros = torch.zeros((count, *self.shape), dtype=self.dtype)
        return Ragged(zeros, torch.ones(count, dtype=torch.int64)) if self.ragged else zeros


def leaf_specs(tree: Tree) -> tuple[LeafSpec, ...]:
    """The leaves of a tree, sorted by name; a tensor is one without a name."""
    return tuple(_leaf_spec(name, leaf) for name, leaf in sorted(flatten(tree).items()))


def _leaf_spec(name: str, leaf: Leaf) -> LeafSpec:
    ragged = isinstance(leaf, Ragged)
    return LeafSpec(name, tuple((leaf.values if isinstance(leaf, Ragged) else leaf).shape[1:]), leaf.dtype, ragged)


def conformed(tree: Tree, specs: Sequence[LeafSpec]) -> Tree:
    """The tree with leaves made ragged where `specs` says so: sequences that happen to be of one length."""
    ragged = {spec.name for spec in specs if spec.ragged}
    leaves = flatten(tree)
    if not ragged or all(isinstance(leaves.get(name), Ragged | None) for name in ragged):
        return tree
    return unflatten({name: _as_ragged(leaf) if name in ragged else leaf for name, leaf in leaves.items()})


def _as_ragged(leaf: Leaf) -> Leaf:
    return Ragged.of_rows(leaf) if isinstance(leaf, Tensor) and leaf.dim() > 1 else leaf
