"""Equal shares of memory for every task so far, or for every task to come, dealt out at a task's end (GEM, A-GEM)."""

from __future__ import annotations

import torch
from torch import Tensor

from pdcl.algorithm.partition import uniform_partition
from pdcl.algorithm.selection import select
from pdcl.errors import UsageError
from pdcl.methods.replay import Remembering, some_of
from pdcl.past.file_rows import fetched
from pdcl.streams.task import Spec, Task
from pdcl.trees import Tree


def task_rows(learner: Remembering, task: Task, chosen: Tensor, **more: Tensor) -> dict[str, Tree]:
    """These samples of the task as memory rows."""
    x, y = fetched(learner.held, task.data.fetch, chosen)
    index = torch.full((len(chosen),), task.index)
    return {"x": x, "y": y, "task": index, "id": chosen + learner.samples_seen, **more}


def share_evenly(learner: Remembering, task: Task) -> None:
    """Give the task just learned its share, taken from the others': uniform draws, balanced over a task's classes.

    Memory is left sorted by task.
    """
    held = learner.held
    held.allocate(**task_rows(learner, task, some_of(task)))
    available = [*held.counts(task.index), len(task.data)]
    shares = uniform_partition(task.index + 1, held.capacity, available)
    tasks = held["task"].cpu()
    kept = [torch.zeros(0, dtype=torch.long)]
    for k, share in enumerate(shares[:-1]):
        slots = (tasks == k).nonzero().flatten()
        kept.append(slots[_balanced(learner, held.read("y", slots).cpu(), share)])
    chosen = _balanced(learner, task.data.targets, shares[-1])
    held.replace(torch.cat(kept), **task_rows(learner, task, chosen))


def check_filling(filling: str, known: tuple[str, ...]) -> None:
    if filling not in known:
        raise UsageError(f"filling={filling!r} is unknown; choose one of {', '.join(known)}")


def check_fixed(name: str, spec: Spec) -> None:
    """A share fixed beforehand needs to know for how many."""
    if spec.tasks is None:
        raise UsageError(f"{name}: filling='fixed' needs a stream of a known number of tasks; take filling='task'")


def share_fixed(learner: Remembering, task: Task) -> None:
    """Give the task just learned the share that each of all the stream's tasks gets: uniform draws.

    Until the last task memory isn't full.
    """
    assert learner.spec is not None
    assert learner.spec.tasks is not None
    held = learner.held
    held.allocate(**task_rows(learner, task, some_of(task)))
    chosen = torch.randperm(len(task.data), generator=learner.generator)[: held.capacity // learner.spec.tasks]
    held.append(**task_rows(learner, task, chosen))


def _balanced(learner: Remembering, targets: Tensor, count: int) -> Tensor:
    """`count` positions of these targets, as many of each class where they are classes."""
    classes = isinstance(targets, Tensor) and targets.ndim == 1 and not targets.is_floating_point()
    return select(torch.ones(len(targets)), count, learner.generator, targets if classes else None)
