"""New classes for a network that has none: its last layer widens, and what was learned stays learned.

New outputs start at one constant b, with zero weights. A past sample with outputs z then loses at most
log(1 + m eᵇ / Σ_j e^{z_j}) more, for m new classes; b is set so that this is half a percent of the mean loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pdcl.errors import UsageError
from pdcl.networks.heads import widen
from pdcl.trees import Tree, length, take

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

GROWN_LOSS = 0.005
SMALLEST_LOSS = 1e-5
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
    start = starting_output(learner, outputs - before, probe)
    if grow is None:
        name, head = widen(learner.model, outputs, before)
        with torch.no_grad():
            _set_start(head, before, start, name)
    else:
        grow(learner.model, outputs)
    learner.spec = replace(spec, outputs=outputs)
    learner.model.to(learner.place)
    learner.optimiser = carried_over(learner, shapes)
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


def carried_over(learner: Learner, shapes: dict[str, torch.Size]) -> torch.optim.Optimizer:
    """A new optimiser with the state of the old one; moments of new rows start at zero."""
    state, fresh = learner.optimiser.state_dict(), learner.new_optimiser()
    trained = [(name, p) for name, p in learner.model.named_parameters() if p.requires_grad]
    for index, (name, p) in enumerate(trained):
        for key, value in state["state"].get(index, {}).items():
            if isinstance(value, Tensor) and value.shape == shapes.get(name) and value.shape != p.shape:
                wide = torch.zeros_like(p)
                wide[tuple(slice(0, size) for size in value.shape)] = value
                state["state"][index][key] = wide
    fresh.load_state_dict(state)
    return fresh
