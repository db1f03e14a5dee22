"""How many samples of memory each task keeps: uniform, affine in the duals (PB), generalisation-aware (BP).

Every partition sums to exactly min(capacity, Σ available). `available` caps each task at what is stored of it: a past
task can only shrink, since its data is gone.

>>> affine_partition([3, 1, 0, 2], capacity=100)
[38, 21, 12, 29]
>>> generalization_partition([4, 2, 1], capacity=100)
[53, 30, 17]
"""

import heapq
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

Numbers = Sequence[float] | Tensor | np.ndarray
Counts = Sequence[int] | Tensor | np.ndarray

# Below this, duals are rounding noise: (1e-12, 0, 0) must not send two thirds of memory to the first task.
NO_DUALS = Fraction(1, 10**8)
# sqrt(ln n / n) falls by less and less from one integer to the next only from here on, which the greedy relies on.
CONVEX_FROM = 4
# numpy knows no bfloat16.
HALF = (torch.float16, torch.bfloat16)


def uniform_partition(tasks: int, capacity: int, available: Counts | None = None) -> list[int]:
    """n_k = |B| / t, as integers."""
    return _apportion([1] * tasks, capacity, _caps(available, tasks, capacity))


def affine_partition(
    duals: Numbers,
    capacity: int,
    alpha: float = 0.5,
    available: Counts | None = None,
    current_cap: float | None = None,
) -> list[int]:
    """(PB)  n_k = |B| (α λ_k / ‖λ‖₁ + (1 − α) / t), with the artificial dual of the current task last.

    Duals that are all (nearly) zero give the uniform partition. With α < 1 and |B| ≥ t every task keeps a sample.
    `current_cap` bounds the last task's share of the capacity as long as the past tasks can take what it leaves.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(
            f"alpha must lie in [0, 1], not {alpha}: 0 is the uniform partition, 1 follows the duals alone"
        )
    if current_cap is not None and not 0 < current_cap <= 1:
        raise ValueError(f"current_cap must be a share of the capacity in (0, 1], not {current_cap}")
    weights = _exact(duals)
    shares = _affine_shares(weights, Fraction(str(alpha)))
    caps = _caps(available, len(weights), capacity)
    counts = _apportion(shares, capacity, caps)
    if current_cap is not None:
        # A third of 30 is 10, though no float is a third.
        ceiling = max(1, math.floor(Fraction(str(current_cap)) * capacity + Fraction(1, 10**9)))
        counts = _apportion(shares, capacity, [*caps[:-1], min(caps[-1], ceiling)])
        counts[-1] += min(capacity, sum(caps)) - sum(counts)
    return _keep_one_each(counts, shares, caps) if alpha < 1 and capacity >= len(counts) else counts


def generalization_partition(
    duals: Numbers, capacity: int, minimum: int = 5, available: Counts | None = None
) -> list[int]:
    """(BP)  min Σ λ_k sqrt(ln n_k / n_k)  s.t.  Σ n_k = |B|, n_min ≤ n_k ≤ available_k.

    sqrt(ln n / n) is convex over the integers from 4 on, so the problem is separable convex and giving one sample at a
    time to the task that gains most is exact. A task with less than `minimum` available keeps all of that. Duals that
    are all zero, or a capacity below t · n_min, give the uniform partition; the latter is worth a word to the user.
    """
    if minimum < CONVEX_FROM:
        raise ValueError(f"minimum must be at least {CONVEX_FROM}, not {minimum}: sqrt(ln n / n) grows for small n")
    weights = [float(weight) for weight in _exact(duals)]
    caps = _caps(available, len(weights), capacity)
    if capacity < len(weights) * minimum or not any(weights):
        return uniform_partition(len(weights), capacity, caps)
    counts = [min(minimum, cap) for cap in caps]
    # Equal gains (zero duals above all) go to the smaller partition, then to the lower index.
    queue = [(-w * _decrease(n), n, k) for k, (w, n) in enumerate(zip(weights, counts, strict=True)) if n < caps[k]]
    heapq.heapify(queue)
    for _ in range(min(capacity, sum(caps)) - sum(counts)):
        k = queue[0][2]
        counts[k] += 1
        if counts[k] < caps[k]:
            heapq.heapreplace(queue, (-weights[k] * _decrease(counts[k]), counts[k], k))
        else:
            heapq.heappop(queue)
    return counts


def distance_from_uniform(counts: Counts) -> float:
    """Total variation between a partition's shares and equal shares: ½ Σ |n_k / Σn − 1/t|, from 0 to 1 − 1/t."""
    shares = np.asarray(counts)
    total = shares.sum()
    return float(np.abs(shares / total - 1 / len(shares)).sum() / 2) if total else 0.0


