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

from pdcl.limits.limit import Limit

# −ln 0.01: the right class got 1 %.
LEAST = math.log(100)
TIMES = 10
# Sums of squares of clipped losses must stay finite, for limits that are large to mean none.
MOST = 1e150


def clip_of(limit: Limit, samples: int, typical: float = 0.0) -> float:
    """The clip of a limit in loss. typical: the loss at the reference, the scale of a limit like 1.1x.

    It must come from other samples than those that judge: bounds hold for a clip that was chosen without these.

    >>> six = Limit("6.0", "loss", value=6.0)
    >>> clip_of(six, 50), clip_of(six, 400), clip_of(Limit("1.5x", "loss", factor=1.5), 50, typical=4.0)
    (60.0, 120.0, 60.0)
    """
    allowed = max(limit.value or 0.0, (limit.factor or 0.0) * typical)
    return min(max(LEAST, allowed * max(TIMES, math.sqrt(samples))), MOST)
