"""Where tasks come from: splits of any data set, the paper's benchmarks, an embedded default.

Names are imported when they are asked for, so that listing the streams costs no import of torch.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "BadData": "checks",
    "CodedColumn": "columns",
    "Data": "data",
    "DatasetData": "data",
    "Spec": "task",
    "Stream": "task",
    "Task": "task",
    "TensorData": "data",
    "Transform": "transform",
    "UnknownStream": "catalog",
    "check_stream": "checks",
    "check_task": "checks",
    "everything": "data",
    "from_tasks": "task_list",
    "hold_out": "held_out",
    "load": "catalog",
    "register_stream": "catalog",
    "split": "class_split",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
