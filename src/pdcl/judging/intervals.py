"""Where a value lies now and on which side of its limit, by kind of limit. An interval misses with `level`.

A value within its limit can be called BROKEN by mistake but not kept, one beyond it kept but not BROKEN. So the bound
that a verdict hangs on has nine tenths of the level (.9) rather than half, the other bound the rest (.1):

    low.9 to high.9                 where the limit lies between these: undecided
    low.9 to min(high.1, limit)     where high.9 is within the limit: kept
    max(low.1, limit) to high.9     where low.9 is beyond it: BROKEN

A value within its limit is left out only if it is below low.9 or above high.1, one beyond it only if it is above
high.9 or below low.1 (Hayter and Hsu 1994): the interval and its verdict are wrong with at most `level` together.

5%      Clopper–Pearson
+2pt    then + [d_low, d_high], the exact bounds of the change on the same samples (`paired`). The reference is
        taken as measured, so this is an interval of the change and not of the error rate itself
0.05    betting, on clipped losses (`clipping`), beside the mean of the losses as they are
1.1x    f · then + betting bounds of the mean of now − f · then on the same samples; so the noise of the reference
        counts. A floor is a second limit, and each of the two gets half of `level`

Samples of one group (a patient, a speaker) are alike, so they are no independent outcomes: a group then counts once,
with the mean of its samples, and all bounds are by betting on the means of groups. Errors of samples that are neither
right nor wrong (shares of the tokens of a text) are judged in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdcl.errors import UsageError
from pdcl.judging import paired, sample_sizes
from pdcl.judging.bounds import Floats, mean_lower, mean_upper, rate_lower, rate_upper
from pdcl.judging.clipping import Span, span_of
from pdcl.limits.limit import Limit

Numbers = npt.NDArray[np.int64]
# How much of the level goes to the bound that a verdict hangs on.
TOWARD = 0.9


class Directed(NamedTuple):
    """An interval, and on which side of the limit all of it lies."""

    low: float
    high: float
    kept: bool
    broken: bool


class Interval(NamedTuple):
    """kept: the limit holds; broken: it does not, each with error probability at most `level`. wants: samples.

    groups: how many there are, None where each sample is one; wants: groups, then. clip: losses count up to here, None
    for error rates. beyond: samples that reach it; `high` is infinite then.
    """

    limit: float
    then: float | None
    now: float
    low: float
    high: float
    kept: bool
    broken: bool
    wants: int | None
    groups: int | None = None
    clip: float | None = None
    beyond: int = 0


def interval(
    limit: Limit,
    then: npt.ArrayLike | None,
    now: npt.ArrayLike,
    level: float,
    clip: float | None,
    groups: npt.ArrayLike | None,
    typical: float,
) -> Interval:
    """The interval of one limit. then, now: an outcome per sample at the reference and now, [n]; wrong is 1.

    groups: who each sample belongs to, [n]. clip: losses count up to here, if the limit is below; None: as usual.
    typical: as in `clip_of`.
    """
    after = _outcomes(limit, now, "now")
    before = None if then is None else _outcomes(limit, then, "then")
    if before is not None and before.shape != after.shape:
        raise UsageError(f"limit {limit.written}: {len(before)} outcomes then, {len(after)} now; give the same samples")
    if limit.compares and before is None:
        raise UsageError(f"limit {limit.written} needs what the same samples gave at the reference: give then")
    numbers = None if groups is None else _numbers(limit, groups, after)
    if limit.unit == "error":
        return _bounded(limit, before, after, level, Span(), numbers)
    if clip is not None and clip > (limit.value or 0.0):
        return _of_losses(limit, before, after, level, Span(clip), numbers)
    span = span_of(limit, len(after) if numbers is None else int(numbers.max()) + 1, typical)
    return _of_losses(limit, before, after, level, span, numbers)


def _of_losses(
    limit: Limit, before: Floats | None, after: Floats, level: float, span: Span, numbers: Numbers | None
) -> Interval:
    """Bounds of the clipped losses; then, now and limit of the losses as they are. What is no number counts as `clip`.

    Where losses of `then` are clipped, 1.1x of them is more than bounds say: what lies beyond is added as measured.
    """
    clip = span.top
    after = np.where(np.isfinite(after), after, clip)
    before = None if before is None else np.where(np.isfinite(before), before, clip)
    cut, then_is_whole = (None, True) if before is None else (np.minimum(before, clip), bool((before <= clip).all()))
    found = _bounded(limit, cut, np.minimum(after, clip), level, span, numbers)
    then, now = None if before is None else _mean(before, numbers), _mean(after, numbers)
    allowed, beyond = limit.of(then), int((after >= clip).sum())
    assert allowed is not None
    broken = found.broken and (then_is_whole or found.low > allowed)
    found = found._replace(limit=allowed, then=then, now=now, broken=broken, clip=clip)
    if not beyond:
        return found
    # More samples can only show that the clipped mean is above the limit.
    wants = found.wants if _mean(np.minimum(after, clip), numbers) > allowed else None
    return found._replace(high=math.inf, kept=False, wants=wants, beyond=beyond)


def _bounded(
    limit: Limit, before: Floats | None, after: Floats, level: float, span: Span, numbers: Numbers | None
) -> Interval:
    """The interval from outcomes in [0, span.top]."""
    if numbers is None:
        counts = _right_or_wrong(after) and (before is None or _right_or_wrong(before))
        return _independent(limit, before, after, level, span, counts)
    before, after = None if before is None else _means(before, numbers), _means(after, numbers)
    return _independent(limit, before, after, level, span, counts=False)._replace(groups=len(after))


def _independent(
    limit: Limit, before: Floats | None, after: Floats, level: float, span: Span, counts: bool
) -> Interval:
    """The interval from independent outcomes. counts: they are right or wrong, and no means."""
    if not limit.compares:
        return _absolute(limit, before, after, level, span, counts)
    assert before is not None
    if limit.rise is None:
        return _ratio(limit, before, after, level, span)
    return (_rise if counts else _mean_rise)(limit.rise, before, after, level)


def _numbers(limit: Limit, groups: npt.ArrayLike, after: Floats) -> Numbers | None:
    """The number of each sample's group, from 0 on; None where every sample is a group of its own."""
    given = np.asarray(groups)
    if given.shape != after.shape:
        raise UsageError(f"limit {limit.written}: {len(given)} groups for {len(after)} outcomes; give one per sample")
    _, numbers = np.unique(given, return_inverse=True)
    return None if int(numbers.max()) + 1 == len(after) else numbers


