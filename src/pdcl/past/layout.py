"""Which stored samples are replayed, which steer, and which sets of them are constraints, while one task is learned."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pdcl.algorithm.constraints import Sets, sample_sets, task_sets, with_segments
from pdcl.past.held_back import GUARD, REPLAY
from pdcl.past.segments import CODES, Segments
from pdcl.past.store import Memory


@dataclass(frozen=True, eq=False)
class Layout:
    """task_of: the task of every slot. tasks: what is replayed of each past task. sets: the samples of each constraint
    (past tasks, then segments; or single samples). measured_on: the slots on which slacks are measured.
    """

    task_of: Tensor
    tasks: Sets
    sets: Sets
    measured_on: Sets


def lay_out(memory: Memory, past: int, by_sample: bool, segments: Segments) -> Layout:
    """A task with guards is measured on them, others on what is replayed of them, at the sample level each sample."""
    size = len(memory)
    task_of = memory["task"].cpu() if size else torch.zeros(0, dtype=torch.long)
    roles = memory.read("role").cpu() if size else torch.zeros(0, dtype=torch.uint8)
    inside = segments.masks(memory.read(CODES).cpu() if size and segments else segments.blank(size))
    tasks = task_sets(task_of, past, (roles == REPLAY).nonzero().flatten())
    if by_sample:
        return Layout(task_of, tasks, sample_sets(tasks), tasks)
    guards = (roles == GUARD).nonzero().flatten()
    guarded = torch.bincount(task_of[guards], minlength=past) > 0
    replayed = tasks.members[~guarded[tasks.owners]]
    measured_on = task_sets(task_of, past, torch.cat([replayed, guards])) if len(guards) else tasks
    return Layout(task_of, tasks, with_segments(tasks, inside), with_segments(measured_on, inside))
