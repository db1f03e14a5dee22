"""What memory held at the end of a run: its samples by task, and a map of how the network sees them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdcl.errors import RecordError
from pdcl.lab.reports.pictures import is_image, outlines, strip
from pdcl.lab.reports.tail import opened
from pdcl.lab.reports.thinning import rounded

FILE = "memory.safetensors"
LARGEST = 512 * 2**20
MAPPED = 250
Array = NDArray[Any]


@dataclass(frozen=True)
class Holdings:
    """One row per stored sample."""

    x: Array
    y: Array
    task: Array
    dual: Array
    features: Array | None


def read_holdings(run: Path, root: Path | None = None) -> Holdings | None:
    """The snapshot of a run; None where it has none, or holds inputs of several parts, which have no picture.

    A damaged one is a RecordError.
    """
    from safetensors.numpy import load

    path = run / FILE
    try:
        with opened(path, root) as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{path} can't be read: {error}", path) from error
    if len(content) > LARGEST:
        raise RecordError(f"{path} is larger than {LARGEST >> 20} MB", path)
    try:
        columns = load(content)
        return None if any(name.startswith(("x.", "x:", "y:")) for name in columns) else _checked(columns)
    except Exception as error:
        raise RecordError(f"{path} is no snapshot of a memory: {error}", path) from error


def _checked(columns: dict[str, Array]) -> Holdings:
    x, task = columns["x"], columns["task"].astype(np.int64)
    dual = np.nan_to_num(columns["dual"].astype(np.float64)) if "dual" in columns else np.zeros(len(x))
    features = columns.get("features")
    held = Holdings(x, columns["y"], task, dual, None if features is None else features.reshape(len(x), -1))
    if not (len(held.y) == len(task) == len(dual) == len(x)) or task.min(initial=0) < 0:
        raise ValueError("its columns don't belong together")
    return held


def samples(held: Holdings, each: int) -> dict[str, Any]:
    """Up to `each` samples of every task, those with the highest dual first."""
    kind = "image" if is_image(held.x) else "signal"
    tasks = []
    for task in np.unique(held.task):
        rows = np.flatnonzero(held.task == task)
        best = rows[np.argsort(-held.dual[rows], kind="stable")][:each]
        entry: dict[str, Any] = {"task": int(task), "count": len(rows), "y": _labels(held.y[best])}
        entry["dual"] = [rounded(float(value)) for value in held.dual[best]]
        entry |= {"strip": strip(held.x[best])} if kind == "image" else {"outlines": outlines(held.x[best])}
        tasks.append(entry)
    return {"kind": kind, "tasks": tasks, "priced": bool((held.dual > 0).any())}


def chart(held: Holdings, near: bool = True) -> dict[str, Any] | None:
    """Two coordinates per sample from the network's features: t-SNE, or principal components if not `near`."""
    from threadpoolctl import threadpool_limits

    if held.features is None or len(held.features) < 5:
        return None
    rows = _spread(held)
    points = np.nan_to_num(held.features[rows].astype(np.float64))
    # A few hundred points are no work for many threads, which on a busy machine wait for each other.
    with threadpool_limits(1):
        place = _neighbours(points) if near else _components(points)
    return {
        "method": "t-SNE" if near else "principal components",
        "x": [rounded(float(value)) for value in place[:, 0]],
        "y": [rounded(float(value)) for value in place[:, 1]],
        "task": held.task[rows].tolist(),
        "label": _labels(held.y[rows]),
        "dual": [rounded(float(value)) for value in held.dual[rows]],
        "of": len(held.task),
    }


def _spread(held: Holdings) -> Array:
    """Rows for a map: all of a small memory, an evenly spaced share of a large one."""
    count = len(held.task)
    order = np.argsort(held.task, kind="stable")
    return order if count <= MAPPED else order[np.linspace(0, count - 1, MAPPED).astype(int)]


def _neighbours(points: Array) -> Array:
    from sklearn.manifold import TSNE

    near = min(30.0, (len(points) - 1) / 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Array = TSNE(perplexity=near, init="pca", random_state=0, max_iter=500).fit_transform(points)
    return found if np.isfinite(found).all() else _components(points)


def _components(points: Array) -> Array:
    centred = points - points.mean(0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    found: Array = np.zeros((len(points), 2))
    found[:, : min(2, len(s))] = (u * s)[:, :2]
    return found


def _labels(y: Array) -> list[Any]:
    """Class indices as they are; anything else has no short name."""
    return y.tolist() if y.ndim == 1 and np.issubdtype(y.dtype, np.integer) else [None] * len(y)
