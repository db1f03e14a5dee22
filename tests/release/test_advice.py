"""What the gate says of memory must not contradict what it says of audit data."""

from __future__ import annotations

import pytest

from pdcl.release.advice import Stored, _memory
from pdcl.release.deciding import Judged


@pytest.mark.parametrize(
    ("on_audit", "on_stored", "said"),
    [
        (0.20, 0.02, "memorised"),
        (0.20, 0.12, "not kept even there"),
        (0.08, 0.12, None),
        (0.15, 0.09, None),
    ],
)
def test_stored_samples_over_a_limit_are_no_advice_where_audit_data_is_within_it(
    on_audit: float, on_stored: float, said: str | None
) -> None:
    row = Judged("error", "a", 0.1, on_audit, 100, 100, 0.0, 0.3, 0.5, 0.5, "undecided", False, 0.3, 500, "exact")
    (line,) = _memory(row, Stored(40, on_stored, 1.0))
    assert "memory holds 40 of its samples" in line
    assert [each for each in ("memorised", "not kept even there") if each in line] == ([said] if said else [])
