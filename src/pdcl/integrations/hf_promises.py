"""What became of the limits of capabilities, on samples that training never saw."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from pdcl.integrations.hf_constraints import Constraints
from pdcl.integrations.hf_guards import Look
from pdcl.judging.table import Promises
from pdcl.limits.limits import judged
from pdcl.past.held_back import GUARD, WITNESS


def judge(constraints: Constraints, look: Look, model: Any) -> Promises:
    """Look at the witnesses of every capability (at its guards, where it has none) and judge its limit."""
    # SciPy is imported once there is a table to make.
    from pdcl.judging.verdicts import Question, judge

    memory, questions = constraints.core.memory, []
    for k, each in enumerate(constraints.capabilities):
        limit = judged(each.limit, k)
        slots, steered = _held_back(constraints, k)
        then = memory.read("reference" if limit.unit == "loss" else "wrong", slots)
        now = look(memory.read("x", slots))[:, int(limit.unit == "error")] if len(slots) else then
        clip = usual_clip(getattr(model, "config", None))
        questions.append(Question(each.name, limit, now.numpy(), then.numpy(), steered=steered, clip=clip))
    for k, numbers in constraints.numbers_of_tests().items():
        each, unit = constraints.capabilities[k], int(judged(constraints.capabilities[k].limit, k).unit == "error")
        then, now = (seen[:, unit].numpy() for seen in (constraints.tests[k], look(numbers)))
        clip = usual_clip(getattr(model, "config", None))
        questions.append(Question(f"{each.name}, test", judged(each.limit, k), now, then, clip=clip))
    constraints.check_agreement()
    constraints.promises = judge(questions)
    return constraints.promises


def _held_back(constraints: Constraints, capability: int) -> tuple[Tensor, bool]:
    """Slots of the samples that judge a capability, and whether they steered training."""
    memory = constraints.core.memory
    mine = memory["task"] == capability
    witnesses = (mine & (memory["role"] == WITNESS)).nonzero().flatten()
    guards = (mine & (memory["role"] == GUARD)).nonzero().flatten()
    return (witnesses, False) if len(witnesses) else (guards, len(guards) > 0)


def usual_clip(config: Any) -> float:
    """Losses count up to that of a model that guesses, −ln 1/outputs."""
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    sizes = [getattr(config, name, None) or 0 for name in ("vocab_size", "num_labels")]
    return math.log(max(100, *sizes))
