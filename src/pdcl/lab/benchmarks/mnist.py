"""`mnist`: handwritten digits of 28×28 pixels, five tasks of two digits."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.lab.benchmarks.benchmark import benchmark
from pdcl.lab.benchmarks.raw.archive import Located, WrongFile
from pdcl.lab.benchmarks.raw.preparing import Arrays, prepared
from pdcl.streams.task import Stream
from pdcl.streams.transform import Transform


def load(data: str | Path | None = None, classes_per_task: int = 2, order_seed: int | None = None) -> Stream:
    """60,000 training and 10,000 test images; pixels are divided by 255 and nothing else."""
    arrays = prepared("mnist", read, data)
    return benchmark("mnist", arrays, range(10), classes_per_task, order_seed, Transform(), {})


def read(located: Located) -> Arrays:
    """The four idx files as arrays: images (n, 1, 28, 28) uint8, labels (n,)."""
    train_x, train_y, test_x, test_y = (read_idx(path) for path in located.paths)
    return {"train_x": train_x[:, None], "train_y": train_y, "test_x": test_x[:, None], "test_y": test_y}


def read_idx(path: Path) -> npt.NDArray[Any]:
    """A gzipped idx file: two zeros, 8 for bytes, how many dimensions, their sizes in big-endian, the values."""
    content = gzip.decompress(path.read_bytes())
    if content[:3] != b"\x00\x00\x08":
        raise WrongFile(f"{path} is no idx file of bytes; it begins with {content[:4]!r}")
    dimensions = content[3]
    shape = np.frombuffer(content, dtype=">u4", count=dimensions, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape)
