"""What memory held of past tasks: how much was replayed, and whether the network knows it by heart.

Replayed samples are looked at only where held-back ones are over their limit: one forward pass over few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdcl.judging.remedies import Held
from pdcl.limits.limits import judged
from pdcl.limits.tolerance import Tolerance
from pdcl.limits.tolerances import Tolerances
from pdcl.past.held_back import REPLAY
from pdcl.past.registry import Registry
from pdcl.past.stored import LOOK_AT, Forward, StoredSamples

if TYPE_CHECKING:
    from pdcl.judging.witnesses import Newest, Seen


def held_by_task(
    past: StoredSamples, limits: Tolerances, registry: Registry, newest: Newest, own: list[Seen], forward: Forward
) -> list[Held]:
    """What memory held of each past task, with the error of its replayed samples where its limit looks broken."""
    found = [
        Held(places, samples, passes=newest.passes)
        for places, samples in zip(newest.replayed, registry.task_samples, strict=False)
    ]
    over = [k for k, held in enumerate(found) if held.places and _looks_broken(limits.of(k), k, own[k])]
    for k, wrong in look_at_replayed(past, over, forward).items():
        found[k] = found[k]._replace(wrong=float(wrong.sum()), looked=len(wrong))
    return found


def _looks_broken(stated: Tolerance | None, task: int, seen: Seen) -> bool:
    if stated is None or stated.unit != "error" or not len(seen.tasks):
        return False
    allowed = judged(stated, task).of(float(seen.then["error"].double().mean()))
    return allowed is not None and float(seen.now["error"].double().mean()) > allowed


@torch.no_grad()
def look_at_replayed(past: StoredSamples, tasks: list[int], forward: Forward) -> dict[int, Tensor]:
    """Which replayed samples of these tasks are wrong now: at most `LOOK_AT` in all, an even share of each task,
    one at least."""
    if not tasks:
        return {}
    owner, role = past.memory["task"].cpu(), past.memory.read("role").cpu()
    most = max(1, LOOK_AT // len(tasks))
    each = [((owner == k) & (role == REPLAY)).nonzero().flatten() for k in tasks]
    each = [slots[torch.linspace(0, len(slots) - 1, min(len(slots), most)).long()] for slots in each]
    slots = torch.cat(each)
    if not len(slots):
        return {}
    wrong = past.wrong(forward(past.inputs(slots)), past.targets(slots)).cpu()
    return dict(zip(tasks, wrong.split([len(part) for part in each]), strict=True))
