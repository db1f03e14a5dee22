"""Labels of any kind as head indices, and groups of any kind as integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdcl.streams.checks import BadData
from pdcl.streams.inputs import Column, refuse_sequences


def labels_in(targets: Column, where: str = "y") -> list[Any]:
    """The distinct labels, sorted, as plain Python values (integers, strings, booleans)."""
    flat = _flat(targets, where)
    _refuse_missing(flat, where)
    _refuse_unwritable(flat, where)
    if np.issubdtype(flat.dtype, np.floating) and not np.all(flat == np.floor(flat)):
        fraction = flat[flat != np.floor(flat)][0]
        raise BadData(
            f'{where} holds {fraction}, which is no class label; for numbers to predict say kind="regression"'
        )
    return in_order(_distinct(flat)[0])


def in_order(labels: Iterable[Any]) -> list[Any]:
    """Sorted where the labels can be compared, by type and text where they can't."""
    labels = list(labels)
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def encode(targets: Column, labels: Sequence[Any], where: str = "y", missing: int | None = None) -> Tensor:
    """Each target's position in `labels`, as (n,) int64; other labels become `missing`, or are an error."""
    position = {label: index for index, label in enumerate(labels)}
    values, inverse = _distinct(_flat(targets, where))
    codes = [position.get(value, missing) for value in values]
    if None in codes:
        stranger = values[codes.index(None)]
        raise BadData(f"{where} holds the label {stranger!r}, which is not one of the declared classes {list(labels)}")
    return torch.as_tensor(np.asarray(codes, dtype=np.int64)[inverse])


def _refuse_missing(flat: Column, where: str) -> None:
    """None, NaN and pandas' NA are no labels: they would silently become a class of their own."""
    if flat.dtype == object:
        kinds = ("NoneType", "NAType", "NaTType")
        absent = [type(value).__name__ in kinds or (isinstance(value, float) and value != value) for value in flat]
    else:
        absent = np.isnan(flat).tolist() if flat.dtype.kind == "f" else []
    if any(absent):
        row = absent.index(True)
        raise BadData(f"{where} holds {flat[row]} in row {row}, which is no label; drop such rows or name their class")


def _refuse_unwritable(flat: Column, where: str) -> None:
    """Labels are saved with the model: texts, whole numbers and booleans can be, other things can't."""
    if flat.dtype.kind in "biuf":
        return
    for row, value in enumerate(flat.tolist()):
        if not isinstance(value, str | int | float | bool | np.number | np.bool_):
            raise BadData(
                f"{where} holds {repr(value)[:40]} ({type(value).__name__}) in row {row}; "
                "labels are texts or whole numbers"
            )
        if isinstance(value, str) and not value.isascii() and not _encodable(value):
            raise BadData(
                f"{where} holds {value!r} in row {row}: half a character (a lone surrogate), which no file can hold"
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


def _distinct(flat: Column) -> tuple[list[Any], Column]:
    """Distinct values as plain Python values, and where each target is among them."""
    if flat.dtype == object:
        position: dict[Any, int] = {}
        inverse = np.asarray([position.setdefault(value, len(position)) for value in flat.tolist()], dtype=np.int64)
        return list(position), inverse
    values, inverse = np.unique(flat, return_inverse=True)
    whole = values.astype(np.int64) if np.issubdtype(values.dtype, np.floating) else values
    return whole.tolist(), inverse


class Groups:
    """Groups of several columns as integers that mean the same in all of them."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def encode(self, column: Column | None) -> Tensor | None:
        if column is None:
            return None
        codes = [self.known.setdefault(group, len(self.known)) for group in column.tolist()]
        return torch.tensor(codes, dtype=torch.int64)
