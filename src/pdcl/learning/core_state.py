"""What determines the future of Algorithm 1 on stored samples: what a checkpoint and a saved model hold of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pdcl.learning.primal_dual import PrimalDual


def state_of(core: PrimalDual) -> dict[str, Any]:
    """All that determines the future but memory and generator, as tensors and JSON values."""
    progress, running = core.progress, core.progress.clock > 0
    own = {"carried": core.carried, "last_duals": core.last_duals, "segment_duals": core.segment_duals}
    segments = {"column_values": core.past.segments.table}
    numbers, registry = progress.numbers(), core.registry.state_dict()
    # A lever may have moved base weights, which begin anew with each task.
    lever, base = core.choices.lever, {"base": core.algorithm.constraints.base.clone()} if running else {}
    return {
        "method": {**numbers, **own, **core.tolerances.state_dict(), **registry, **segments},
        "duals": {**core.algorithm.duals.state_dict(), **progress.histories()} if running else {},
        "running": progress.running() if running else {},
        "measure": core.algorithm.survey.state_dict() if running else {},
        "past": dict(core.past.own),
        **({} if lever is None else {"lever": {"own": lever.state_dict(), **base}}),
    }


def take_state(core: PrimalDual, state: dict[str, Any]) -> None:
    """Take over a state; memory must have taken over its own before."""
    own, tolerances = state["method"], core.tolerances
    tolerances.load_state_dict(own)
    core.registry.load_state_dict(own, len(tolerances))
    core.past.segments.take_table(own.get("column_values", {}))
    in_error = [tolerances.unit(k) == "error" for k in range(len(tolerances))]
    core.past.upgrade(in_error)
    core.past.own = state.get("past", {})
    # New limits hold from the next task on: a task in progress keeps those that it began with.
    if "stated" in own and not state["duals"] and len(core.memory):
        tolerances.restate(own["stated"], core.past.references(len(in_error), in_error))
    core.begin(0, int(own.get("steps", 1)))
    for name in ("carried", "last_duals", "segment_duals"):
        setattr(core, name, own.get(name, getattr(core, name)))
    core.progress.take_numbers(own)
    levered = state.get("lever", {})
    if core.choices.lever is not None and "own" in levered:
        core.choices.lever.load_state_dict(levered["own"])
    if state["duals"]:
        core.algorithm.duals.load_state_dict(state["duals"])
        core.progress.take(state["duals"], state["running"])
        core.algorithm.survey.load_state_dict(state["measure"])
        if "base" in levered:
            core.algorithm.constraints.base.copy_(levered["base"])
        core.algorithm.weigh()
