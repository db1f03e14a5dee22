"""The embedded default: scikit-learn's 1,797 real handwritten digits of 8×8 pixels, nothing to download."""

from __future__ import annotations

from dataclasses import replace

import torch

from pdcl.streams.class_split import split
from pdcl.streams.task import Stream
from pdcl.streams.transform import Transform

TEST_SHARE = 0.2
SPLIT_SEED = 20240215


def load(classes_per_task: int = 2, order_seed: int | None = None) -> Stream:
    """Five tasks of two digits; 80 % of every digit is training data, by one split that is the same in every run."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    images = torch.as_tensor(x, dtype=torch.uint8).reshape(-1, 1, 8, 8)
    stream = split(
        images,
        y,
        classes_per_task=classes_per_task,
        order_seed=order_seed,
        name="digits",
        transform=Transform(scale=1 / 16),
        test_share=TEST_SHARE,
        seed=SPLIT_SEED,
    )
    return replace(stream, preset="digits", options={"classes_per_task": classes_per_task, "order_seed": order_seed})
