"""Columns by name, rows 0..size−1 in use: how a memory is read, and which rank holds which of its inputs."""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor

from pdcl.errors import UsageError
from pdcl.past.columns import Rows, Sequences, allocated
from pdcl.past.division import Share, divided, share_of
from pdcl.past.file_rows import FileRows, exceeds
from pdcl.past.journal import Journal
from pdcl.past.shard_rows import ShardRows
from pdcl.ranks import ALONE, Ranks
from pdcl.trees import Leaf, Tree, length, take, unflatten

Column: TypeAlias = Rows | Sequences | FileRows | ShardRows


class Table:
    """What a memory holds. most_in_ram: bytes of inputs beyond which ranks divide them, or they go to a file."""

    def __init__(self, most_in_ram: int) -> None:
        self.most_in_ram = most_in_ram
        self.columns: dict[str, Column] = {}
        self.size = 0
        self.ranks = ALONE
        self._journal: Journal | None = None

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, column: str) -> Tree:
        """The rows in use; of a tensor a view."""
        found = self.columns.get(column)
        if found is None:
            return unflatten({name: leaf.used(self.size) for name, leaf in self._branches(column).items()})
        if self._journal is not None and isinstance(found, Rows):
            self._journal.handed_out(column, found.data)
        return found.used(self.size)

    def read(self, column: str, slots: Tensor) -> Tree:
        """A copy of these rows; the quickest way for a few."""
        found = self.columns.get(column)
        if found is not None:
            return found.read(slots)
        return unflatten({name: leaf.read(slots) for name, leaf in self._branches(column).items()})

    def _branches(self, column: str) -> dict[str, Column]:
        start = f"{column}."
        found = {name[len(start) :]: leaf for name, leaf in self.columns.items() if name.startswith(start)}
        if not found:
            raise KeyError(column)
        return found

    @property
    def nbytes(self) -> int:
        """What is allocated here."""
        return allocated(self.columns.values())

    @property
    def stored(self) -> int:
        """What the samples in it take, in bytes, on all ranks that divide them together."""
        return sum(column.stored(self.size) for column in self.columns.values())

    def _tensors(self) -> dict[str, Tensor]:
        """The columns whose rows a journal notes; others go back by where their rows lie."""
        return {name: column.data for name, column in self.columns.items() if isinstance(column, Rows)}

    # Several ranks.

    def spread_over(self, ranks: Ranks) -> None:
        """Let these ranks divide the inputs, once there are more than one should hold."""
        if self.shards and ranks != self.ranks:
            raise UsageError(
                f"memory's inputs are divided among {self.ranks.world} ranks, of which this is number "
                f"{self.ranks.rank}; load them from a checkpoint to divide them anew"
            )
        self.ranks = ranks

    @property
    def shards(self) -> dict[str, ShardRows]:
        """The inputs of which each rank holds a part; none where all hold all."""
        if self.ranks.alone:
            return {}
        return {name: column for name, column in self.columns.items() if isinstance(column, ShardRows)}

    def expect(self, rows: int) -> None:
        """It is about to hold so many rows: divide inputs that are too many, before more of them are fetched."""
        self.columns |= divided(self.columns, self.size, rows, self.most_in_ram, self.ranks)

    def share(self, slots: Tensor) -> Share:
        """Which of these slots have their inputs here."""
        shard = next(iter(self.shards.values()), None)
        return Share(self.ranks, len(slots), None if shard is None else shard.here(slots))

    def share_of(self, ids: Tensor) -> Share:
        """Which samples with these ids would have their inputs here."""
        return share_of(ids, self.ranks) if self.shards else Share(self.ranks, len(ids))

    def on_disk(self, rows: int) -> bool:
        """Whether so many inputs that are about to be stored here will lie in a file."""
        if any(isinstance(column, FileRows) for column in self.columns.values()):
            return True
        shards = self.shards.values()
        return exceeds(self.columns, rows, self.most_in_ram) or any(rows > shard.in_ram for shard in shards)

    def _write(self, slots: Tensor, leaves: dict[str, Leaf]) -> None:
        mine = self.share_of(leaves["id"]).mine if self.shards else None  # type: ignore[arg-type]
        for name, leaf in leaves.items():
            column = self.columns[name]
            if isinstance(column, ShardRows):
                assert mine is not None
                column.write(slots, leaf, mine)  # type: ignore[arg-type]
            else:
                column.write(slots, leaf)  # type: ignore[arg-type]

    def _taken(self, rows: dict[str, Tree], positions: Tensor) -> dict[str, Tree]:
        """The rows at these positions; of inputs that are this rank's alone, those among them."""
        if not self.shards or length(rows["x"]) == len(rows["id"]):
            return {name: take(tree, positions) for name, tree in rows.items()}
        own = self.share_of(rows["id"]).places(positions)
        return {name: take(tree, own if name == "x" else positions) for name, tree in rows.items()}
