"""A model on an audit set: one number per sample, then one row per question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdcl.errors import UsageError
from pdcl.lifelong.audited import errors_on, scored, targets_for
from pdcl.lifelong.learner import Learner
from pdcl.promises.bounds import Floats
from pdcl.streams.audits import Audit
from pdcl.streams.hashes import sample_hashes
from pdcl.streams.samples import Column
from pdcl.verdict.changes import change_of
from pdcl.verdict.criteria import PAIRED, Criterion
from pdcl.verdict.deciding import Row
from pdcl.verdict.estimates import Estimate, Mean, Rate


@dataclass(frozen=True)
class Outcomes:
    """What the model did with each sample, [n] each; all that verdicts are made of.

    old: errors of the model it is compared with. then: errors of the state in which a sample's task was learned, NaN
    where they aren't stored.
    """

    error: Floats | None
    loss: Floats
    truth: Column | None
    said: Column | None
    old: Floats | None = None
    then: Floats | None = None


def outcomes(learner: Learner, audit: Audit, old: Learner | None = None) -> Outcomes:
    """Run the model, in eval mode, over the audit set. An output that isn't finite is an error, and any loss."""
    targets = targets_for(learner, audit)
    scores, broken = scored(learner, audit)
    loss = np.where(broken, np.inf, learner.goal.loss(scores, targets).double().numpy())
    assert learner.spec is not None
    if learner.spec.kind == "regression":
        return Outcomes(None, loss, None, None)
    error = np.where(broken, 1.0, learner.goal.error(scores, targets).double().numpy())
    hashes = sample_hashes(audit.x, learner.lineage.key)
    before = (
        None if old is None else errors_on(old, audit),
        learner.lineage.references.of(hashes, learner.tasks_learned - 1),
    )
    if learner.spec.kind != "classification":
        return Outcomes(error, loss, None, None, *before)
    return Outcomes(error, loss, targets.numpy(), scores.argmax(1).numpy(), *before)


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
        for name, whole in groups.items():
            mask = whole & stored_then(found) if criterion.kind == "since" else whole
            if mask.any():
                estimate = _estimate(found, criterion, name, labels, mask, clusters)
                rates = _rates(found, criterion, mask)
                made.append(Row(criterion.kind, name, criterion.of(name), estimate, int(mask.sum()), *rates))
    _check_special(criteria, made)
    if not made:
        raise UsageError(
            "there is nothing to compare with: no outcome from the time when a task was learned is stored for these "
            "samples (learn(…, audit=) and pdcl update store them); say against which model"
        )
    return made


def stored_then(found: Outcomes) -> Column:
    """Which samples have an outcome of the time when their task was learned."""
    return np.zeros(len(found.loss), dtype=bool) if found.then is None else ~np.isnan(found.then)


def _rates(found: Outcomes, criterion: Criterion, mask: Column) -> tuple[float | None, float | None]:
    """The error rate before and now, over samples, where the two are compared."""
    before = {"drop": found.old, "since": found.then}.get(criterion.kind)
    if before is None or found.error is None:
        return None, None
    return float(before[mask].mean()), float(found.error[mask].mean())


def _estimate(
    found: Outcomes,
    criterion: Criterion,
    group: str,
    labels: Sequence[Any],
    mask: Column,
    clusters: Column | None,
) -> Estimate:
    values, who = _values(found, criterion, group, labels)[mask], None if clusters is None else clusters[mask]
    if criterion.kind not in PAIRED:
        return estimate_of(values, who, criterion.clip)
    before = found.old if criterion.kind == "drop" else found.then
    assert before is not None
    return change_of(values, before[mask], who)


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
    return {name: names == name for name in sorted(set(names.tolist()), key=_by_number)}


def _by_number(name: str) -> tuple[int, str]:
    """Sorts 2 before 10, and names by their letters."""
    return (len(name), name) if name.isdecimal() else (2**31, name)


def _check_special(criteria: Sequence[Criterion], made: Sequence[Row]) -> None:
    known = {row.group for row in made}
    for criterion in criteria:
        for name, _ in criterion.special:
            if name not in known:
                raise UsageError(f"a limit is given for {name!r}, which is no group here: {', '.join(sorted(known))}")
