"""What is known of every task that was learned: its classes, its size, whether the network was trained on it here."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from pdcl.past.refill import are_classes


@dataclass
class Registry:
    """first_seen: class → the first task that had it. task_samples: how many each task was learned from, 0 where
    unknown. smallest_groups: samples in the smallest group (a patient, a speaker) of each task, 1 where nobody said.
    trained_here: whether the network was trained on it by this learner; it wasn't on adopted tasks. unseen: adopted
    tasks of which somebody said that the network never saw their samples.
    """

    first_seen: dict[str, int] = field(default_factory=dict)
    task_samples: list[int] = field(default_factory=list)
    smallest_groups: list[int] = field(default_factory=list)
    trained_here: list[bool] = field(default_factory=list)
    unseen: list[int] = field(default_factory=list)

    def register_task(self, task: int, targets: Tensor, groups: Tensor | None, trained: bool) -> None:
        """A task with these targets is learned, or adopted."""
        smallest = 1 if groups is None or not len(groups) else int(groups.unique(return_counts=True)[1].min())
        self.task_samples[task:] = [*[0] * (task - len(self.task_samples)), len(targets)]
        self.smallest_groups[task:] = [*[1] * (task - len(self.smallest_groups)), smallest]
        self.trained_here[task:] = [*[False] * (task - len(self.trained_here)), trained]
        if are_classes(targets):
            for label in targets.unique().tolist():
                self.first_seen.setdefault(str(label), task)

    @property
    def learned(self) -> list[int]:
        """How many samples the network was trained on here, by task; 0 for adopted tasks."""
        return [number * own for number, own in zip(self.task_samples, self.trained_here, strict=False)]

    def perhaps_seen(self) -> set[int]:
        """Adopted tasks, unless somebody has said that the network never saw their samples."""
        return {task for task, trained in enumerate(self.trained_here) if not trained} - {*self.unseen}

    def first_tasks(self, classes: Tensor) -> Tensor:
        """The first task that had each of these classes; beyond all tasks where none had it."""
        known, places = classes.unique(return_inverse=True)
        never = len(self.task_samples)
        return torch.tensor([self.first_seen.get(str(label), never) for label in known.tolist()])[places]

    def state_dict(self) -> dict[str, Any]:
        state = asdict(self)
        # The name that states have had from the beginning.
        state["by_heart"] = state.pop("trained_here")
        return state

    def load_state_dict(self, state: dict[str, Any], tasks: int) -> None:
        """Take over a state, or what an older one has of it, for so many tasks."""
        self.first_seen = dict(state.get("first_seen", {}))
        self.task_samples = list(state.get("task_samples", [0] * tasks))
        self.smallest_groups = list(state.get("smallest_groups", [1] * tasks))
        self.trained_here = list(state.get("by_heart", []))
        self.unseen = list(state.get("unseen", []))
