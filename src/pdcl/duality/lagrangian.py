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
