"""Logs of right and wrong answers, made up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def write_rows(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def asked(n: int, error: float = 0.3, seed: int = 0, task: str = "math") -> list[dict]:
    """n items, right or wrong."""
    wrong = np.random.default_rng(seed).random(n) < error
    return [{"id": k, "task": task, "score": int(not w), "prompt": f"question {k}"} for k, w in enumerate(wrong)]


def flipped(rows: list[dict], newly_wrong: int, newly_right: int = 0) -> list[dict]:
    """The same items, with so many that changed."""
    right = [k for k, row in enumerate(rows) if row["score"] == 1][:newly_wrong]
    wrong = [k for k, row in enumerate(rows) if row["score"] == 0][:newly_right]
    return [{**row, "score": 1 - row["score"]} if k in {*right, *wrong} else dict(row) for k, row in enumerate(rows)]
