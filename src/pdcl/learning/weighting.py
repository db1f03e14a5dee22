"""Class weights: the loss of a sample counts as often as its label's weight says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.given import few
from pdcl.objective import Objective

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def check_weights(weights: Any) -> None:
    """Raise UsageError unless these are positive numbers by label."""
    if weights is None:
        return
    if not isinstance(weights, Mapping) or not weights:
        raise UsageError(f'class_weights={weights!r} must be weights by label, such as {{"fraud": 5}}')
    for label, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 < float(weight) < float("inf"):
            raise UsageError(f"class_weights: the weight of {label!r} is {weight!r}; it must be a positive number")


def weigh_classes(goal: Objective, learner: Learner) -> Objective:
    """The same objective with ℓ_i → w_{y_i} ℓ_i; labels are looked up as they are known, since new ones may come."""
    spec = learner.spec
    assert spec is not None
    if spec.kind != "classification":
        raise UsageError(f"class_weights has no effect on {spec.kind}; it is for classes")
    assert learner.class_weights is not None
    stated = {str(label): float(weight) for label, weight in learner.class_weights.items()}
    if spec.heads is not None and (strange := [label for label in stated if label not in map(str, spec.labels)]):
        raise UsageError(f"class_weights names {strange[0]!r}, which is no label here; labels: {few(spec.labels)}")
    plain = goal.loss

    def weighted(outputs: Tensor, targets: Tensor) -> Tensor:
        assert learner.spec is not None
        by_class = [stated.get(str(label), 1.0) for label in learner.spec.labels]
        return plain(outputs, targets) * torch.tensor(by_class, device=outputs.device)[targets]

    return replace(goal, loss=weighted)
