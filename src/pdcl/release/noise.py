"""How often outcomes flip by themselves: the same model asked twice.

Of the items that all three logs have, |after − before| − |rerun − before| is the change beyond that; its bounds are
those of any paired change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pdcl.errors import UsageError
from pdcl.logs.log import Log
from pdcl.release.changes import change_of
from pdcl.release.pairing import Compared, check_measures

LEVEL = 0.025


def noise_floor(case: Compared, rerun: Log) -> dict[str, Any]:
    """Shares of items that change, with 95 % bounds of the difference; `text` says it."""
    there = np.array(
        [key in rerun.items and rerun.items[key].prompt == case.before.items[key].prompt for key in case.keys]
    )
    if not there.any():
        raise UsageError("rerun shares no item with the other logs; it must be the same model on the same items")
    check_measures(
        case.before, rerun, [key for key, here in zip(case.keys, there, strict=True) if here], ("before", "rerun")
    )
    again = np.array([1 - rerun.items[key].score for key, here in zip(case.keys, there, strict=True) if here])
    by_itself, moved = np.abs(again - case.old[there]), np.abs(case.new[there] - case.old[there])
    beyond = change_of(moved, by_itself, None)
    low, high = beyond.lower(LEVEL), beyond.upper(LEVEL)
    count, alone, seen = len(again), float(by_itself.mean()), float(moved.mean())
    drift = change_of(again, case.old[there], None)
    missing = "" if there.all() else f" ({len(case.keys) - count:,} items have no rerun)"
    text = (
        f"Noise floor: asked again, the old model changes {100 * alone:.1f} % of {count:,} items{missing} by itself, "
        f"and {100 * seen:.1f} % differ after: {100 * (seen - alone):+.1f} points beyond noise "
        f"(95 %: {100 * low:+.1f} to {100 * high:+.1f}); its own error moves by {100 * drift.mean:+.1f} points."
    )
    return {
        "items": count,
        "rerun": alone,
        "after": seen,
        "beyond": seen - alone,
        "low": low,
        "high": high,
        "text": text,
    }
