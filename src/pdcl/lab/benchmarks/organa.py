"""`organa`: organs in abdominal CT, axial crops of 28×28 pixels, five tasks of two organs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pdcl.lab.benchmarks.benchmark import benchmark
from pdcl.lab.benchmarks.raw.archive import Located
from pdcl.lab.benchmarks.raw.preparing import Arrays, prepared
from pdcl.streams.task import Stream
from pdcl.streams.transform import Transform

ORGANS = (
    "bladder", "femur-left", "femur-right", "heart", "kidney-left", "kidney-right", "liver", "lung-left", "lung-right",
    "pancreas",
)  # fmt: skip
SPLITS = ("train", "val", "test")


def load(data: str | Path | None = None, classes_per_task: int = 2, order_seed: int | None = None) -> Stream:
    """The official training and test data of OrganAMNIST without its eleventh class, the spleen, for tasks of two."""
    arrays = prepared("organa", read, data)
    return benchmark("organa", arrays, ORGANS, classes_per_task, order_seed, Transform(mean=(0.5,), std=(0.5,)), {})


def read(located: Located) -> Arrays:
    """The three official splits as arrays: images (n, 1, 28, 28) uint8, labels (n,)."""
    with np.load(located.paths[0], allow_pickle=False) as archive:
        images = {f"{split}_x": archive[f"{split}_images"][:, None] for split in SPLITS}
        labels = {f"{split}_y": archive[f"{split}_labels"][:, 0] for split in SPLITS}
    return {**images, **labels}
