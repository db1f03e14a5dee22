"""The mathematics of primal-dual continual learning, on tensors alone: no training, no files."""

from pdcl.duality.duals import ascend, effective_tolerance, infeasible, nupi
from pdcl.duality.lagrangian import task_means
from pdcl.duality.limits import Limits, as_limits, describe_limits
from pdcl.duality.partition import (
    affine_partition,
    distance_from_uniform,
    generalization_partition,
    uniform_partition,
)
from pdcl.duality.prices import price, sample_prices, value_bound
from pdcl.duality.replay import (
    cumulate,
    draw_by_dual,
    draw_samples_by_dual,
    draw_stratified,
)
from pdcl.duality.selection import (
    balanced_quota,
    herding,
    ring_slots,
    robust_weights,
    sample_without_replacement,
    select,
    uniform_selection,
)
from pdcl.duality.tolerance import Fixed, PerTask, Relative, Rise, Tolerance, as_tolerance, describe

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
    "draw_stratified",
    "effective_tolerance",
    "generalization_partition",
    "herding",
    "infeasible",
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
