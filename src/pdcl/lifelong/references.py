"""What a model did with audit samples when their task was learned: what later states are compared with.

Comparing with last month alone lets small drops add up unseen. A sample takes 17 bytes: its keyed hash, its task, the
newest task at that time, and whether it was wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pdcl.lifelong.audited import errors_on
from pdcl.streams.audits import Audit
from pdcl.streams.hashes import sample_hashes

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

PIECE = 1000


def _none(dtype: torch.dtype) -> Callable[[], Tensor]:
    return partial(torch.zeros, 0, dtype=dtype)


@dataclass(frozen=True)
class References:
    """Per sample: `hashes` under the lineage's key; its `task`, −1 where unknown; `since`, the newest task then."""

    hashes: Tensor = field(default_factory=_none(torch.int64))
    task: Tensor = field(default_factory=_none(torch.int32))
    since: Tensor = field(default_factory=_none(torch.int32))
    wrong: Tensor = field(default_factory=_none(torch.float32))

    def __len__(self) -> int:
        return len(self.hashes)

    def joined(self, more: References) -> References:
        """These, and those of `more` whose samples aren't here: the first outcome is the one that counts."""
        new = ~torch.isin(more.hashes, self.hashes)
        return References(*(torch.cat([getattr(self, n), getattr(more, n)[new]]) for n in self.__dataclass_fields__))

    def only(self, rows: Tensor) -> References:
        return References(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def of(self, hashes: Tensor, before: int) -> npt.NDArray[np.float64]:
        """The stored error of each sample, [n]; NaN where none is stored from a time before task `before`."""
        usable = self.only(self.since < before)
        known = dict(zip(usable.hashes.tolist(), usable.wrong.tolist(), strict=True))
        return np.asarray([known.get(each, np.nan) for each in hashes.tolist()])

    def state_dict(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_state(cls, state: dict[str, Tensor] | None) -> References:
        return cls() if state is None else cls(**{name: state[name] for name in cls.__dataclass_fields__})


def measured(learner: Learner, audit: Audit) -> References:
    """What the learner does with these samples now."""
    names = {str(entry["name"]): entry["task"] for entry in learner.lineage.tasks}
    tasks = audit.columns.get("task", np.full(len(audit), "")).tolist()
    return References(
        sample_hashes(audit.x, learner.lineage.key),
        torch.tensor([names.get(str(task), -1) for task in tasks], dtype=torch.int32),
        torch.full((len(audit),), learner.tasks_learned - 1, dtype=torch.int32),
        torch.as_tensor(errors_on(learner, audit), dtype=torch.float32),
    )


def note_references(learner: Learner, audit: Audit, chosen: npt.NDArray[np.int64] | None = None) -> None:
    """Store the outcome of every sample, or of the chosen ones, that has none yet. They are read in pieces."""
    assert learner.spec is not None
    rows = np.arange(len(audit)) if chosen is None else chosen
    if learner.spec.kind != "regression" and len(rows):
        found = learner.lineage.references
        for piece in np.split(rows, range(PIECE, len(rows), PIECE)):
            found = found.joined(measured(learner, audit.taken(piece)))
        learner.lineage.references = found
