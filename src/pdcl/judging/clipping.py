"""Where losses are clipped, so that their mean has bounds.

No finite number of samples bounds the mean of unbounded losses, so bounds are those of clipped ones. Their mean is at
most the true one, so "above the limit" carries over to the losses themselves. "At most" does not: it is said only where
no sample reaches the clip, and where one does there is no upper bound.

    clip = max(ln 100, L · max(10, √n))        L: the limit, n: the number of samples

A wide clip needs more samples for the same bound. But sooner or later some sample reaches a narrow one, so that more
samples would never show a limit to be kept: hence it widens with n, slowly enough for the bound to shrink.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pdcl.limits.limit import Limit

# −ln 0.01: the right class got 1 %.
LEAST = math.log(100)
TIMES = 10
# Sums of squares of clipped losses must stay finite, for limits that are large to mean none.
MOST = 1e150


class Span(NamedTuple):
    """Outcomes count from 0 to `top`. widens: with more samples than so many, `top` is larger, as is their root."""

    top: float = 1.0
    widens: float = math.inf

    def at(self, samples: int) -> float:
        """`top` for so many samples."""
        return self.top * max(1.0, math.sqrt(samples / self.widens))


def span_of(limit: Limit, samples: int, typical: float = 0.0) -> Span:
    """The span that ends at the clip, where nobody stated one.

    >>> one = span_of(Limit("1.0", "loss", value=1.0), 50)
    >>> one.top, one.at(400)
    (10.0, 20.0)
    """
    clip, allowed = clip_of(limit, samples, typical), _allowed(limit, typical)
    times = max(clip / allowed, TIMES) if allowed else math.inf
    return Span(clip, times * times)


def clip_of(limit: Limit, samples: int, typical: float = 0.0) -> float:
    """The clip of a limit in loss. typical: the loss at the reference, the scale of a limit like 1.1x.

    It must come from other samples than those that judge: bounds hold for a clip that was chosen without these.

    >>> six = Limit("6.0", "loss", value=6.0)
    >>> clip_of(six, 50), clip_of(six, 400), clip_of(Limit("1.5x", "loss", factor=1.5), 50, typical=4.0)
    (60.0, 120.0, 60.0)
    """
    return min(max(LEAST, _allowed(limit, typical) * max(TIMES, math.sqrt(samples))), MOST)


def _allowed(limit: Limit, typical: float) -> float:
    return max(limit.value or 0.0, (limit.factor or 0.0) * typical)
