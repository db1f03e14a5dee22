"""The options that every learner has: checked before anything is built, and told."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from torch import nn

from pdcl.errors import UsageError
from pdcl.given import seed_of, short
from pdcl.learning.fields import check_fields, check_unused
from pdcl.learning.optimizers import check_optimizer
from pdcl.learning.placement import check_placement
from pdcl.learning.weighting import check_weights
from pdcl.limits.tolerances import read_limits
from pdcl.networks.soundness import check_computes
from pdcl.objective import Objective

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def check_options(learner: Learner, usual_lr: float) -> None:
    """Raise UsageError for an option that can't be, or that has no effect. usual_lr: the rate where none is stated."""
    check_fields(learner)
    check_unused(learner)
    if learner.tolerance is not None:
        read_limits(learner.tolerance)
    check_optimizer(learner.optimizer, learner.lr, usual_lr, learner.weight_decay)
    check_weights(learner.class_weights)
    if not learner.lr > 0:
        raise UsageError(f"lr={learner.lr} must be positive")
    seed_of(learner.seed)
    if learner.weight_decay < 0:
        raise UsageError(f"weight_decay={learner.weight_decay} must not be negative")
    if not isinstance(learner.network, nn.Module | str):
        raise UsageError(f"network={learner.network!r} must be a torch module, or a name such as mlp:100-100")
    if learner.backbone is not None and not isinstance(learner.backbone, nn.Module):
        raise UsageError(f"backbone={short(learner.backbone)} must be a torch module")
    if learner.objective != "auto" and not isinstance(learner.objective, Objective):
        raise UsageError(f"objective={short(learner.objective)} must be 'auto' or a pdcl Objective")
    for what, module in (("network", learner.network), ("backbone", learner.backbone)):
        if isinstance(module, nn.Module):
            check_computes(module, what)
    check_placement(learner.device, learner.precision)


def told(learner: Learner) -> str:
    """The method, its network and the options that aren't the defaults, then what it has learned."""
    own = [(f.name, getattr(learner, f.name), f.default) for f in fields(learner) if f.init and f.name != "network"]
    said = [f"{name}={value!r}" for name, value, usual in own if value != usual and not isinstance(value, nn.Module)]
    shown = repr(learner.network) if isinstance(learner.network, str) else type(learner.network).__name__
    return f"{type(learner).__name__}({', '.join([shown, *said])}): {_learned(learner)}"


def _learned(learner: Learner) -> str:
    if learner.spec is None:
        return "nothing learned yet"
    classes = f", {len(learner.spec.labels)} classes" if learner.spec.labels else ""
    held = "" if learner.store is None else f", {len(learner.store)} samples in memory"
    return f"{learner.tasks_learned} task{'s' * (learner.tasks_learned != 1)} learned{classes}{held}"
