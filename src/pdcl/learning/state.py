"""What determines a learner's future: what a checkpoint and a saved model hold of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pdcl.learning.optimizers import load_optimizer
from pdcl.networks.heads import check_same_parameters
from pdcl.networks.soundness import check_finite_weights

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def state_of(learner: Learner) -> dict[str, Any]:
    """Everything that determines this learner's future, as tensors and JSON values."""
    return {
        "network": learner.model.state_dict(),
        "optimizer": learner.optimiser.state_dict(),
        **({"updates": updates} if (updates := learner.updater.state_dict(learner.optimiser)) else {}),
        "memory": None if learner.store is None else learner.store.state_dict(),
        "generator": learner.generator.get_state(),
        "tasks_learned": learner.tasks_learned,
        "method": {name: getattr(learner, name) for name in learner.persistent},
    }


def take_state(learner: Learner, state: dict[str, Any]) -> None:
    """Take over a state saved by `state_dict` of an equal, prepared learner."""
    check_same_parameters(learner.model.state_dict(), state["network"])
    check_finite_weights(state["network"])
    learner.model.load_state_dict(state["network"])
    learner.optimiser = learner.new_optimiser()
    learner.updater.load_state_dict(learner.optimiser, state.get("updates", {}))
    load_optimizer(learner.optimiser, state["optimizer"])
    if learner.store is not None:
        learner.store.load_state_dict(state["memory"])
    learner.generator.set_state(state["generator"])
    learner.tasks_learned = state["tasks_learned"]
    for name in learner.persistent:
        setattr(learner, name, state["method"][name])
