"""Labels of any kind as head indices, and groups of any kind as integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdcl.given import few
from pdcl.streams.checks import BadData
from pdcl.streams.inputs import Column, objects, refuse_sequences

LABELS = (str, int, float, bool, np.integer, np.floating, np.bool_)
# Fewer samples of each of so many labels are rather numbers than classes.
MANY, FEW_EACH = 20, 5
MISSING = ("NoneType", "NAType", "NaTType")


def labels_in(targets: Column, where: str = "y") -> list[Any]:
    """The distinct labels, sorted, as plain Python values (integers, strings, booleans)."""
    return in_order(distinct(targets, where)[0])


def like_numbers(targets: Column) -> str | None:
    """A sentence where class labels look like numbers to predict: many, few samples of each, and no count 0, 1, 2 …"""
    labels = labels_in(targets)
    whole = all(isinstance(label, int) and not isinstance(label, bool) for label in labels)
    if not whole or len(labels) < MANY or len(labels) * FEW_EACH <= len(targets):
        return None
    if labels[-1] - labels[0] == len(labels) - 1:
        return None
    return (
        f"y holds {len(labels)} different whole numbers in {len(targets)} samples ({few(labels, 3)}): each is learned "
        'as a class of its own. If they are numbers to predict, say kind="regression"'
    )


def in_order(labels: Iterable[Any]) -> list[Any]:
    """Sorted where the labels can be compared, by type and text where they can't."""
    labels = list(labels)
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def encode(targets: Column, labels: Sequence[Any], where: str = "y", missing: int | None = None) -> Tensor:
    """Each target's position in `labels`, as (n,) int64; other labels become `missing`, or are an error."""
    position = {_key(label): index for index, label in enumerate(labels)}
    values, inverse = distinct(targets, where)
    strangers = unknown(values, labels, where)
    if strangers and missing is None:
        raise BadData(f"{where} holds the label {strangers[0]!r}, which is not one of the known classes: {few(labels)}")
    codes = [position.get(_key(value), missing) for value in values]
    return torch.as_tensor(np.asarray(codes, dtype=np.int64)[inverse])


def unknown(labels: Iterable[Any], known: Iterable[Any], where: str = "y") -> list[Any]:
    """Those that aren't known. BadData for one that is known in another type: "0" after 0, True after 1."""
    known = list(known)
    keys = set(map(_key, known))
    strangers = [label for label in labels if _key(label) not in keys]
    _check_apart(known, strangers, where)
    return strangers


def declared(labels: Iterable[Any], where: str = "labels") -> tuple[Any, ...]:
    """Labels that a user lists, in this order. BadData for what is no label, and for one that comes twice."""
    given = list(labels)
    names, places = distinct(objects(given), where)
    if len(names) < len(given):
        twice = next(label for place, label in enumerate(given) if places[place] in places[:place])
        raise BadData(f"{where} names {twice!r} twice; each output has a label of its own")
    return tuple(names)


def distinct(targets: Column, where: str = "y") -> tuple[list[Any], Column]:
    """The labels of a column, each once, as plain Python values, and which of them each target is.

    Every label comes in here, to be learned or to be judged by. What is no label is refused: rounded or cast, it would
    silently be another one.
    """
    flat = _flat(targets, where)
    held, first, inverse = _raw(flat, where)
    position: dict[Any, int] = {}
    plain = [_plain(value, int(row), where) for value, row in zip(held, first, strict=True)]
    codes = [position.setdefault(_key(label), len(position)) for label in plain]
    found = [label for _, label in position]
    for one, other in combinations(_by_type(found), 2):
        _check_apart(one, other, where)
    return found, np.asarray(codes, dtype=np.int64)[inverse]


def _raw(flat: Column, where: str) -> tuple[list[Any], Sequence[int], Column]:
    """Distinct values as the column has them, the row where each comes first, and which of them each target is."""
    if flat.dtype.kind not in "biufUO" and len(flat):
        _plain(flat[:1].tolist()[0], 0, where)
    if flat.dtype.kind != "O":
        values, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
        return values.tolist(), first.tolist(), inverse
    found: dict[Any, int] = {}
    rows: list[int] = []
    places: list[int] = []
    for row, value in enumerate(flat.tolist()):
        if not isinstance(value, LABELS):
            _plain(value, row, where)
        place = found.setdefault((type(value), value), len(found))
        rows += [row] if place == len(rows) else []
        places.append(place)
    return [value for _, value in found], rows, np.asarray(places, dtype=np.int64)


def _plain(value: Any, row: int, where: str) -> Any:
    """One label as text, whole number or boolean: what can be saved with the model, and compared."""
    missing = type(value).__name__ in MISSING
    # NumPy counts durations among the whole numbers.
    if not missing and (isinstance(value, np.timedelta64) or not isinstance(value, LABELS)):
        raise BadData(
            f"{where} holds {repr(value)[:40]} ({type(value).__name__}) in row {row}; labels are texts or whole numbers"
        )
    if missing or value != value:
        raise BadData(f"{where} holds {value} in row {row}, which is no label; drop such rows or name their class")
    if isinstance(value, str):
        if not _encodable(value):
            raise BadData(
                f"{where} holds {value!r} in row {row}: half a character (a lone surrogate), which no file can hold"
            )
        return str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if value in (math.inf, -math.inf) or value != int(value):
        raise BadData(f'{where} holds {value}, which is no class label; for numbers to predict say kind="regression"')
    return int(value)


def _key(label: Any) -> tuple[bool, Any]:
    """Python takes True for 1."""
    return isinstance(label, bool), label


def _by_type(labels: Iterable[Any]) -> list[list[Any]]:
    found: dict[type, list[Any]] = {}
    for label in labels:
        found.setdefault(type(label), []).append(label)
    return list(found.values())


def _check_apart(known: Iterable[Any], new: Iterable[Any], where: str) -> None:
    """Raise BadData for a new label that is written like a known one of another type, and for truth beside numbers."""
    written = {str(label): label for label in known}
    numbers = {isinstance(label, bool): label for label in written.values() if not isinstance(label, str)}
    for label in new:
        old = written.get(str(label))
        if old is None and not isinstance(label, str):
            old = numbers.get(not isinstance(label, bool))
        if old is not None:
            raise BadData(
                f"{where} holds the label {label!r} ({type(label).__name__}), and {old!r} ({type(old).__name__}) is "
                "known: write the same class in the same type"
            )


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _flat(targets: Column, where: str) -> Column:
    refuse_sequences(targets, where)
    if targets.ndim == 2 and targets.shape[1] == 1:
        return targets[:, 0]
    if targets.ndim != 1:
        hint = 'kind="multilabel" takes a 0/1 matrix, kind="tokens" a class for every token or pixel'
        raise BadData(f"{where} has shape {targets.shape}; class labels are one per sample ({hint})")
    return targets


class Groups:
    """Groups of several columns as integers that mean the same in all of them."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def encode(self, column: Column | None) -> Tensor | None:
        if column is None:
            return None
        codes = [self.known.setdefault(group, len(self.known)) for group in column.tolist()]
        return torch.tensor(codes, dtype=torch.int64)
