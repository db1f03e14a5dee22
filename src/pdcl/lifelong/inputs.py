"""Inputs that fit what the learner has learned; everything else is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import Tensor

from pdcl.errors import UsageError
from pdcl.streams.checks import BadData, check_finite
from pdcl.streams.task import Spec
from pdcl.trees import Tree, flatten, leaf_specs

Found = TypeVar("Found")


def check_inputs(x: Tree, spec: Spec, first: int = 0) -> None:
    """Raise BadData unless `x` is (n, *shape) of the dtype that was learned, or a tree of such, and finite.

    first: the number of its first row, in messages.
    """
    if spec.leaves or not isinstance(x, Tensor):
        _check_tree(x, spec)
        return
    if tuple(x.shape[1:]) != spec.shape or x.dim() == 0:
        wanted = ", ".join(["n", *map(str, spec.shape)])
        raise BadData(f"x has shape {tuple(x.shape)}; the learner reads ({wanted}), one row per sample")
    if x.dtype != spec.dtype:
        raise BadData(f"x is {x.dtype}; the learner learned from {spec.dtype}. Convert x as the first task's data were")
    check_finite(x, "x", first=first)


def _check_tree(x: Tree, spec: Spec) -> None:
    if leaf_specs(x) != spec.expected:
        now, first = (", ".join(map(str, leaves)) for leaves in (leaf_specs(x), spec.expected))
        raise BadData(f"x holds {now}; the learner reads {first}, one row per sample")
    counts = {name: len(leaf) for name, leaf in flatten(x, "x").items()}
    if len(set(counts.values())) > 1:
        raise BadData(f"the parts of x have different numbers of rows: {counts}")
    check_finite(x, "x")


def fitting(network: str, x: Tree, compute: Callable[[], Found]) -> Found:
    """What `compute` gives; an input that the module can't take is an error of ours."""
    try:
        return compute()
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, UsageError):
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(f"the {network} can't take inputs {_described(x)}: {reason}") from error


def _described(x: Tree) -> str:
    return f"of shape {tuple(x.shape)} {x.dtype}" if isinstance(x, Tensor) else ", ".join(map(str, leaf_specs(x)))
