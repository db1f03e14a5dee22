"""The functions of `pdcl.algorithm` and `pdcl.limits` that users call, by one name: `from pdcl.duality import …`."""

from pdcl.algorithm.constraints import lagrangian, task_means
from pdcl.algorithm.draws import (
    cumulate,
    draw_by_dual,
    draw_samples_by_dual,
)
from pdcl.algorithm.dual_rules import ascend, effective_tolerance, infeasible, nupi
from pdcl.algorithm.partition import (
    affine_partition,
    distance_from_uniform,
    generalization_partition,
    uniform_partition,
)
from pdcl.algorithm.prices import price, sample_prices, value_bound
from pdcl.algorithm.selection import (
    balanced_quota,
    herding,
    ring_slots,
    robust_weights,
    sample_without_replacement,
    select,
    uniform_selection,
)
from pdcl.limits.limits import Limits, as_limits, describe_limits
from pdcl.limits.tolerance import Fixed, PerTask, Relative, Rise, Tolerance, as_tolerance, describe

__all__ = [
    "Fixed",
    "Limits",
    "PerTask",
    "Relative",
    "Rise",
    "Tolerance",
    "affine_partition",
    "as_limits",
    "as_tolerance",
    "ascend",
    "balanced_quota",
    "cumulate",
    "describe",
    "describe_limits",
    "distance_from_uniform",
    "draw_by_dual",
    "draw_samples_by_dual",
    "effective_tolerance",
    "generalization_partition",
    "herding",
    "infeasible",
    "lagrangian",
    "nupi",
    "price",
    "ring_slots",
    "robust_weights",
    "sample_prices",
    "sample_without_replacement",
    "select",
    "task_means",
    "uniform_partition",
    "uniform_selection",
    "value_bound",
]
