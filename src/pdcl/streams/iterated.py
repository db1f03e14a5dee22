"""Data that can only be iterated: a function begins an iterator at any sample, and positions take the place of indices.

    def start(first):                       # (input, target) of sample `first`, `first` + 1, … to the end
        with open("samples.bin", "rb") as file:
            file.seek(first * SIZE)
            ...
    learner.learn(pdcl.Iterated(start, buffer=10_000))

A pass is shuffled within blocks of `buffer` samples, and blocks come in their order: at most two of them are held. So a
position in a pass is a number, and a run that was stopped begins again at the block it was in.
"""

from __future__ import annotations

import itertools
import threading
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from pdcl.errors import UsageError
from pdcl.given import short
from pdcl.streams.checks import BadData
from pdcl.streams.inputs import Column, column, targets_column
from pdcl.trees import flatten

Sample = tuple[Any, Any]
Start = Callable[[int], Iterator[Sample]]
UNKNOWN = -1


class Iterated(Dataset[Sample]):
    """Samples from `start`, a function of the first sample's number, or from an object that can be iterated anew.

    Of the latter samples before the first one are read and thrown away. targets: all of them, where they are known;
    otherwise one pass finds them. The same sample must come at the same place every time, which is checked.

    >>> data = Iterated(lambda first: ((torch.tensor([float(i)]), i % 2) for i in range(first, 6)), buffer=2)
    >>> len(data), data.blocks.tolist(), data[4][0].tolist()
    (6, [0, 0, 1, 1, 2, 2], [4.0])
    """

    def __init__(self, start: Start | Iterable[Sample], *, targets: Any = None, buffer: int = 10_000) -> None:
        if isinstance(start, Iterator):
            raise UsageError(
                f"a {type(start).__name__} can be read only once, and learning reads its data several times: give a "
                "function start(first) that returns an iterator from sample number `first` on"
            )
        if not callable(start) and not isinstance(start, Iterable):
            raise UsageError(f"start={short(start)} must be a function start(first), or something to iterate over")
        if isinstance(buffer, bool) or not isinstance(buffer, int) or buffer < 1:
            raise UsageError(f"buffer={buffer!r} must be a number of samples, at least 1")
        self.start: Start = start if callable(start) else _skipping(start)
        self.buffer = buffer
        self._reader = Reader(self.start, buffer, jumps=callable(start))
        self.targets: Column = self._found() if targets is None else targets_column(targets)
        self._reader.expect(len(self.targets))
        self.rows = torch.arange(len(self.targets))

    def _found(self) -> Column:
        """Every target, in one pass that holds no inputs."""
        found: list[Column] = []
        for sample in self.start(0):
            self._reader.note(len(found), sample)
            found.append(column(sample[1]))
        if not found:
            raise BadData("start(0) gave no sample")
        return np.asarray(targets_column(found))

    @property
    def blocks(self) -> Tensor:
        """The block that each sample is shuffled within."""
        return self.rows // self.buffer

    def select(self, rows: Sequence[int]) -> Iterated:
        """These samples, in this order, read by an iterator of their own."""
        part = Iterated.__new__(Iterated)
        part.start, part.buffer, part.rows = self.start, self.buffer, self.rows[list(rows)]
        part.targets = self.targets[np.asarray(rows)]
        part._reader = self._reader.another()
        return part

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Sample:
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: list[int]) -> list[Sample]:
        return self._reader.samples(self.rows[rows].tolist())


class Reader:
    """Reads forward, holds the last two blocks, and begins anew at a block's start for what lies before them.

    jumps: also for what lies far ahead, where beginning there is cheap. known: a checksum of each sample read so far.
    """

    def __init__(
        self, start: Start, buffer: int, jumps: bool, known: array[int] | None = None, count: int | None = None
    ) -> None:
        self.start, self.buffer, self.jumps, self.count = start, buffer, jumps, count
        self.known = array("q") if known is None else known
        self._lock = threading.Lock()
        self._begin_at(0)

    def another(self) -> Reader:
        """A reader with a place of its own."""
        return Reader(self.start, self.buffer, self.jumps, self.known, self.count)

    def expect(self, count: int) -> None:
        self.count = count

    def _begin_at(self, position: int) -> None:
        self.position, self.held = position, dict[int, Sample]()
        self._iterator: Iterator[Sample] | None = None

    def samples(self, positions: list[int]) -> list[Sample]:
        """The samples at these positions. They are read in ascending order, whatever order is asked for."""
        with self._lock:
            found = {position: self._sample(position) for position in sorted(set(positions))}
        return [found[position] for position in positions]

    def _sample(self, position: int) -> Sample:
        behind = position not in self.held and position < self.position
        if behind or (self.jumps and position - self.position > 2 * self.buffer):
            self._begin_at(position - position % self.buffer)
        while position not in self.held:
            self._read_one()
        return self.held[position]

    def _read_one(self) -> None:
        if self._iterator is None:
            self._iterator = iter(self.start(self.position))
        try:
            sample = next(self._iterator)
        except StopIteration:
            text = f"the iterator ended at sample {self.position}; there were {self.count}"
            raise BadData(f"{text}; start must give the same samples every time") from None
        self.note(self.position, sample)
        self.held[self.position] = sample
        self.held.pop(self.position - 2 * self.buffer, None)
        self.position += 1

    def note(self, position: int, sample: Sample) -> None:
        """Refuse another sample than was at this position before."""
        mark = _mark(sample)
        if position >= len(self.known):
            self.known.extend([UNKNOWN] * (position + 1 - len(self.known)))
        if self.known[position] == UNKNOWN:
            self.known[position] = mark
        elif self.known[position] != mark:
            text = f"sample {position} is another one than it was in an earlier pass"
            raise BadData(f"{text}; start must give the same samples every time: shuffle with buffer= instead")

    def __getstate__(self) -> dict[str, Any]:
        kept = ("start", "buffer", "jumps", "known", "count")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _skipping(source: Iterable[Sample]) -> Start:
    return lambda first: itertools.islice(iter(source), first, None)


def _mark(sample: Any) -> int:
    """A checksum of one sample's input and target."""
    if not isinstance(sample, tuple | list) or len(sample) != 2:
        raise BadData(f"the iterator gave {type(sample).__name__}; each sample is a pair (input, target)")
    mark = 0
    for leaf in [*flatten(sample[0]).values(), sample[1]]:
        values = leaf.detach().cpu().numpy() if isinstance(leaf, Tensor) else np.asarray(leaf)
        mark = zlib.crc32(values.tobytes(), mark)
    return mark