def _means(values: Floats, numbers: Numbers) -> Floats:
    return np.asarray(np.bincount(numbers, weights=values) / np.bincount(numbers))


def _mean(values: Floats, numbers: Numbers | None) -> float:
    """The mean of all samples, or of groups that count the same."""
    return float((values if numbers is None else _means(values, numbers)).mean())


def _right_or_wrong(outcomes: Floats) -> bool:
    return bool(((outcomes == 0) | (outcomes == 1)).all())


def _outcomes(limit: Limit, values: npt.ArrayLike, what: str) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or not len(found):
        raise UsageError(f"limit {limit.written}: {what} must be one outcome per sample, but has shape {found.shape}")
    if limit.unit == "error":
        if not ((found >= 0) & (found <= 1)).all():
            raise UsageError(f"limit {limit.written} is an error rate: outcomes {what} must be 0 (right) to 1 (wrong)")
        return found
    if (found < 0).any():
        raise UsageError(f"limit {limit.written}: a loss of {found.min():.4g} is negative; losses start at 0")
    return found


def _directed(bounds: Callable[[float], tuple[float, float]], limit: float, level: float) -> Directed:
    """The interval whose verdict is the sharpest. bounds: low and high where each side misses with so much."""
    low, high = bounds(TOWARD * level)
    kept, broken = high <= limit, low > limit
    if kept or broken:
        low_beyond, high_beyond = bounds((1 - TOWARD) * level)
        low, high = (low, min(high_beyond, limit)) if kept else (max(low_beyond, limit), high)
    return Directed(low, high, kept, broken)


