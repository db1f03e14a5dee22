"""New classes for a network that has none: its last layer widens, and what was learned stays learned.

New outputs start at one constant b, with zero weights. A past sample with outputs z then loses at most
log(1 + m eᵇ / Σ_j e^{z_j}) more, for m new classes; b is set so that this is half a percent of the mean loss,
or of 0.001 where the mean loss is below.
Where a sample may have several labels b is 0: whether a stored sample has a new one isn't known, and costs it nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pdcl.errors import UsageError
from pdcl.learning.optimizers import parameter_names
from pdcl.networks.heads import widen
from pdcl.trees import Tree, length, take

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

GROWN_LOSS = 0.005
# Of a memorised task the loss is next to nothing: outputs that start by it are out of reach of a small learning rate.
SMALLEST_LOSS = 1e-3
LOWEST = -30.0
PROBE = 1000

Grow = Callable[[nn.Module, int], None]


def extend_labels(learner: Learner, new: Sequence[Any], probe: Tree, grow: Grow | None = None) -> None:
    """Make new labels known; the network grows if it has fewer outputs than there are labels then."""
    spec = learner.spec
    assert spec is not None
    labels = (*spec.labels, *new)
    if len(labels) > spec.outputs:
        grow_outputs(learner, len(labels), probe, grow)
    assert learner.spec is not None
    learner.spec = replace(learner.spec, labels=labels)


def grow_outputs(learner: Learner, outputs: int, probe: Tree, grow: Grow | None = None) -> None:
    """Widen the network to `outputs`; `probe` are raw inputs to measure on where memory holds none."""
    spec = learner.spec
    assert spec is not None
    before = spec.outputs
    shapes = {name: p.shape for name, p in learner.model.named_parameters()}
    names = parameter_names(learner.optimiser, learner.model)
    start = 0.0 if spec.kind == "multilabel" else starting_output(learner, outputs - before, probe)
    if grow is None:
        name, head = widen(learner.model, outputs, before)
        with torch.no_grad():
            _set_start(head, before, start, name)
    else:
        grow(learner.model, outputs)
    learner.spec = replace(spec, outputs=outputs)
    learner.model.to(learner.place)
    learner.optimiser = carried_over(learner, names, shapes)
    if spec.kind == "multilabel" and learner.store is not None and "y" in learner.store.columns:
        held = learner.store["y"]
        learner.store.widen("y", held.new_full((len(held), outputs - before), torch.nan), learner.generator)
    learner.grown(before)


def _set_start(head: nn.Linear, before: int, start: float, name: str) -> None:
    if head.bias is None:
        raise UsageError(f"{name} has no bias, so new outputs can't start low; give learn(…, grow=function)")
    head.bias[before:] = start


def starting_output(learner: Learner, new: int, probe: Tree) -> float:
    """b, from the outputs and losses of stored samples (or of the probe, at an assumed loss)."""
    store = learner.store
    held = store is not None and len(store) > 0
    some = torch.arange(min(PROBE, len(store) if store is not None and held else length(probe)))
    x = store.read("x", some) if store is not None and held else take(probe, some)
    outputs = learner.logits(x)
    loss = SMALLEST_LOSS
    if store is not None and held:
        loss = max(loss, float(learner.losses(outputs, store.read("y", some).to(learner.place)).mean()))
    total = torch.logsumexp(-outputs.double().logsumexp(1), 0).item() - math.log(len(outputs))
    return max(LOWEST, math.log(GROWN_LOSS * loss / new) - total)


def carried_over(learner: Learner, names: list[str], shapes: dict[str, torch.Size]) -> torch.optim.Optimizer:
    """A new optimiser with the state of the old one; moments of new rows start at zero.

    names: of the old one's parameters, in the order of its state; shapes: those that parameters had.
    """
    state, fresh = learner.optimiser.state_dict(), learner.new_optimiser()
    place = {name: number for number, name in enumerate(parameter_names(fresh, learner.model))}
    parameters = dict(learner.model.named_parameters())
    moved = {}
    for number, name in enumerate(names):
        if number in state["state"] and name in place:
            held = state["state"][number]
            wide = {key: _widened(value, shapes[name], parameters[name]) for key, value in held.items()}
            moved[place[name]] = wide
    groups = fresh.state_dict()["param_groups"]
    if len(groups) == len(state["param_groups"]):
        kept = zip(state["param_groups"], groups, strict=True)
        groups = [{**old, "params": new["params"]} for old, new in kept]
    fresh.load_state_dict({"state": moved, "param_groups": groups})
    return fresh


def _widened(value: Any, before: torch.Size, parameter: nn.Parameter) -> Any:
    """A moment of a parameter that has grown, zero in the new rows; anything else as it is."""
    if not isinstance(value, Tensor) or value.shape != before or value.shape == parameter.shape:
        return value
    wide = torch.zeros_like(parameter)
    wide[tuple(slice(0, size) for size in value.shape)] = value
    return wide
