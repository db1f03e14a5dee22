"""Replay inside the batch: old samples take the place of new ones, so that a step costs what a plain one does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from pdcl.errors import UsageError

INSIDE = "inside"


def checked_replay(replay: int | str | None, batch: int, world: int) -> int | str:
    """How many samples to replay beside a batch of all ranks, or "inside"."""
    if replay is None:
        return batch * world
    if replay == INSIDE:
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
    for name, usual in (("estimator", "dual"), ("normalise", True)):
        if options.get(name, usual) != usual:
            raise UsageError(f'{name}={options[name]!r} has no effect beside replay="{INSIDE}"; leave one of them out')


def without_last(few: int, batch: int, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A batch without its last `few` samples; at least one is left."""
    rows = {len(each) for each in inputs.values() if isinstance(each, Tensor) and each.dim()}
    if len(rows) != 1 or max(rows) > batch:
        raise UsageError(
            f'replay="{INSIDE}" needs batches with one row for each of at most {batch} samples; this one has tensors '
            f"of {', '.join(map(str, sorted(rows))) or 'no'} rows: give a number of samples to replay beside it"
        )
    kept = max(1, rows.pop() - few)
    return {k: each[:kept] if isinstance(each, Tensor) and each.dim() else each for k, each in inputs.items()}
