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
from pdcl.lifelong import save as saving
from pdcl.lifelong.entry import newest_promises
from pdcl.lifelong.export import export
from pdcl.lifelong.forgetting import forget_samples
from pdcl.lifelong.learn import adopt, learn
from pdcl.lifelong.lineage import Lineage, check_entries
from pdcl.lifelong.predict import evaluate, predict, predict_proba
from pdcl.lifelong.rebase import rebase
from pdcl.lifelong.rows import takes_tables
from pdcl.streams.table_reader import TableReader
from pdcl.streams.task import Stream, Task
from pdcl.streams.transform import Transform


@dataclass(eq=False)
class Learner(Trainable):
    """A network that learns tasks one after another by one method, months apart if need be.

    `promises` is the table of all stated limits with their verdicts after the newest task (`pdcl.Promises`), None where
    there are no limits. `lineage` has the whole life.
    """

    # What `pdcl.forget` can't take training samples out of; {path}: where the model is.
    keeps_traces: ClassVar[str] = (
        "the weights of {path}, of its previous state and of exports were trained on them; only a model that is "
        "trained anew without them never saw them"
    )

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

    # What users call. Each is a function in a file of its own, whose signature is the method's.
    learn = takes_tables(learn)
    adopt = takes_tables(adopt)
    rebase = rebase
    predict = predict
    predict_proba = predict_proba
    evaluate = evaluate
    export = export

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

    def move_reference(self, task: int, name: str) -> dict[str, Any]:
        """Store what a task has now as its reference: its limit before and after."""
        raise UsageError(f"rebase({name!r}) has no effect: {type(self).__name__} knows no limits")

    def other_limits(self) -> list[dict[str, Any]]:
        """Errors of all tasks under other limits, for a page's sliders; nothing where that would take training."""
        return []

    def room_gains(self, task: int, more: float) -> float | None:
        """What `more` room for a past task's limit wins, measured by solving anew; None for learners that can't."""
        return None

    def take_out(self, hashes: Tensor, x: Tensor | None, y: Any = None) -> int | None:
        """Take stored samples out, for `pdcl.forget`: how many there were, None where nothing changed.

        hashes: under the lineage's key. x, y: the samples themselves, where they were given.
        """
        return forget_samples(self, hashes)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels known so far, in the order of `predict_proba`'s columns."""
        return () if self.spec is None else self.spec.labels

    def save(self, path: str | Path, *, frozen: bool = True) -> Path:
        """Save everything to a directory, for `pdcl.load`. Another learner's state there is never overwritten.

        frozen=False leaves out parameters that don't learn, such as a large model under LoRA: `pdcl.load` then takes
        them from the network that is handed in, which must have the same ones.
        """
        return saving.save(self, path_of(path, "path"), frozen=frozen)
