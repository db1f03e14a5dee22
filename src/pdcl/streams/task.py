"""What a learner is shown: tasks one after another, and what can be known before the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from pdcl.laboratory import lab
from pdcl.printable import counted
from pdcl.streams.data import Data
from pdcl.streams.transform import Transform
from pdcl.trees import LeafSpec, Tree, unflatten

NAME_WIDTH = 60
TASKS_SHOWN = 12


@dataclass(frozen=True, repr=False)
class Task:
    """The data of one step of a stream. `classes` are head indices ((): not a classification task)."""

    index: int
    name: str
    data: Data
    test: Data
    classes: tuple[int, ...] = ()

    def __repr__(self) -> str:
        name = self.name if len(self.name) <= NAME_WIDTH else self.name[: NAME_WIDTH - 1] + "…"
        return f"<Task {self.index} {name!r}: {len(self.data)} training and {len(self.test)} test samples>"


@dataclass(frozen=True)
class Spec:
    """What is known of a stream before its first task.

    `kind` is "classification", "regression", "multilabel" or "tokens"; `labels` are the user's names of the head's
    outputs, in head order; `heads` are the classes of every task, where the tasks are known beforehand. `leaves`
    describe inputs that aren't one tensor; `shape` is then () and `dtype` that of the first.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    outputs: int
    kind: str = "classification"
    labels: tuple[Any, ...] = ()
    heads: tuple[tuple[int, ...], ...] | None = None
    transform: Transform = field(default_factory=Transform)
    leaves: tuple[LeafSpec, ...] = ()

    def blank(self, count: int) -> Tree:
        """Samples of zeros."""
        if not self.leaves:
            return torch.zeros((count, *self.shape), dtype=self.dtype)
        return unflatten({leaf.name: leaf.blank(count) for leaf in self.leaves})

    @property
    def expected(self) -> tuple[LeafSpec, ...]:
        """What every leaf of a batch must be; one tensor is a leaf without a name."""
        return self.leaves or (LeafSpec("", self.shape, self.dtype),)

    def inputs(self) -> str:
        """What a sample is, for people."""
        return ", ".join(map(str, self.leaves)) or f"{self.shape} {str(self.dtype).removeprefix('torch.')}"

    @property
    def tasks(self) -> int | None:
        """How many tasks will come, where that is known."""
        return None if self.heads is None else len(self.heads)


@dataclass(frozen=True, repr=False)
class Stream:
    """An ordered list of tasks. `preset` names the option table made for it (None: `auto`); `groups` are the names of
    what the data's `groups` count (none: their numbers). `derived_from` is what `derive` made it from.

    >>> import pdcl
    >>> pdcl.stream("digits")
    <Stream 'digits': 5 tasks, 10 classes, inputs 1×8×8 uint8>
    >>> print(pdcl.stream("digits", noise=0.1))
    <Stream 'digits' (noise=0.1): 5 tasks, 10 classes, inputs 1×8×8 uint8>
      <Task 0 '0, 1': 288 training and 72 test samples>
      <Task 1 '2, 3': 288 training and 72 test samples>
      <Task 2 '4, 5': 291 training and 72 test samples>
      <Task 3 '6, 7': 288 training and 72 test samples>
      <Task 4 '8, 9': 283 training and 71 test samples>
    """

    name: str
    tasks: Sequence[Task]
    spec: Spec
    preset: str | None = None
    fingerprint: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    groups: tuple[Any, ...] = ()
    derived_from: Stream | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        telling = (*lab("benchmarks.derivation").OPTIONS, "held_out", "held_out_seed")
        altered = [f"{name}={value}" for name, value in self.options.items() if name in telling]
        shown = f" ({', '.join(altered)})" if altered else ""
        outputs = f"{self.spec.outputs} {'classes' if self.spec.kind == 'classification' else 'outputs'}"
        plain = f"{'×'.join(map(str, self.spec.shape))} {str(self.spec.dtype).removeprefix('torch.')}"
        inputs = self.spec.inputs() if self.spec.leaves else plain
        return f"<Stream {self.name!r}{shown}: {counted(len(self.tasks), 'task')}, {outputs}, inputs {inputs}>"

    def __str__(self) -> str:
        shown = [f"  {task!r}" for task in self.tasks[:TASKS_SHOWN]]
        more = len(self.tasks) - TASKS_SHOWN
        return "\n".join([repr(self), *shown, *([f"  … and {more} more tasks"] if more > 0 else [])])

    def derive(self, **options: Any) -> Stream:
        """The same stream with fewer samples, wrong labels, other domains or blurred boundaries:
        see `pdcl.lab.benchmarks.derivation.Derivation`.

        >>> import pdcl
        >>> pdcl.stream("digits").derive(per_class=10, noise=0.1, derive_seed=3)
        <Stream 'digits' (per_class=10, noise=0.1, derive_seed=3): 5 tasks, 10 classes, inputs 1×8×8 uint8>
        """
        derived: Stream = lab("benchmarks.derivation").derive(self, **options)
        return derived

    def group_names(self, codes: Tensor) -> list[Any]:
        """The names of groups, by the numbers that the data has for them."""
        return [self.groups[code] for code in codes.tolist()] if self.groups else codes.tolist()

    def for_tuning(self, share: float = 0.1, seed: int = 0) -> Stream:
        """The same stream with `share` of each task's training data in place of its test data.

        Nothing that the result fetches is test data of the original, and no group is divided. Its options say
        `held_out`, by which `load` makes it again. A derived stream is held out before it is derived, so that no
        sample is trained on in one domain and scored in another.
        """
        from pdcl.streams.held_out import hold_out_all

        if self.derived_from is not None:
            chosen = lab("benchmarks.derivation").chosen(self)
            return self.derived_from.for_tuning(share, seed).derive(**chosen)
        options = {**self.options, "held_out": share, **({"held_out_seed": seed} if seed else {})}
        return replace(self, tasks=hold_out_all(self.tasks, share, seed), options=options)