def _decrease(n: int) -> float:
    """What one more sample takes off sqrt(ln n / n)."""
    return math.sqrt(math.log(n) / n) - math.sqrt(math.log(n + 1) / (n + 1))


def _affine_shares(duals: list[Decimal], alpha: Fraction) -> list[int]:
    """α λ_k / ‖λ‖₁ + (1 − α) / t up to a common factor, as whole numbers: exact, and far faster than fractions."""
    least = min(int(dual.as_tuple().exponent) for dual in duals)
    weights = [int(dual.scaleb(-least)) for dual in duals]
    total, tasks = sum(weights), len(weights)
    if total * Fraction(10) ** least <= NO_DUALS:
        return [1] * tasks
    by_dual, even = alpha.numerator * tasks, (alpha.denominator - alpha.numerator) * total
    return [by_dual * weight + even for weight in weights]


def _apportion(shares: list[int], capacity: int, caps: list[int]) -> list[int]:
    """Integers nearest to proportional, under caps: largest remainder, ties to the larger share, then lower index.

    A capped task's surplus goes to the others by their shares; zero shares come last and are alike.
    """
    positive = [k for k, share in enumerate(shares) if share > 0]
    left, wanted = min(capacity, sum(caps)), sum(caps[k] for k in positive)
    if wanted > left:
        return _proportional(positive, shares, left, caps)
    zero = [k for k, share in enumerate(shares) if share == 0]
    counts = _proportional(zero, [1] * len(shares), left - wanted, caps)
    for k in positive:
        counts[k] = caps[k]
    return counts


def _proportional(tasks: list[int], shares: list[int], left: int, caps: list[int]) -> list[int]:
    """`left` divided among some of all tasks by their shares, which are positive there; 0 for the others."""
    counts, rest = [0] * len(shares), sum(shares[k] for k in tasks)
    while full := [k for k in tasks if caps[k] * rest <= left * shares[k]]:
        for k in full:
            counts[k] = caps[k]
        left, rest = left - sum(caps[k] for k in full), rest - sum(shares[k] for k in full)
        tasks = [k for k in tasks if not counts[k] and caps[k]]
    remainders = {}
    for k in tasks:
        counts[k], remainders[k] = divmod(left * shares[k], rest)
    spare = left - sum(counts[k] for k in tasks)
    for k in sorted(tasks, key=lambda k: (-remainders[k], -shares[k], k))[:spare]:
        counts[k] += 1
    return counts


def _keep_one_each(counts: list[int], shares: list[int], caps: list[int]) -> list[int]:
    """One sample for every task that has some, from the largest; ties to the smaller share, then the higher index."""
    without = [k for k, n in enumerate(counts) if n == 0 and caps[k] > 0]
    givers = [(-n, shares[k], -k) for k, n in enumerate(counts)] if without else []
    heapq.heapify(givers)
    for k in without:
        n, share, giver = givers[0]
        heapq.heapreplace(givers, (n + 1, share, giver))
        counts[-giver] -= 1
        counts[k] = 1
    return counts


def _caps(available: Counts | None, tasks: int, capacity: int) -> list[int]:
    if capacity < 0:
        raise ValueError(f"capacity must not be negative, but is {capacity}")
    if available is None:
        return [capacity] * tasks
    if len(available) != tasks:
        raise ValueError(f"available has {len(available)} entries for {tasks} tasks: give one per task")
    caps = [int(min(stored, capacity)) for stored in available]
    if any(cap < 0 for cap in caps):
        raise ValueError(f"available must not be negative, but is {list(available)}")
    return caps


def _exact(duals: Numbers) -> list[Decimal]:
    """Duals as exact decimals: no rounding noise can break a tie, split a sum or depend on the order of the tasks.

    0.1 as 1/10: the shortest decimal that names the float, in single precision too.
    """
    if isinstance(duals, Tensor):
        duals = (duals.float() if duals.dtype in HALF else duals).detach().cpu().numpy()
    values = np.asarray(duals)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"duals must be one number per task, not of shape {values.shape}")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"duals must be finite and not negative, but are {values.tolist()}")
    return [Decimal(str(value)) for value in values]
