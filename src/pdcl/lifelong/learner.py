"""The learner that users hold: it learns, predicts, is saved and loaded, over years."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from pdcl.errors import UsageError
from pdcl.given import path_of
from pdcl.learning.learner import Trainable
from pdcl.lifelong import export as exporting
from pdcl.lifelong import learn as learning
from pdcl.lifelong import predict as predicting
from pdcl.lifelong import rebase as rebasing
from pdcl.lifelong import rows
from pdcl.lifelong import save as saving
from pdcl.lifelong.entry import Entry, newest_promises
from pdcl.lifelong.lineage import Lineage, check_entries
from pdcl.streams.data import Collate
from pdcl.streams.table import Table, TableTask
from pdcl.streams.table_reader import TableReader
from pdcl.streams.task import Stream, Task
from pdcl.streams.transform import Transform


@dataclass(eq=False)
class Learner(Trainable):
    """A network that learns tasks one after another by one method, months apart if need be.

    `promises` is the table of all stated limits with their verdicts after the newest task (`pdcl.Promises`), None where
    there are no limits. `lineage` has the whole life.
    """

    # How samples are taken out of a learner that keeps more of them than memory; None: `pdcl.forget` does it.
    forgets_by: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lineage = Lineage()
        # Where it was saved. The gate writes its looks there, too.
        self.home: Path | None = None
        self.reading = Transform()
        # How rows of a table are read; None: the first task were arrays.
        self.table: TableReader | None = None
        self.backbone_hash: str | None = None
        # An option of the saved state that this version has no more: the learner predicts, and can't learn on.
        self.learned_with: str | None = None
        # Which samples of the current task were learned before, and so can't be witnesses.
        self.learned_before: Tensor | None = None

    def note(self, task: Task, stream: Stream, settings: dict[str, Any], result: dict[str, Any]) -> None:
        self.lineage.note(task, stream.spec, settings, result, "learned")
        self._note_groups(task, stream)

    def _note_groups(self, task: Task, stream: Stream) -> None:
        if task.data.groups is not None:
            self.lineage.note_groups(stream.group_names(task.data.groups.unique()))

    def notes(self) -> list[dict[str, Any]]:
        return self.lineage.entries

    def restore_notes(self, notes: list[dict[str, Any]], stream: Stream, tasks: Sequence[Task]) -> None:
        check_entries(notes)
        self.lineage.entries, self.lineage.pending = list(notes), list(tasks)
        self.promises = newest_promises(notes)
        for task in tasks:
            self._note_groups(task, stream)

    def read_with(self, transform: Transform) -> None:
        """How raw inputs are read before a backbone sees them."""
        self.reading = transform

    def learn(self, x: Any, y: Any = None, **options: Any) -> Entry:
        """Learn one task: `learn(x, y, name="2026-12")`. Labels are any integers or strings, new ones included.

        name; tolerance: of this task alone, from now on; test: (x, y) to score afterwards; groups: one per sample;
        columns: {"plan": [...]}, further facts of every sample; epochs, batch: otherwise by size; grow: widens the
        network in place of our own rule; kind, transform: of the first task; listener: hears the events. audit: a
        directory to set `audit_share` (0.1) of the task aside in, at most `audit_budget` samples in all, for the gate.
        on_violation: what to do where a limit is BROKEN: "report" it, or "rollback", which puts the learner back to
        what it was.
        x may be a task of `pdcl.table`, a dict or tuple of arrays, or a list of sequences; collate: makes batches of a
        Dataset's inputs.

        Where limits are stated, the entry's `promises` (and the learner's) is the table of their verdicts, and
        broken ones are warned of with `pdcl.LimitBroken`. Without a listener, what else people should know is a
        `pdcl.LearningWarning`.
        """
        if isinstance(x, TableTask | Table):
            return rows.taught(self, x, y, learning.learn, options)
        return learning.learn(self, x, y, **options)

    def adopt(self, x: Any, y: Any = None, **options: Any) -> Entry:
        """Enter data that the network knows already as a past task; no weight changes.

        name; tolerance: of this task alone; labels: what the network's outputs mean, in their order; groups; columns;
        unseen: whether the network was never trained on these samples (no). Only then can they show that a limit is
        kept: on memorised samples a network makes no errors, however bad it is on others.
        """
        if isinstance(x, TableTask | Table):
            return rows.taught(self, x, y, learning.adopt, options)
        return learning.adopt(self, x, y, **options)

    def rebase(self, task: int | str) -> Entry:
        """Let a task's limit compare with what the task has now, instead of what it had when it was learned.

        task: its name or number. References never move by themselves, or two points a month become 24 a year.
        """
        return rebasing.rebase(self, task)

    def move_reference(self, task: int, name: str) -> dict[str, Any]:
        """Store what a task has now as its reference: its limit before and after."""
        raise UsageError(f"rebase({name!r}) has no effect: {type(self).__name__} knows no limits")

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels known so far, in the order of `predict_proba`'s columns."""
        return () if self.spec is None else self.spec.labels

    def predict(
        self,
        x: Any,
        collate: Collate | None = None,
        *,
        threshold: float | None = None,
        otherwise: Any = None,
        batch: int | None = None,
    ) -> Any:
        """The label of every sample, as the user writes it.

        threshold: the least probability that is an answer; below it a sample gets `otherwise` (None). batch: samples in
        one forward pass, otherwise 1000.
        """
        return predicting.predict(self, x, collate, threshold, otherwise, batch)

    def predict_proba(self, x: Any, collate: Collate | None = None, *, batch: int | None = None) -> Any:
        """The probability of every known label, samples × `labels`: the softmax of the method's scores.

        For several labels per sample, each label's own probability; for tokens, those of each token.
        """
        return predicting.probabilities(self, x, collate, batch)

    def evaluate(self, x: Any, y: Any = None, collate: Collate | None = None, *, batch: int | None = None) -> float:
        """The mean score on these samples: accuracy, where there are classes."""
        return predicting.evaluate(self, x, y, collate, batch)

    def save(self, path: str | Path, *, frozen: bool = True) -> Path:
        """Save everything to a directory, for `pdcl.load`. Another learner's state there is never overwritten.

        frozen=False leaves out parameters that don't learn, such as a large model under LoRA: `pdcl.load` then takes
        them from the network that is handed in, which must have the same ones.
        """
        return saving.save(self, path_of(path, "path"), frozen=frozen)

    def export(self, path: str | Path) -> Path:
        """Write the network alone, as `m.onnx` or `m.pt2`, checked against torch, with its labels beside it."""
        return exporting.export(self, path_of(path, "path"))
