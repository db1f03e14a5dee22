"""A model on an audit set: one number per sample, then one row per question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lifelong.backbone import unchanged
from pdcl.lifelong.learner import Learner
from pdcl.promises.bounds import Floats
from pdcl.streams.audits import Audit
from pdcl.streams.checks import BadData
from pdcl.streams.labels import encode
from pdcl.streams.samples import Column
from pdcl.verdict.criteria import Criterion
from pdcl.verdict.deciding import Row
from pdcl.verdict.estimates import Estimate, Mean, Rate


@dataclass(frozen=True)
class Outcomes:
    """What the model did with each sample, [n] each; all that verdicts are made of."""

    error: Floats | None
    loss: Floats
    truth: Column | None
    said: Column | None


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
    if spec.kind != "classification":
        values = torch.as_tensor(np.asarray(audit.y, dtype=np.float32))
        return values[:, None] if values.dim() == 1 else values
    return encode(audit.y, spec.labels or range(spec.outputs), f"y of audit set {audit.name}")


def outcomes(learner: Learner, audit: Audit) -> Outcomes:
    """Run the model, in eval mode, over the audit set. An output that isn't finite is an error, and any loss."""
    targets = targets_for(learner, audit)
    scores = learner.evaluated(unchanged(learner)(audit.x)).cpu()
    broken = ~scores.flatten(1).isfinite().all(1).numpy()
    loss = np.where(broken, np.inf, learner.goal.loss(scores, targets).double().numpy())
    assert learner.spec is not None
    if learner.spec.kind == "regression":
        return Outcomes(None, loss, None, None)
    error = np.where(broken, 1.0, learner.goal.error(scores, targets).double().numpy())
    if learner.spec.kind != "classification":
        return Outcomes(error, loss, None, None)
    return Outcomes(error, loss, targets.numpy(), scores.argmax(1).numpy())


def rows(
    found: Outcomes,
    criteria: Sequence[Criterion],
    membership: Mapping[str, Column],
    labels: Sequence[Any],
    clusters: Column | None,
) -> list[Row]:
    """One row per criterion and group; `membership` are masks by group, `clusters` who each sample is of."""
    made = []
    for criterion in criteria:
        groups = _classes(found, labels, criterion.kind) if criterion.kind in ("miss", "alarm") else membership
        for name, mask in groups.items():
            values = _values(found, criterion, name, labels)[mask]
            estimate = estimate_of(values, None if clusters is None else clusters[mask], criterion.clip)
            made.append(Row(criterion.kind, name, criterion.of(name), estimate, int(mask.sum())))
    _check_special(criteria, made)
    return made


def estimate_of(values: Floats, clusters: Column | None, clip: float | None = None) -> Estimate:
    """0–1 outcomes of independent samples are counted; anything else is a mean of values in [0, 1].

    With clusters (patients, speakers), each counts once, by the mean over its samples.
    """
    scale = 1.0 if clip is None else clip
    unit = np.minimum(values, scale) / scale
    if clusters is not None:
        _, member = np.unique(clusters, return_inverse=True)
        unit = np.bincount(member, unit) / np.bincount(member)
    if clip is None and np.isin(unit, (0.0, 1.0)).all() and (clusters is None or len(unit) == len(values)):
        return Rate(int(unit.sum()), len(unit))
    return Mean(unit, scale)


def _values(found: Outcomes, criterion: Criterion, group: str, labels: Sequence[Any]) -> Floats:
    if criterion.kind == "loss":
        return found.loss
    if criterion.kind == "alarm":
        wrong = found.said == [str(label) for label in labels].index(group)
        return np.asarray(wrong, dtype=float)
    if found.error is None:
        raise UsageError("regression has no error rate; state the limit in loss: --max-loss")
    return found.error


def _classes(found: Outcomes, labels: Sequence[Any], kind: str) -> dict[str, Column]:
    """Samples of a class, for what is missed; all others, for false alarms."""
    if found.truth is None:
        raise UsageError("sensitivity and specificity are of classes; this model tells none apart")
    known = [c for c in range(len(labels)) if (found.truth == c).any()]
    return {str(labels[c]): (found.truth == c) == (kind == "miss") for c in known}


def membership_by(values: Column | None, by: str | None, found: Outcomes, labels: Sequence[Any]) -> dict[str, Column]:
    """Which samples belong to which group: all together, by class, or by `values`, the column that `by` names."""
    if by == "class":
        return _classes(found, labels, "miss")
    if values is None:
        return {"all": np.ones(len(found.loss), dtype=bool)}
    names = np.asarray([str(value) for value in values.tolist()])
    return {name: names == name for name in dict.fromkeys(names.tolist())}


def _check_special(criteria: Sequence[Criterion], made: Sequence[Row]) -> None:
    known = {row.group for row in made}
    for criterion in criteria:
        for name, _ in criterion.special:
            if name not in known:
                raise UsageError(f"a limit is given for {name!r}, which is no group here: {', '.join(sorted(known))}")
