"""A model on an audit set: one number per sample, then one row per question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pdcl.errors import UsageError
from pdcl.judging.bounds import Floats
from pdcl.judging.clipping import Span, span_of
from pdcl.lifelong.audited import errors_on, scored, targets_for
from pdcl.lifelong.learner import Learner
from pdcl.limits.limit import Limit
from pdcl.release.changes import change_of
from pdcl.release.criteria import PAIRED, Criterion
from pdcl.release.deciding import Row
from pdcl.release.estimates import Estimate, Mean, estimate_of, once
from pdcl.streams.audits import Audit
from pdcl.streams.hashes import sample_hashes
from pdcl.streams.samples import Column


@dataclass(frozen=True)
class Outcomes:
    """What the model did with each sample, [n] each; all that verdicts are made of.

    old: errors of the model it is compared with. then: errors of the state in which a sample's task was learned, NaN
    where they aren't stored. sample: a number per distinct sample, the same for rows of equal input and target.
    """

    error: Floats | None
    loss: Floats
    truth: Column | None
    said: Column | None
    old: Floats | None = None
    then: Floats | None = None
    sample: Column | None = None

    @property
    def copies(self) -> int:
        """Rows that repeat another one."""
        return 0 if self.sample is None else len(self.sample) - len(np.unique(self.sample))


def outcomes(learner: Learner, audit: Audit, old: Learner | None = None) -> Outcomes:
    """Run the model, in eval mode, over the audit set. An output that isn't finite is an error, and any loss."""
    targets = targets_for(learner, audit)
    scores, broken = scored(learner, audit)
    loss = np.where(broken, np.inf, learner.goal.loss(scores, targets).double().numpy())
    assert learner.spec is not None
    same = audit.numbers()
    if learner.spec.kind == "regression":
        return Outcomes(None, loss, None, None, sample=same)
    error = np.where(broken, 1.0, learner.goal.error(scores, targets).double().numpy())
    hashes = sample_hashes(audit.x, learner.lineage.key)
    before = (
        None if old is None else errors_on(old, audit),
        learner.lineage.references.of(hashes, learner.tasks_learned - 1),
    )
    if learner.spec.kind != "classification":
        return Outcomes(error, loss, None, None, *before, same)
    return Outcomes(error, loss, targets.numpy(), scores.argmax(1).numpy(), *before, same)


def rows(
    found: Outcomes,
    criteria: Sequence[Criterion],
    membership: Mapping[str, Column],
    labels: Sequence[Any],
    clusters: Column | None,
    beyond: bool = True,
) -> list[Row]:
    """One row per criterion and group; `membership` are masks by group, `clusters` who each sample is of.

    Copies of a sample are no further evidence: a group has each once. beyond: whether a loss that reaches the clip
    forbids a PASS, as in older evidence it didn't.
    """
    made = []
    for criterion in criteria:
        groups = _classes(found, labels, criterion.kind) if criterion.kind in ("miss", "alarm") else membership
        for name, whole in groups.items():
            mask = whole & stored_then(found) if criterion.kind == "since" else whole
            if mask.any():
                mask = mask if found.sample is None else once(mask, found.sample)
                estimate = _estimate(found, criterion, name, labels, mask, clusters)
                if not beyond and isinstance(estimate, Mean):
                    estimate = replace(estimate, beyond=0, raw=None)
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
        return estimate_of(values, who, _span(criterion, group, len(values) if who is None else len(np.unique(who))))
    before = found.old if criterion.kind == "drop" else found.then
    assert before is not None
    return change_of(values, before[mask], who)


def _span(criterion: Criterion, group: str, units: int) -> Span | None:
    """Where losses are cut: as asked, else as the table of promises does."""
    if criterion.kind != "loss":
        return None
    limit = criterion.of(group)
    return Span(criterion.clip) if criterion.clip else span_of(Limit(f"{limit:g}", "loss", value=limit), units)


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
