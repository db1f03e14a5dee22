"""Which samples memory keeps: by dual (FB), uniformly, by ring, by herding. The reservoir has a file of its own.

All return positions; nothing here touches the samples themselves.

>>> sample_without_replacement(torch.tensor([8.0, 1.0, 1.0, 0.0]), 3, torch.Generator()).sort().values
tensor([0, 1, 2])
"""

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Generator, Tensor

from pdcl.algorithm.partition import uniform_partition


def sample_without_replacement(weights: Tensor | Sequence[float], n: int, generator: Generator) -> Tensor:
    """(FB)  n draws without replacement, each with probability λ_i / ‖λ‖₁ among those still there.

    An exponential race: arrival times E_i / λ_i come in exactly the order of such draws. Items of weight zero never
    arrive; only when the others run out are they taken, uniformly.
    """
    weights = torch.as_tensor(weights, dtype=torch.float64, device=generator.device)
    _check_weights(weights, n)
    return _arrivals(weights, [len(weights)], generator)[:n]


def robust_weights(duals: Tensor | Sequence[float], quantile: float = 0.9, uniform: float = 0.5) -> Tensor:
    """Probabilities for FB that mislabelled samples can't dominate: (1 − u) min(λ_i, q) / Σ_j min(λ_j, q) + u / n.

    q is the given quantile of the positive duals (of all of them, it would be 0 as soon as most samples are easy).
    `quantile=1, uniform=0` is the literal rule λ_i / ‖λ‖₁. Duals that are all zero give equal probabilities.
    """
    for name, share in (("quantile", quantile), ("uniform", uniform)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must lie in [0, 1], not {share}")
    duals = torch.as_tensor(duals, dtype=torch.float64)
    _check_weights(duals, 0)
    equal = torch.full_like(duals, 1 / max(len(duals), 1))
    if not (duals > 0).any():
        return equal
    clipped = duals.clamp(max=duals[duals > 0].quantile(quantile))
    return (1 - uniform) * (clipped / clipped.sum()) + uniform * equal


def balanced_quota(labels: Tensor | Sequence[int], n: int) -> dict[int, int]:
    """How many of each class, as evenly as what is there of each allows; label → count, summing to min(n, all)."""
    classes, counts = torch.unique(torch.as_tensor(labels), return_counts=True)
    return dict(zip(classes.tolist(), uniform_partition(len(classes), n, counts.tolist()), strict=True))


def select(
    weights: Tensor | Sequence[float], n: int, generator: Generator, labels: Tensor | Sequence[int] | None = None
) -> Tensor:
    """n positions by weight without replacement; with labels, balanced over the classes first."""
    weights = torch.as_tensor(weights, dtype=torch.float64, device=generator.device)
    _check_weights(weights, n)
    return select_each(weights, [len(weights)], [n], generator, labels)


def select_each(
    weights: Tensor,
    sizes: Sequence[int],
    counts: Sequence[int],
    generator: Generator,
    labels: Tensor | Sequence[int] | None = None,
) -> Tensor:
    """`select` for several sets that stand one behind the other: counts[k] positions among the sizes[k] of set k.

    It draws what one `select` per set would draw, with a few passes over all of them instead of some per set and class.
    """
    weights = torch.as_tensor(weights, dtype=torch.float64, device=generator.device)
    _check_weights(weights, 0)
    if labels is None:
        return _first(_arrivals(weights, sizes, generator), sizes, counts)
    labels = torch.as_tensor(labels, device=generator.device)
    if len(labels) != len(weights):
        raise ValueError(f"{len(weights)} weights but {len(labels)} labels: give one label per weight")
    classes, codes = torch.unique(labels, return_inverse=True)
    numbers = _owners(sizes, codes) * max(len(classes), 1) + codes
    order = numbers.argsort(stable=True)
    found, within = torch.unique_consecutive(numbers[order], return_counts=True)
    own = torch.bincount(found // max(len(classes), 1), minlength=len(sizes)).tolist()
    members, quotas = within.tolist(), []
    for start, end, count in zip(accumulate(own, initial=0), accumulate(own), counts, strict=False):
        quotas += uniform_partition(end - start, count, members[start:end])
    places = _first(_arrivals(weights[order], members, generator), members, quotas)
    chosen: Tensor = order[places]
    return chosen


def uniform_selection(count: int, n: int, generator: Generator) -> Tensor:
    """n of `count` positions, every subset equally likely."""
    if not 0 <= n <= count:
        raise ValueError(f"can't choose {n} of {count} samples without replacement: ask for at most {count}")
    return torch.randperm(count, generator=generator, device=generator.device)[:n]


def ring_slots(groups: Tensor, counters: Tensor, quota: int) -> tuple[Tensor, Tensor, Tensor]:
    """First in, first out within each group (a class or a task): (positions in the batch, slots, new counters).

    Group g owns slots g·quota, …, g·quota + quota − 1 and has received counters[g] samples so far; its next one goes to
    g·quota + counters[g] mod quota. Counters grow with new groups. Of several writes to one slot the last counts.
    """
    if quota < 1:
        raise ValueError(f"quota must be at least 1 slot per group, not {quota}")
    arrived = torch.bincount(groups, minlength=len(counters))
    counters = torch.nn.functional.pad(counters, (0, len(arrived) - len(counters)))
    order = groups.argsort(stable=True)
    before = arrived.cumsum(0) - arrived
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device) - before[groups[order]]
    slots = groups * quota + (counters[groups] + rank) % quota
    positions = torch.arange(len(groups), device=groups.device)
    return *_last_writes(positions, slots), counters + arrived


def herding(features: Tensor, n_select: int) -> Tensor:
    """iCaRL's exemplars in order: each keeps the running mean of the chosen features closest to the mean μ of all.

    Step k takes `argmin_x ‖μ − (φ(x) + Σ_{chosen} φ) / (k + 1)‖` among those not chosen. features: [n, d], as they
    are: normalise before, where the method wants it.
    """
    if not 0 <= n_select <= len(features):
        raise ValueError(f"can't choose {n_select} of {len(features)} samples: ask for at most {len(features)}")
    phi = features.detach().double()
    mean, squares = phi.mean(dim=0), phi.square().sum(dim=1)
    residual = torch.zeros_like(mean)
    chosen = torch.empty(n_select, dtype=torch.long, device=phi.device)
    for k in range(n_select):
        # ‖(k+1)μ − Σ − φ‖² up to a constant, with residual (k+1)μ − Σ: one product with phi instead of a copy of it.
        residual = residual + mean
        best = (squares - 2 * phi @ residual).argmin()
        chosen[k], squares[best] = best, torch.inf
        residual = residual - phi[best]
    return chosen


def _last_writes(positions: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    """Of several positions written to one slot, the last: what writing one by one leaves behind."""
    unique, inverse = torch.unique(slots, return_inverse=True)
    last = torch.full_like(unique, -1).scatter_reduce(0, inverse, positions, "amax")
    return last, unique


def _arrivals(weights: Tensor, sizes: Sequence[int], generator: Generator) -> Tensor:
    """The order in which items arrive in an exponential race, in each of several groups; weight zero at the end."""
    never = (weights <= 0).tolist() if bool((weights <= 0).any()) else []
    times, start = [weights.new_zeros(0)], 0
    behind = []
    for size in sizes:
        times.append(_exponential(size, generator))
        if never and (zeros := sum(never[start : start + size])):
            behind.append(torch.randperm(zeros, generator=generator, device=generator.device).argsort())
        start += size
    # Logarithms, because E / λ overflows for tiny duals and ties them all at infinity.
    race = torch.cat(times).log() - weights.log()
    if behind:
        race[weights <= 0] = torch.cat(behind).to(race)
    order = race.argsort()
    for later in ([weights <= 0] if behind else []) + ([_owners(sizes, race)] if len(sizes) > 1 else []):
        order = order[later[order].argsort(stable=True)]
    return order


def _first(order: Tensor, sizes: Sequence[int], counts: Sequence[int]) -> Tensor:
    """The first counts[k] of the sizes[k] places of every group k."""
    if len(sizes) == 1:
        return order[: counts[0]]
    each = torch.tensor([list(sizes), list(counts)], dtype=torch.long, device=order.device).view(2, -1)
    offsets, owners = each[0].cumsum(0) - each[0], _owners(sizes, order)
    return order[torch.arange(len(order), device=order.device) - offsets[owners] < each[1][owners]]


def _owners(sizes: Sequence[int], like: Tensor) -> Tensor:
    """The group of each place."""
    each = torch.tensor(list(sizes), dtype=torch.long, device=like.device)
    return torch.repeat_interleave(torch.arange(len(each), device=like.device), each)


def _exponential(count: int, generator: Generator) -> Tensor:
    return torch.empty(count, dtype=torch.float64, device=generator.device).exponential_(generator=generator)


def _check_weights(weights: Tensor, n: int) -> None:
    if n < 0 or n > len(weights):
        raise ValueError(f"can't choose {n} of {len(weights)} samples without replacement: ask for at most that many")
    if not bool(((weights >= 0) & weights.isfinite()).all()):
        raise ValueError("weights must be finite and not negative: some are not, so a loss may have diverged")
