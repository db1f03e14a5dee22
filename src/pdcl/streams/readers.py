"""Threads that read samples: several for one batch, and one that reads ahead of whoever learns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from torch import Tensor

from pdcl.trees import Tree

if TYPE_CHECKING:
    from pdcl.streams.data import Data

Asked = TypeVar("Asked")
Found = TypeVar("Found")
AHEAD = 4


class Readers:
    """`workers` threads that live as long as the data they read; made when they are first needed."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ThreadPoolExecutor | None = None

    def map(self, read: Callable[[Asked], Found], asked: list[Asked]) -> list[Found]:
        """read(each) for each, in order."""
        if self.workers < 2 or len(asked) < 2:
            return [read(each) for each in asked]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, "pdcl-reader")
        return list(self._pool.map(read, asked))

    def __getstate__(self) -> dict[str, Any]:
        return {"workers": self.workers, "_pool": None}


def read_ahead(read: Callable[[Asked], Found], asked: Iterable[Asked], ahead: int = AHEAD) -> Iterator[Found]:
    """read(each) for each, in order, by one thread that is up to `ahead` results ahead of who takes them.

    >>> list(read_ahead(abs, [-1, -2, -3]))
    [1, 2, 3]
    """
    waiting: deque[Future[Found]] = deque()
    pool = ThreadPoolExecutor(1, "pdcl-read-ahead")
    try:
        for each in asked:
            waiting.append(pool.submit(read, each))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def fetched(data: Data, parts: Sequence[Tensor], ahead: int = AHEAD) -> Iterator[tuple[Tree, Tensor]]:
    """Inputs and targets of these positions, part by part; read ahead where reading may wait."""
    return read_ahead(data.fetch, parts, ahead) if data.slow else map(data.fetch, parts)
