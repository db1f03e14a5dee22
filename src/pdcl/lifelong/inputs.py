"""Inputs and labels that fit what the learner has learned; everything else is refused in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from torch import Tensor

from pdcl.errors import UsageError
from pdcl.streams.checks import BadData
from pdcl.streams.task import Spec

Found = TypeVar("Found")


def check_inputs(x: Tensor, spec: Spec) -> None:
    """Raise BadData unless `x` is (n, *shape) of the dtype that was learned, and finite."""
    if tuple(x.shape[1:]) != spec.shape or x.dim() == 0:
        wanted = ", ".join(["n", *map(str, spec.shape)])
        raise BadData(f"x has shape {tuple(x.shape)}; the learner reads ({wanted}), one row per sample")
    if x.dtype != spec.dtype:
        raise BadData(f"x is {x.dtype}; the learner learned from {spec.dtype}. Convert x as the first task's data were")
    if x.is_floating_point():
        bad = ~x.reshape(len(x), -1).isfinite().all(1) if x.numel() else x.isnan()
        if bool(bad.any()):
            raise BadData(f"x: row {int(bad.nonzero()[0])} holds NaN or infinite inputs; drop or fill such rows first")


def check_labels_apart(known: Iterable[Any], new: Iterable[Any]) -> None:
    """Raise BadData for a new label that is written like a known one of another type: "0" after 0."""
    written = {str(label): label for label in known}
    for label in new:
        if str(label) in written:
            old = written[str(label)]
            raise BadData(
                f"y holds the label {label!r} ({type(label).__name__}), and {old!r} ({type(old).__name__}) is known: "
                "write the same class in the same type"
            )


def fitting(network: str, x: Tensor, compute: Callable[[], Found]) -> Found:
    """What `compute` gives; an input that the module can't take is an error of ours."""
    try:
        return compute()
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, UsageError):
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(f"the {network} can't take inputs of shape {tuple(x.shape)} {x.dtype}: {reason}") from error
