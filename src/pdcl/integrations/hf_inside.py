"""Replay inside the batch: old samples take the place of new ones, so that a step costs what a plain one does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from pdcl.errors import UsageError

INSIDE = "inside"


HAS_NO_PLACE = (("estimator", "dual"), ("normalise", True))


def usual_replay(options: Mapping[str, Any], batch: int, world: int) -> int | str:
    """Inside, which costs no tokens, where a batch has a place and no option says otherwise."""
    fits = batch > 1 and all(options.get(name, usual) == usual for name, usual in HAS_NO_PLACE)
    return INSIDE if fits else batch * world


def checked_replay(replay: int | str | None, options: Mapping[str, Any], batch: int, world: int) -> int | str:
    """How many samples to replay beside a batch of all ranks, or "inside"."""
    if replay is None:
        return usual_replay(options, batch, world)
    if replay == INSIDE:
        check_inside(options, batch)
        return INSIDE
    if not isinstance(replay, int):
        raise UsageError(f'replay={replay!r} must be a number of samples or "{INSIDE}"')
    if replay < 1:
        raise UsageError(f"replay={replay} must be at least 1: without replay no limit is pursued")
    return replay


def check_inside(options: Mapping[str, Any], batch: int) -> None:
    """UsageError where a batch has no place for old samples, or an option says otherwise."""
    if batch < 2:
        raise UsageError(
            f'replay="{INSIDE}" puts old samples into a batch of per_device_train_batch_size={batch}, which has no '
            "place: take 2 or more, or a number of samples to replay beside it"
        )
    for name, usual in HAS_NO_PLACE:
        if options.get(name, usual) != usual:
            raise UsageError(f'{name}={options[name]!r} has no effect beside replay="{INSIDE}"; leave one of them out')


def can_be_cut(batch: int, inputs: Mapping[str, Any]) -> bool:
    """Whether a batch has one row for each of at most `batch` samples."""
    rows = _rows(inputs)
    return len(rows) == 1 and max(rows) <= batch


def _rows(inputs: Mapping[str, Any]) -> set[int]:
    return {len(each) for each in inputs.values() if isinstance(each, Tensor) and each.dim()}


def without_last(few: int, batch: int, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A batch without its last `few` samples; at least one is left."""
    rows = _rows(inputs)
    if not can_be_cut(batch, inputs):
        raise UsageError(
            f'replay="{INSIDE}" needs batches with one row for each of at most {batch} samples; this one has tensors '
            f"of {', '.join(map(str, sorted(rows))) or 'no'} rows: give a number of samples to replay beside it"
        )
    kept = max(1, rows.pop() - few)
    return {k: each[:kept] if isinstance(each, Tensor) and each.dim() else each for k, each in inputs.items()}
