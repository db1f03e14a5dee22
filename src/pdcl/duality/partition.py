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
    return _apportion([Fraction(1)] * tasks, capacity, _caps(available, tasks, capacity))


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
    shares = _affine_shares(weights, _shortest(alpha))
    caps = _caps(available, len(weights), capacity)
    counts = _apportion(shares, capacity, caps)
    if current_cap is not None:
        # A third of 30 is 10, though no float is a third.
        ceiling = max(1, math.floor(_shortest(current_cap) * capacity + Fraction(1, 10**9)))
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
    shares = np.asarray(counts, dtype=np.float64)
    total = shares.sum()
    return float(np.abs(shares / total - 1 / len(shares)).sum() / 2) if total else 0.0


def _decrease(n: int) -> float:
    """What one more sample takes off sqrt(ln n / n)."""
    return math.sqrt(math.log(n) / n) - math.sqrt(math.log(n + 1) / (n + 1))


def _affine_shares(weights: list[Fraction], alpha: Fraction) -> list[Fraction]:
    total, tasks = sum(weights), len(weights)
    if total <= NO_DUALS:
        return [Fraction(1)] * tasks
    return [alpha * weight / total + (1 - alpha) / tasks for weight in weights]


def _apportion(shares: list[Fraction], capacity: int, caps: list[int]) -> list[int]:
    """Integers nearest to proportional, under caps: largest remainder, ties to the larger share, then lower index."""
    quotas = _fill(shares, min(capacity, sum(caps)), caps)
    counts = [math.floor(quota) for quota in quotas]
    order = sorted(range(len(shares)), key=lambda k: (counts[k] - quotas[k], -shares[k], k))
    for k in order[: min(capacity, sum(caps)) - sum(counts)]:
        counts[k] += 1
    return counts


def _fill(shares: list[Fraction], total: int, caps: list[int]) -> list[Fraction]:
    """Proportional water-filling: a capped task's surplus goes to the others by their shares; zero shares come last."""
    quotas = [Fraction(0)] * len(shares)
    for group, weight in ((_positive(shares), shares), (_zero(shares), [Fraction(1)] * len(shares))):
        rest, left = sum(weight[k] for k in group), total - sum(quotas)
        for k in sorted(group, key=lambda k: caps[k] / weight[k]):
            quotas[k] = min(Fraction(caps[k]), left * weight[k] / rest)
            rest, left = rest - weight[k], left - quotas[k]
    return quotas


def _positive(shares: list[Fraction]) -> list[int]:
    return [k for k, share in enumerate(shares) if share > 0]


def _zero(shares: list[Fraction]) -> list[int]:
    return [k for k, share in enumerate(shares) if share == 0]


def _keep_one_each(counts: list[int], shares: list[Fraction], caps: list[int]) -> list[int]:
    for k in (k for k, n in enumerate(counts) if n == 0 and caps[k] > 0):
        giver = min(range(len(counts)), key=lambda j: (-counts[j], shares[j], -j))
        counts[giver] -= 1
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


def _exact(duals: Numbers) -> list[Fraction]:
    """Duals as exact fractions: no rounding noise can break a tie, split a sum or depend on the order of the tasks."""
    if isinstance(duals, Tensor):
        duals = (duals.float() if duals.dtype in HALF else duals).detach().cpu().numpy()
    values = np.asarray(duals)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"duals must be one number per task, not of shape {values.shape}")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"duals must be finite and not negative, but are {values.tolist()}")
    return [_shortest(value) for value in values]


def _shortest(value: float) -> Fraction:
    """0.1 as 1/10: the shortest decimal that names the float, in single precision too."""
    return Fraction(str(value))
