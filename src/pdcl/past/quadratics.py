"""From statistics to squared losses as functions of the head W: exact over all samples that ever came, or balanced.

    L_c(W) = [tr(WᵀG_cW) − 2 tr(WᵀC_c) + q_c] / n_c                        every sample counts the same

Balanced, every class counts the same, and within a class the tasks it came in count by √n_tk: with μ_ck the mean
feature of class k in set c and Σ_c the scatter within its classes, which all of them share,

    A = Σ_c (Σ_k ω_ck) Σ_c + Σ_ck ω_ck μ_ck μ_ckᵀ,     B_k = Σ_c ω_ck μ_ck,     Σ ω_ck = number of tasks
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pdcl.algorithm.closed_form import Quadratic
from pdcl.past.statistics import Moments


def exact_loss(moments: Moments, outputs: int, classes: bool) -> Quadratic:
    """L_c: the mean over all samples of the set; of numbers also over the outputs."""
    each = moments.samples * (1 if classes else outputs)
    return Quadratic(moments.full_gram() / each, moments.full_cross(outputs) / each, moments.squares / each)


def balanced_loss(sets: Sequence[Moments], outputs: int, classes: bool) -> Quadratic:
    """The objective: classes balanced, tasks by √n."""
    width = sets[0].width
    A, B = (torch.zeros(width, size, dtype=torch.float64) for size in (width, outputs))
    q, weights = 0.0, cell_weights(sets, outputs)
    for moments, omega in zip(sets, weights, strict=True):
        if not classes:
            each, share = moments.samples * outputs, float(omega.mean())
            A.add_(moments.full_gram(), alpha=share / each)
            B.add_(moments.full_cross(outputs), alpha=share / each)
            q += share * moments.squares / each
            continue
        counts = moments.counts.sum(0).double()
        means = moments.cross.double() / counts[:, None]
        share = float(omega.sum())
        A.add_(moments.full_gram(), alpha=share / moments.samples)
        A.addmm_(means.T, (omega - share * counts / moments.samples)[:, None] * means)
        B[:, moments.columns] += (omega[:, None] * means).T
        q += share
    return Quadratic(A, B, q)


def cell_weights(sets: Sequence[Moments], outputs: int) -> list[Tensor]:
    """ω_ck of the outputs of each set: the same for each class in all, by √n_tk among the tasks that have it."""
    roots = [moments.counts.double().sqrt().sum(0) for moments in sets]
    total = torch.zeros(outputs, dtype=torch.float64)
    for moments, root in zip(sets, roots, strict=True):
        total[moments.columns] += root
    tasks = len({task for moments in sets for task in moments.tasks})
    each = tasks / max(1, int((total > 0).sum()))
    return [each * root / total[moments.columns] for moments, root in zip(sets, roots, strict=True)]