def _absolute(limit: Limit, before: Floats | None, after: Floats, level: float, span: Span, counts: bool) -> Interval:
    assert limit.value is not None
    value, then, now = limit.value, None if before is None else float(before.mean()), float(after.mean())
    if limit.unit == "error" and counts:
        wrong, n = int(after.sum()), len(after)

        def bounds(side: float) -> tuple[float, float]:
            return float(rate_lower(wrong, n, side)), float(rate_upper(wrong, n, side))

        found = _directed(bounds, value, level)
        wants = sample_sizes.samples_needed_for_rate(value, now, level=TOWARD * level)
    else:
        found = _directed(lambda side: _mean_bounds(after, span.top, side), value, level)
        wants = _wants(after, value, span, TOWARD * level)
    return Interval(value, then, now, *found, wants)


def _rise(rise: float, before: Floats, after: Floats, level: float) -> Interval:
    n, then, now = len(after), float(before.mean()), float(after.mean())
    worse, better = int(((after == 1) & (before == 0)).sum()), int(((after == 0) & (before == 1)).sum())
    found = _directed(
        lambda side: (paired.change_lower(worse, better, n, side), paired.change_upper(worse, better, n, side)),
        rise, level,
    )  # fmt: skip
    # Half a change more than was seen: none at all among few samples doesn't mean that none would change.
    changed = (worse + better + 0.5) / (n + 1)
    wants = sample_sizes.samples_needed(100 * rise, changed, level=TOWARD * level, change=now - then)
    return _changed(rise, then, now, found, wants)


def _mean_rise(rise: float, before: Floats, after: Floats, level: float) -> Interval:
    """then + betting bounds of the mean change, which lies in [−1, 1]."""
    change, then, now = after - before, float(before.mean()), float(after.mean())
    found = _directed(lambda side: _mean_bounds(1 + change, 2.0, side, -1.0), rise, level)
    return _changed(rise, then, now, found, _wants(1 + change, 1 + rise, Span(2.0), TOWARD * level))


def _changed(rise: float, then: float, now: float, found: Directed, wants: int | None) -> Interval:
    bottom, top = max(0.0, then + found.low), min(1.0, then + found.high)
    return Interval(min(1.0, then + rise), then, now, bottom, top, found.kept, found.broken, wants)


def _ratio(limit: Limit, before: Floats, after: Floats, level: float, span: Span) -> Interval:
    assert limit.factor is not None
    top = span.top
    factor, floor, then, now = limit.factor, limit.value or 0.0, float(before.mean()), float(after.mean())
    excess, width = after - factor * before, (1 + factor) * top
    shift = factor * top
    over = _directed(lambda side: _mean_bounds(excess + shift, width, side, -shift), 0.0, level / 2)
    own = _directed(lambda side: _mean_bounds(after, top, side), floor, level / 2)
    by_factor = factor * then >= floor
    low, high = [max(0.0, factor * then + bound) for bound in over[:2]] if by_factor else own[:2]
    kept = over.kept if by_factor else own.kept
    judged = (excess + shift, shift, Span(width, span.widens)) if by_factor else (after, floor, span)
    wants = _wants(*judged, TOWARD * level / 2)
    allowed = limit.of(then)
    assert allowed is not None
    return Interval(allowed, then, now, low, min(high, top), kept, over.broken and own.broken, wants)


def _wants(values: Floats, limit: float, span: Span, level: float) -> int | None:
    """How many like these decide whether their mean is within the limit."""
    mean, deviation = float(values.mean()) / span.top, float(values.std()) / span.top
    return sample_sizes.samples_needed_for_mean(limit / span.top, mean, deviation, level=level, widens=span.widens)


def _mean_bounds(values: Floats, scale: float, side: float, shift: float = 0.0) -> tuple[float, float]:
    """Betting bounds of the mean of values in [0, scale], in an order that can't follow the values, + shift."""
    mixed = values[np.random.default_rng(0).permutation(len(values))] / scale
    return mean_lower(mixed, side) * scale + shift, mean_upper(mixed, side) * scale + shift
