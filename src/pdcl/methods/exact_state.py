"""What an exact learner saves beside its network: statistics, held-back features, limits, sums of a task under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pdcl.errors import UsageError
from pdcl.methods.exact_limits import values_then
from pdcl.methods.exact_solving import Solved

if TYPE_CHECKING:
    from pdcl.methods.exact import Exact

PLAIN = (
    "samples_seen", "losses_then", "errors_then", "segment_losses", "ever_held", "phi_hash", "dropped_segments",
)  # fmt: skip


def exact_state(learner: Exact) -> dict[str, Any]:
    solution = learner.solution
    return {
        **{name: getattr(learner, name) for name in PLAIN},
        **learner.tolerances.state_dict(),
        **learner.registry.state_dict(),
        "sets": learner.sets.state_dict(),
        "held": learner.held.memory.state_dict(),
        "segments": learner.held.segments.table,
        "trained_hashes": {str(task): hashes for task, hashes in learner.trained_hashes.items()},
        "trained_codes": {str(task): codes for task, codes in learner.trained_codes.items()},
        "sums": learner.sums.state_dict(),
        "solution": None if solution is None else _written(solution),
    }


def _written(solution: Solved) -> dict[str, Any]:
    names = ("W", "head", "rho", "factor", "offsets", "lever", "residual", "whole")
    duals = {name: {str(c): dual for c, dual in getattr(solution, name).items()} for name in ("weights", "shifts")}
    return {name: getattr(solution, name) for name in names} | duals


def _read(saved: dict[str, Any], duals: dict[str, float]) -> Solved:
    """duals: where models have them that were saved before offsets had any."""
    by_number = {
        name: {int(c): dual for c, dual in saved.get(name, old).items()}
        for name, old in (("weights", duals), ("shifts", {}))
    }
    return Solved(**saved | by_number)


def take_exact_state(learner: Exact, state: dict[str, Any]) -> None:
    for name in PLAIN:
        setattr(learner, name, state[name])
    learner.check_features()
    learner.tolerances.load_state_dict(state)
    learner.registry.load_state_dict(state, len(learner.tolerances))
    learner.sets.load_state_dict(state["sets"])
    held = learner.held
    held.memory.load_state_dict(state["held"])
    held.segments.take_table(state["segments"])
    held.upgrade([])
    learner.trained_hashes = {int(task): hashes for task, hashes in state["trained_hashes"].items()}
    codes = state.get("trained_codes", {})
    learner.trained_codes = {
        task: held.segments.widened(codes.get(str(task), held.segments.blank(len(hashes))))
        for task, hashes in learner.trained_hashes.items()
    }
    saved = state["solution"]
    learner.solution = None if saved is None else _read(saved, state.get("duals", {}))
    learner.tolerances.restate(state["stated"], values_then(learner))
    sums = state["sums"]
    learner.begin_sums(len(sums["fresh"]))
    learner.sums.load_state_dict(sums)
    widths = {each.width for each in learner.sets.parts}
    if widths - {learner.width} or any(not bool(torch.isfinite(each.gram).all()) for each in learner.sets.parts):
        raise UsageError(f"the saved statistics are of {widths} features or damaged; this learner has {learner.width}")
