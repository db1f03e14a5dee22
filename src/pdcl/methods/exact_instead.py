"""Where a network broke a limit: whether `exact` could keep it. What was measured is in docs/results/exact.md."""

from __future__ import annotations

import math

from torch import nn

from pdcl.streams.task import Spec

# The largest images whose patches were measured.
SMALL_IMAGE = 64
MEASURED = "measured in docs/results/exact.md"


def exact_instead(spec: Spec, backbone: nn.Module | None, network: nn.Module | str) -> str | None:
    """A line of advice; None where nothing speaks for or against it."""
    if spec.kind == "tokens":
        return None
    if backbone is not None:
        return (
            "the backbone is frozen, so `exact` can solve the head for its limits in closed form, in seconds: "
            f"pdcl.learner('exact', features=backbone, tolerance=…); {MEASURED}"
        )
    if isinstance(network, nn.Module):
        return (
            "`exact` can't keep limits of a network that is trained end to end, only of a head on features that stay "
            "as they are: if a frozen body is good enough, give it as features="
        )
    vectors = not spec.leaves and len(spec.shape) == 1
    image = len(spec.shape) == 3 and max(spec.shape[-2:]) <= SMALL_IMAGE
    if not vectors and not image:
        return None
    inputs = f"{math.prod(spec.shape):,} numbers" if vectors else "small images"
    doubt = "" if vectors else ", where some hundred KB of memory are allowed"
    return f"inputs are {inputs}: `exact` may keep such limits, and takes seconds to try{doubt}; {MEASURED}"
