"""What to do about a group that doesn't pass, with numbers: more data, more memory, longer training, a looser limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pdcl.lifelong.learner import Learner
from pdcl.lifelong.owners import belonging
from pdcl.release.criteria import PAIRED
from pdcl.release.deciding import PASS, Judged
from pdcl.release.leaning import about_row
from pdcl.release.output import number, title

STEADY = 0.02
MEMORISED = 0.5


@dataclass(frozen=True)
class Stored:
    """What memory says of a group: samples held, and the model's mean error and loss on them."""

    samples: int
    error: float | None
    loss: float | None


def levers(
    learner: Learner, judged: list[Judged], by: str | None, tasks: list[str], looks: int = 1
) -> dict[str, list[str]]:
    """Lines by row, for every row that doesn't pass.

    tasks: what the learner's tasks are called, in order. looks: how many there will be.
    """
    labels = labels_of(learner)
    found = {}
    for row in judged:
        if row.verdict == PASS:
            continue
        task, label = _place(row, by, tasks, labels)
        segment = None if by in (None, "class", "task") or label is not None else f"{by}={row.group}"
        known = by is None or task is not None or label is not None or segment is not None
        held = stored(learner, task, label, segment) if known else None
        found[title(row)] = [
            *about_row(row, looks),
            *_memory(row, held),
            *_dual(learner, task),
        ]
    return found


def _place(row: Judged, by: str | None, tasks: list[str], labels: list[str]) -> tuple[int | None, int | None]:
    """The task, or the class, that the row is about."""
    if row.criterion in ("miss", "alarm") or by == "class":
        return None, labels.index(row.group) if row.group in labels else None
    return (tasks.index(row.group) if by == "task" and row.group in tasks else None), None


def _memory(row: Judged, held: Stored | None) -> list[str]:
    if held is None:
        return []
    if not held.samples:
        return ["memory holds no sample of it: nothing was replayed; enlarge memory, or learn it again"]
    value = held.loss if row.criterion == "loss" else held.error
    line = f"memory holds {held.samples} of its samples"
    if value is None or row.criterion in ("alarm", *PAIRED):
        return [line]
    line += f", with {number(row, value)} on them against {number(row, row.estimate)} on audit data"
    if value <= row.limit < row.estimate and value < MEMORISED * row.estimate:
        return [f"{line}: memorised. More stored samples help, longer training doesn't"]
    if value > row.limit and row.estimate > row.limit:
        return [f"{line}: not kept even there. A tighter tolerance or longer training helps, before more memory"]
    return [line]


def _dual(learner: Learner, task: int | None) -> list[str]:
    duals = learner.report().duals
    if task is None or task >= len(duals) - 1:
        return []
    trend = dual_trend(learner, task)
    words = {
        None: "",
        True: ", still rising: the tolerance was not met yet; more dual steps (longer training) let it act",
        False: ", no longer rising",
    }
    return [f"λ = {duals[task]:.3g}{words[trend]}"]


def dual_trend(learner: Any, task: int) -> bool | None:
    """Whether λ of a past task still rose when the last task ended; None where that isn't known."""
    history = learner.report().trace.duals
    if len(history) >= 4 and task < len(history[-1]):
        return rising([step[task] for step in history])
    tasks = learner.lineage.tasks
    last = tasks[-1]["result"] if tasks else {}
    if "over_tolerance" not in last:
        return None
    return task in [each["task"] for each in last["over_tolerance"]]


def rising(path: list[float]) -> bool:
    """Whether the end of a path lies clearly above where it was a quarter earlier."""
    before = path[-max(2, len(path) // 4)]
    return path[-1] > before + STEADY * max(abs(before), 1e-3)


@torch.no_grad()
def stored(learner: Learner, task: int | None, label: int | None, segment: str | None = None) -> Stored | None:
    """How the model does on what memory holds of a task, of a class, of a segment (`column=value`), or of everything.

    None where there is no memory, or nobody knows what in it is of the segment.
    """
    memory = learner.store
    if memory is None or (segment is not None and not len(learner.lineage.owners)):
        return None
    if not len(memory):
        return Stored(0, None, None)
    mask = torch.ones(len(memory), dtype=torch.bool)
    if task is not None:
        mask = memory["task"].cpu() == task
    if label is not None:
        mask = memory["y"].cpu() == label
    if segment is not None:
        mask = belonging(learner, segment)
    if not mask.any():
        return Stored(0, None, None)
    x, y = memory["x"].cpu()[mask], memory["y"].cpu()[mask]
    return _measured(learner, learner.evaluated(x).cpu(), y)


def _measured(learner: Learner, scores: Tensor, y: Tensor) -> Stored:
    assert learner.spec is not None
    loss = learner.goal.loss(scores, y)
    error = None if learner.spec.kind == "regression" else float(learner.goal.error(scores, y).double().mean())
    return Stored(len(y), error, float(loss.double().mean()))


def labels_of(learner: Learner) -> list[str]:
    """The names of the head's outputs."""
    assert learner.spec is not None
    known = [str(label) for label in learner.spec.labels]
    return known + [str(index) for index in range(len(known), learner.spec.outputs)]
