"""Streams that a method isn't made for, refused by name before anything is learned."""

from __future__ import annotations

from pdcl.errors import UsageError
from pdcl.streams.task import Spec


def only_tensors(method: str, spec: Spec) -> None:
    """Refuse inputs that aren't one tensor."""
    if spec.leaves:
        raise UsageError(f"{method!r} takes inputs that are one tensor, and these are {spec.inputs()}; use er or derpp")


def only_classification(method: str, spec: Spec) -> None:
    """Refuse streams that have no classes."""
    if spec.kind != "classification":
        raise UsageError(f"{method!r} is defined for classification, and this stream is {spec.kind}; use er or pdcl")
