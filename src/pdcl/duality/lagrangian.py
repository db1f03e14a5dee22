"""The means that the empirical Lagrangian is made of.

task level    L = mean over D_t of ℓ  +  Σ_k λ_k (mean over B_k of ℓ − ε_k)
sample level  L = mean over D_t of ℓ  +  Σ_k (1/n_k) Σ_{i∈B_k} λ_i (ℓ_i − ε_i)
"""

import torch
from torch import Tensor


def task_means(losses: Tensor, tasks: Tensor, n_tasks: int) -> Tensor:
    """L_k = (1/n_k) Σ_{i∈B_k} ℓ_i for every task k < n_tasks; NaN where a task has no sample. losses, tasks: [n]."""
    sums = losses.new_zeros(n_tasks).index_add(0, tasks, losses)
    return sums / torch.bincount(tasks, minlength=n_tasks)


def base_weight(base: float, most: float | None, past: int) -> float:
    """b_t = min(b, most / (t − 1)): all past tasks together weigh at most `most` times the new one (None: no bound).

    Without it the new task has 1/t of the gradient, and after many tasks it isn't learned in a few steps.

    >>> base_weight(1.0, 4.0, 3), base_weight(1.0, 4.0, 8)
    (1.0, 0.5)
    """
    return base if most is None or not past else min(base, most / past)
