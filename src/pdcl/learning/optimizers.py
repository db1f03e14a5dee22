"""Optimisers and learning-rate schedules: ours by name, or those that a user hands in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau

from pdcl.errors import UsageError

OPTIMIZERS: dict[str, type[Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
MakeOptimizer: TypeAlias = Callable[[Any], Optimizer]
MakeScheduler: TypeAlias = Callable[[Optimizer, int], LRScheduler]


def check_optimizer(optimizer: Any, lr: float, usual_lr: float, weight_decay: float) -> None:
    """Raise UsageError for what makes no optimiser, and for settings that one handed in doesn't hear."""
    if isinstance(optimizer, str):
        if optimizer not in OPTIMIZERS:
            known = ", ".join(OPTIMIZERS)
            raise UsageError(f"optimizer={optimizer!r} is unknown; choose one of {known}, or give a function")
        return
    if isinstance(optimizer, Optimizer):
        raise UsageError(
            f"optimizer={type(optimizer).__name__}(…) is bound to parameters that a growing network replaces; give "
            "what makes one: functools.partial(torch.optim.SGD, lr=0.1), or a function of the network"
        )
    if not callable(optimizer):
        raise UsageError(f"optimizer={optimizer!r} must be a name, an optimiser class or a function of the network")
    for name, value, usual in (("lr", lr, usual_lr), ("weight_decay", weight_decay, 0.0)):
        if value != usual:
            raise UsageError(f"{name}={value} has no effect on an optimizer that is handed in; state it there")


def make_optimizer(optimizer: Any, model: nn.Module, lr: float, weight_decay: float) -> Optimizer:
    """The optimiser of the parameters that learn.

    A class, or `functools.partial` of one, is called with these parameters; any other function with the network, so
    that it can make parameter groups.
    """
    learning = [p for p in model.parameters() if p.requires_grad]
    if isinstance(optimizer, str):
        own: dict[str, Any] = {"fused": True} if _can_fuse(optimizer, learning) else {}
        return OPTIMIZERS[optimizer](learning, lr=lr, weight_decay=weight_decay, **own)  # type: ignore[call-arg]
    try:
        made = optimizer(learning) if _takes_parameters(optimizer) else optimizer(model)
    except UsageError:
        raise
    except Exception as error:
        # The user's code, whatever it raises.
        raise UsageError(f"optimizer= failed to make an optimiser: {type(error).__name__}: {error}") from error
    if not isinstance(made, Optimizer):
        raise UsageError(f"optimizer= made a {type(made).__name__}; it must make a torch.optim.Optimizer")
    known = {id(p) for p in model.parameters()}
    if any(id(p) not in known for group in made.param_groups for p in group["params"]):
        raise UsageError("optimizer= made one of parameters that the network doesn't have; use those it is called with")
    return made


def _can_fuse(optimizer: str, parameters: list[nn.Parameter]) -> bool:
    """Whether Adam can go over a parameter once and not seven times; its steps took 40 % of the time of an MLP."""
    return optimizer != "sgd" and all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in parameters)


def restart_rates(optimiser: Optimizer, own: Mapping[str, float] | Optimizer) -> None:
    """Let every rate be what it was at first: as stated, or as in a new optimiser of a user's own making."""
    for number, group in enumerate(optimiser.param_groups):
        group.update({"lr": own.param_groups[number]["lr"]} if isinstance(own, Optimizer) else own)
        group.pop("initial_lr", None)


def _takes_parameters(optimizer: Any) -> bool:
    inner = optimizer.func if isinstance(optimizer, partial) else optimizer
    return isinstance(inner, type) and issubclass(inner, Optimizer)


def check_scheduler(scheduler: Any) -> None:
    """Raise UsageError for what makes no schedule."""
    if isinstance(scheduler, str):
        _shape_of(scheduler)
    elif scheduler is not None and not callable(scheduler):
        raise UsageError(f"scheduler={scheduler!r} must be linear, cosine or a function of the optimiser and the steps")


def make_scheduler(scheduler: Any, optimiser: Optimizer, updates: int) -> LRScheduler:
    """The schedule of one task of so many updates, stepped after each of them."""
    if isinstance(scheduler, str):
        return LambdaLR(optimiser, partial(_factor, *_shape_of(scheduler), updates))
    made: LRScheduler = scheduler(optimiser, updates)
    if isinstance(made, ReduceLROnPlateau) or not hasattr(made, "step"):
        name = type(made).__name__
        raise UsageError(f"scheduler= made a {name}; it must make a schedule that is stepped by updates alone")
    return made


def _shape_of(text: str) -> tuple[str, float]:
    """`cosine:0.1`: its shape, and the share of the task that it warms up in.

    >>> _shape_of("cosine:0.1")
    ('cosine', 0.1)
    """
    shape, _, share = text.partition(":")
    try:
        warm = float(share or 0)
    except ValueError:
        warm = math.nan
    if shape not in ("linear", "cosine") or not 0 <= warm < 1:
        raise UsageError(f"scheduler={text!r} must be linear or cosine, with a share to warm up in if any: cosine:0.1")
    return shape, warm


def _factor(shape: str, warm: float, updates: int, update: int) -> float:
    """What the rate is multiplied with: up to 1 over the first `warm` of the task, then down towards 0."""
    first = round(warm * updates)
    if update < first:
        return (update + 1) / first
    gone = min(1.0, (update - first) / max(1, updates - first))
    return 1 - gone if shape == "linear" else (1 + math.cos(math.pi * gone)) / 2


def parameter_names(optimiser: Optimizer, model: nn.Module) -> list[str]:
    """The name of every parameter, in the order of the optimiser's state."""
    names = {id(p): name for name, p in model.named_parameters()}
    return [names[id(p)] for p in parameters_of(optimiser)]


def parameters_of(optimiser: Optimizer) -> Iterable[nn.Parameter]:
    return (p for group in optimiser.param_groups for p in group["params"])


def load_optimizer(optimiser: Optimizer, state: dict[str, Any]) -> None:
    """Take over a saved state, or say that another optimiser gave it."""
    try:
        optimiser.load_state_dict(state)
    except (ValueError, KeyError) as error:
        raise UsageError(f"the optimiser is another than the saved one: {error}; hand in the one used then") from error
    # Optimisers of others may keep what they like.
    own = type(optimiser).__module__.startswith("torch.optim")
    kept = [value for held in optimiser.state.values() for value in held.values()] if own else []
    if damaged := [value for value in kept if not _is_moment(value)]:
        raise UsageError(f"the state of the optimiser is damaged: it holds {damaged[0]!r:.60}")


def _is_moment(value: Any) -> bool:
    """What torch's optimisers keep of a parameter: tensors, numbers, nothing yet, or lists of these."""
    if isinstance(value, list | tuple):
        return all(_is_moment(each) for each in value)
    return isinstance(value, torch.Tensor | int | float | None)
