"""Data that limits can be stated on: Gaussian classes that overlap, and handwritten digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

Drawn = Callable[..., tuple[Any, Any]]


@pytest.fixture(scope="session")
def digits() -> tuple[Any, Any]:
    """1,797 digits, 64 numbers each."""
    x, y = load_digits(return_X_y=True)
    return (x / 16).astype(np.float32), y


@pytest.fixture(scope="session")
def drawn() -> Drawn:
    """Samples of Gaussian classes in a plane of so many dimensions, near enough to be taken for one another."""

    def draw(classes: list[int], each: int, seed: int, dim: int = 6, distance: float = 2.2) -> tuple[Any, Any]:
        centres = distance * np.random.default_rng(7).normal(size=(12, dim)) / 1.5
        random = np.random.default_rng(seed)
        y = np.repeat(classes, each)
        return (centres[y] + random.normal(size=(len(y), dim))).astype(np.float32), y

    return draw
