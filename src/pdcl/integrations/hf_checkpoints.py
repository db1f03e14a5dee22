"""Duals, guards and the generator inside a Trainer's checkpoint: written whole or not at all."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import torch

from pdcl.errors import UsageError
from pdcl.storage.disk import write_whole

STATE = "pdcl.pt"
# Trainer writes this last.
LAST = "trainer_state.json"


def write_state(checkpoint: str, state: dict[str, Any]) -> None:
    content = io.BytesIO()
    torch.save(state, content)
    write_whole(Path(checkpoint) / STATE, content.getvalue())


def read_state(checkpoint: str) -> Any:
    place = Path(checkpoint) / STATE
    if not place.is_file():
        raise UsageError(f"{checkpoint} has no {STATE}: it was saved without limits, or with save_only_model")
    return torch.load(place, weights_only=True)


def last_whole(directory: str) -> str | None:
    """The newest checkpoint that was saved to its end: a Trainer that is killed while it saves leaves half of one."""
    found = {int(place.name[11:]): place for place in Path(directory).glob("checkpoint-*") if place.name[11:].isdigit()}
    return next((str(found[step]) for step in sorted(found, reverse=True) if _is_whole(found[step])), None)


def _is_whole(checkpoint: Path) -> bool:
    try:
        json.loads((checkpoint / LAST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
