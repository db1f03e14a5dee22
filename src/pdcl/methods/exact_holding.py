"""Guards and witnesses of an exact learner: drawn before a task is learned, stored at its end, never in statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from pdcl.errors import UsageError
from pdcl.learning.batches import seeded
from pdcl.learning.events import Warned
from pdcl.methods.exact_bound import held_back_most
from pdcl.past.held_back import GUARD, WITNESS, HeldBack, cut_short
from pdcl.past.repeats import hold_back_once, left_out, row_hashes, row_hashes_at
from pdcl.streams.task import Task
from pdcl.trees import to

if TYPE_CHECKING:
    from pdcl.methods.exact import Exact


def draw_aside(learner: Exact, task: Task) -> HeldBack:
    """What a task holds back; the same each time. Copies of what was ever held back are not trained on either."""
    data, known = task.data, learner.learned_before
    if known is None and learner.tolerances.stated_any and task.index:
        known = learner.earlier.known(task.index, data)
    wanted, generator = held_back_most(learner, task.index + 1), seeded(learner.seed, task.index, 3)
    found = hold_back_once(data, wanted, generator, data.groups, learner.held.memory, known)
    if (hashes := row_hashes(data)) is not None and len(learner.ever_held):
        found = replace(found, trained=found.trained[~torch.isin(hashes[found.trained], learner.ever_held)])
    if len(data) and not len(found.trained):
        raise UsageError(
            f"all {len(data)} samples of the task are copies of guards or witnesses; there is nothing new to learn"
        )
    for each in (
        cut_short(learner.guard, learner.witness, found, len(data), "a tenth (guards: a quarter)"),
        left_out(found, len(data)),
    ):
        if each is not None:
            learner.emit(Warned(task.index, each))
    return found


def store_aside(learner: Exact, task: Task, aside: HeldBack) -> None:
    """Store guards and witnesses of a task, and the hashes of all that was not trained on."""
    data, held = task.data, learner.held
    positions = torch.cat([aside.guards, aside.witnesses])
    roles = torch.tensor([GUARD] * len(aside.guards) + [WITNESS] * len(aside.witnesses), dtype=torch.uint8)
    x, y = data.fetch(positions) if len(positions) else (None, data.targets[positions])
    features = torch.zeros(0, learner.width - 1) if x is None else learner.represent(to(x, learner.place))[:, :-1]
    codes = held.segments.encode(data.columns, positions)
    groups = None if data.groups is None else data.groups[positions]
    own, ids = row_hashes_at(data, positions), positions + learner.samples_seen
    held.add(task.index, features.float(), y, ids, roles, own, codes, groups)
    if learner.erasable:
        learner.trained_hashes[task.index] = row_hashes_at(data, aside.trained)
        learner.trained_codes[task.index] = held.segments.encode(data.columns, aside.trained)
    left = torch.ones(len(data), dtype=torch.bool)
    left[aside.trained] = False
    learner.ever_held = torch.cat([learner.ever_held, row_hashes_at(data, left.nonzero().flatten())]).unique()
