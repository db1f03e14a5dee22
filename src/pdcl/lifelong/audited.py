"""A learner on audit data, which it never trains on: its outputs, and which samples it gets wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lifelong.backbone import unchanged
from pdcl.lifelong.new_task import encoded
from pdcl.streams.audits import Audit
from pdcl.streams.checks import BadData, check_finite, check_targets
from pdcl.streams.labels import encode

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def targets_for(learner: Learner, audit: Audit) -> Tensor:
    """The audit set's targets as the learner's head has them."""
    spec = learner.spec
    if spec is None:
        raise UsageError("this learner has learned nothing yet; there is nothing to judge")
    if spec.leaves:
        raise BadData(f"audit set {audit.name} holds one tensor; the model takes {spec.inputs()}")
    if learner.backbone is None and (tuple(audit.x.shape[1:]) != spec.shape or audit.x.dtype != spec.dtype):
        raise BadData(
            f"audit set {audit.name} has inputs {tuple(audit.x.shape[1:])} {audit.x.dtype}; "
            f"the model takes {spec.shape} {spec.dtype}"
        )
    check_finite(audit.x, f"audit set {audit.name}")
    where = f"y of audit set {audit.name}"
    if spec.kind == "classification":
        return encode(audit.y, spec.labels or range(spec.outputs), where)
    targets = encoded(audit.y, spec, where)
    check_targets(targets, spec, where)
    return targets


def scored(learner: Learner, audit: Audit) -> tuple[Tensor, npt.NDArray[np.bool_]]:
    """The outputs for every sample, in eval mode, and which of them aren't finite."""
    scores = learner.evaluated(unchanged(learner)(audit.x)).cpu()
    return scores, ~scores.flatten(1).isfinite().all(1).numpy()


def errors_on(learner: Learner, audit: Audit) -> npt.NDArray[np.float64]:
    """The error of every sample, [n]; wrong is 1. A class that the learner doesn't know is wrong for sure."""
    assert learner.spec is not None
    if learner.spec.kind == "regression":
        raise UsageError("regression has no error rate, so that there is no drop of it; state a limit in loss")
    known = _known(learner, audit)
    found = np.ones(len(audit))
    if known.any():
        part = audit.taken(known.nonzero()[0])
        targets = targets_for(learner, part)
        scores, broken = scored(learner, part)
        found[known] = np.where(broken, 1.0, learner.goal.error(scores, targets).double().numpy())
    return found


def _known(learner: Learner, audit: Audit) -> npt.NDArray[Any]:
    assert learner.spec is not None
    labels = learner.spec.labels
    if learner.spec.kind != "classification" or not labels:
        return np.ones(len(audit), dtype=bool)
    return (encode(audit.y, labels, f"y of audit set {audit.name}", missing=-1) >= 0).numpy()


def audit_of(name: str, arrays: dict[str, Any], rows: Any = None) -> Audit:
    """An audit set in memory, of arrays as `samples.npz` holds them; `rows` takes some."""
    columns = {key: values for key, values in arrays.items() if key not in ("x", "y")}
    whole = Audit(name, torch.as_tensor(arrays["x"]), arrays["y"], columns)
    return whole if rows is None else whole.taken(np.flatnonzero(rows))
