from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pdcl.lab.reports.thinning import Curve, columns


@given(st.integers(1, 5000), st.integers(2, 50), st.integers(1, 7))
def test_a_curve_stays_bounded_and_keeps_its_order_and_its_end(count, limit, segments):
    curve = Curve(limit)
    for x in range(count):
        curve.add(x * segments // count, x, [float(x)])
    kept = curve.kept()
    assert len(kept) <= 2 * limit + segments + 1
    assert [row[1] for row in kept] == sorted(row[1] for row in kept)
    assert kept[-1][1] == count - 1


def test_a_thinned_loss_keeps_its_mean():
    curve = Curve(16, mean=True)
    for x in range(1024):
        curve.add(0, x, [float(x % 2)])
    assert {row[2][0] for row in curve.kept()} == {0.5}


def test_segments_are_drawn_apart_and_short_rows_leave_gaps():
    curve = Curve(10)
    curve.add(1, 1, [0.5])
    curve.add(2, 2, [0.25, 1.0])
    x, (first, second) = columns(curve)
    assert x == [1, None, 2]
    assert first == [0.5, None, 0.25]
    assert second == [None, None, 1.0]
