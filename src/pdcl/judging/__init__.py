"""Promises: what a stated limit allows, what was measured, and whether it was kept, with exact confidence bounds.

Numbers and counts alone: nothing here knows networks, memory or files. A limit has a unit, an error rate or a loss, and
is absolute ("5%", 0.05) or compares with what the same samples gave before ("+2pt": two points more; "1.1x").

Names are imported when they are asked for: the bounds need SciPy, and users without limits should not wait for it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pdcl.judging.paired import change_above as change_above
    from pdcl.judging.paired import change_lower as change_lower
    from pdcl.judging.paired import change_upper as change_upper
    from pdcl.judging.promise import LimitBroken as LimitBroken
    from pdcl.judging.promise import Promise as Promise
    from pdcl.judging.sample_sizes import samples_needed as samples_needed
    from pdcl.judging.sample_sizes import samples_needed_for_mean as samples_needed_for_mean
    from pdcl.judging.sample_sizes import samples_needed_for_rate as samples_needed_for_rate
    from pdcl.judging.split import Split as Split
    from pdcl.judging.split import split_errors as split_errors
    from pdcl.judging.table import Promises as Promises
    from pdcl.judging.verdicts import Question as Question
    from pdcl.judging.verdicts import half_way as half_way
    from pdcl.judging.verdicts import judge as judge
    from pdcl.judging.verdicts import judge_new as judge_new
    from pdcl.judging.verdicts import judge_task as judge_task

_HOMES = {
    "LimitBroken": "promise",
    "Promise": "promise",
    "Promises": "table",
    "Question": "verdicts",
    "Split": "split",
    "change_above": "paired",
    "change_lower": "paired",
    "change_upper": "paired",
    "half_way": "verdicts",
    "judge": "verdicts",
    "judge_new": "verdicts",
    "judge_task": "verdicts",
    "samples_needed": "sample_sizes",
    "samples_needed_for_mean": "sample_sizes",
    "samples_needed_for_rate": "sample_sizes",
    "split_errors": "split",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
