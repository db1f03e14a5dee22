"""What a method refuses before training starts."""

from __future__ import annotations

from pdcl.errors import UsageError
from pdcl.streams.task import Spec


def only_classification(method: str, spec: Spec) -> None:
    """Refuse streams that have no classes."""
    if spec.kind != "classification":
        raise UsageError(f"{method!r} is defined for classification, and this stream is {spec.kind}; use er or pdcl")
