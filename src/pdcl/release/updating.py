"""`pdcl.update`: one month's update as one step. The updated model takes the place of the old one, or nothing changes.

    data → part of it set aside as audit data → candidate → guards and promises → gate → promoted, or refused

Until the gate has answered, everything happens out of sight (`workspace`). Saving the promoted model is the one step
that decides; a call that is interrupted anywhere and made again goes on to the same end.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from pdcl.errors import PdclError, UsageError
from pdcl.given import path_of
from pdcl.learning.events import Listener, Warned, ignore
from pdcl.learning.schedule import Schedule
from pdcl.lifelong.arguments import check_arguments, check_text
from pdcl.lifelong.audit_place import made_identity
from pdcl.lifelong.audit_split import Planned, plan_aside
from pdcl.lifelong.entry import LEARNED, REFUSED
from pdcl.lifelong.inputs import check_inputs
from pdcl.lifelong.learner import Learner
from pdcl.lifelong.new_task import check_labels, kind_of
from pdcl.lifelong.references import measured, note_references
from pdcl.lifelong.save import new_state_id, save
from pdcl.lifelong.violation import breaks
from pdcl.lifelong.warning import Warnings
from pdcl.release.amounts import Stated, amount_of, amounts_of
from pdcl.release.criteria import criteria_of
from pdcl.release.deciding import UNDECIDED
from pdcl.release.decisions import (
    PROMOTED,
    Update,
    broken,
    changed_since,
    changes,
    decided,
    gated,
    reason_of,
    ungated,
)
from pdcl.release.folder import check_place
from pdcl.release.gate import gate
from pdcl.release.ledger import Ledger
from pdcl.release.outcome import Verdict
from pdcl.release.remembering import trace
from pdcl.release.update_job import LIMITS, Job, own_audit_set, rows_of
from pdcl.release.workspace import Workspace
from pdcl.running.load import load
from pdcl.storage.cache import LEDGER
from pdcl.storage.disk import read_regular
from pdcl.streams.audits import SAMPLES, Audit, as_audit


def update(
    model: str | Path,
    data: Any,
    *,
    name: str | None = None,
    audit: str | Path | None = None,
    max_drop: Stated | None = None,
    max_error: Stated | None = None,
    max_loss: Stated | None = None,
    min_sensitivity: Stated | None = None,
    min_specificity: Stated | None = None,
    limits: Mapping[str, Stated] | None = None,
    by: str = "auto",
    groups: str | None = None,
    confidence: float | None = None,
    looks: int | None = None,
    audit_share: float = 0.1,
    audit_budget: int | None = None,
    tolerance: Any = None,
    epochs: int | None = None,
    batch: int | None = None,
    evidence: str | Path | None = None,
    samples: bool = True,
    again: bool = False,
    accept_undecided: bool = False,
    why: str | None = None,
    listener: Listener = ignore,
    **handed: Any,
) -> Update:
    """Learn `data` as the task `name`, and use the updated model only if it passes the gate.

    model: where the model is saved. data: a directory or file with arrays x, y and columns, (x, y), or a mapping; for
    a model that learned from `pdcl.table` a CSV or Parquet file, a DataFrame or a list of dicts. name: by default what
    the task column of such a table says.
    audit: the directory of the audit set; `audit_share` of the data, at most `audit_budget` samples in all, goes there
    before anything is learned (0: nothing; the set is complete). Without it, the set that the model filled, if it lies
    beside the model. Where no limit of the gate is stated, the model's own limits decide, on its witnesses.
    max_drop: the largest rise of an error rate, against the model in use and since each task was learned; the other
    limits, by, groups, confidence, looks, evidence and samples are those of `pdcl.gate`. tolerance, epochs, batch: of
    `learn`. The same name and data again is recognised, and decided again only with `again`. accept_undecided: promote
    what the gate can't decide, for the reason `why`, which lineage, ledger and report keep; a FAIL is never accepted.
    handed: what `pdcl.load` needs, such as network=.
    """
    given = dict(zip(LIMITS, (max_drop, max_error, max_loss, min_sensitivity, min_specificity), strict=True))
    stated = {name: None if value is None else amount_of(value, name) for name, value in given.items()}
    limits = amounts_of(limits, next((name for name, value in given.items() if value is not None), None)) or None
    accepted = reason_of(accept_undecided, why)
    asked = {**stated, "limits": limits, "by": by, "confidence": confidence, "looks": looks}
    path = path_of(model, "model")
    place = own_audit_set(path, handed) if audit is None else path_of(audit, "audit")
    gated_by = [name for name, value in {**asked, "evidence": evidence}.items() if value not in (None, "auto")]
    if audit is not None or gated_by:
        criteria_of(max_error, max_loss, min_sensitivity, min_specificity, limits, None, max_drop, max_drop is not None)
    if place is None and gated_by:
        raise UsageError(f"{gated_by[0]} needs an audit set, and the model has none beside it; name one: audit=DIR")
    found, own_name = rows_of(path, data, groups, handed)
    name = own_name if name is None else name
    Schedule(**{key: value for key, value in (("epochs", epochs), ("batch", batch)) if value is not None})
    check_text(str(name), "name")
    if name is None or not str(name).strip():
        raise UsageError(f"name={name!r} is empty; an update is known by its name, such as 2026-12")
    name = str(name)
    if audit_share != 0 and place is not None:
        check_arguments(None, None, None, None, place, audit_share, audit_budget)
    folder = None if evidence is None else path_of(evidence, "evidence")
    job = Job(path, name, place, found, asked, folder, samples, accepted)
    training = {"tolerance": tolerance, "epochs": epochs, "batch": batch}
    with Workspace(path, place) as work:
        old = load(path, **copy.deepcopy(handed))
        known = decided(old.lineage, name, job.data)
        if known is not None and (known or not (again or (accepted and known.undecided))):
            # What an interrupted call left there: it was decided before it could tidy up.
            work.clear()
            return replace(known, changed=changes(known.record["limits"], job.stated))
        check_labels(old, found, kind_of(old, None))
        if old.spec is not None and old.backbone is None and isinstance(found.inputs, Tensor):
            check_inputs(found.inputs, old.spec)
        planned = _planned(job, old, audit_share, audit_budget)
        key = job.key(old, planned, training)
        about = job.about(key)
        written = job.evidence is not None and _written(job.evidence, about)
        candidate = work.candidate(key, copy.deepcopy(handed))
        if candidate is None:
            candidate = load(path, **copy.deepcopy(handed))
            _learn(candidate, job, planned, {**training, "listener": listener}, about, old)
            work.keep(candidate)
        else:
            # The call that was interrupted may have asked otherwise.
            _amended(candidate, {"update": about})
        candidate.home = path
        return _decide(job, work, old, candidate, planned, written)


def _planned(job: Job, old: Learner, share: float, budget: int | None) -> Planned | None:
    if job.audit is None:
        return None
    if share == 0:
        if budget is not None:
            raise UsageError("audit_budget has no effect with audit_share=0: nothing is set aside")
        as_audit(job.audit)
        return None
    return plan_aside(job.samples, job.audit, job.name, old, share, budget)


def _learn(
    candidate: Learner,
    job: Job,
    planned: Planned | None,
    training: dict[str, Any],
    about: dict[str, Any],
    old: Learner,
) -> None:
    """Learn what isn't set aside; the entry holds the key, by which an interrupted update finds its candidate."""
    rest = job.samples if planned is None else planned.rest
    given = {name: value for name, value in training.items() if value is not None}
    columns = dict(rest.columns) or None
    if planned is not None and planned.note is not None:
        Warnings(candidate, training["listener"]).on_event(Warned(candidate.tasks_learned, planned.note))
    candidate.learn(rest.inputs, rest.targets, groups=rest.groups, columns=columns, name=job.name, **given)
    audit = None if planned is None else asdict(planned.about)
    _amended(candidate, {"audit": audit, "update": about})
    if job.audit is not None and (before := _of_past_tasks(job.audit, old)):
        candidate.lineage.references = candidate.lineage.references.joined(measured(old, before))


def _of_past_tasks(place: Path, old: Learner) -> Audit | None:
    """Audit samples of tasks that the old model has learned: its outcomes count where no earlier ones are stored."""
    assert old.spec is not None
    if not (place / SAMPLES).exists() or old.spec.kind == "regression":
        return None
    held = as_audit(place)
    if "task" not in held.columns:
        return held
    names = {str(entry["name"]) for entry in old.lineage.tasks}
    rows = [row for row, task in enumerate(held.columns["task"].tolist()) if str(task) in names]
    return held.taken(np.asarray(rows)) if rows else None


def _amended(learner: Learner, more: dict[str, Any]) -> None:
    last = learner.lineage.entries[-1]
    learner.lineage.entries[-1] = {**last, "result": {**last["result"], **more}}


def _decide(
    job: Job, work: Workspace, old: Learner, candidate: Learner, planned: Planned | None, written: bool
) -> Update:
    about: dict[str, Any] = {"name": job.name, "data": job.data, "limits": job.stated}
    if moved := changed_since(old.lineage, job.stated):
        about["changed"] = moved
    if breaks(candidate.promises):
        return _refused(job, work, old, candidate, {**about, **broken(candidate.promises)}, None)
    if job.audit is None or not job.gated:
        return _promoted(job, work, candidate, planned, {**about, **ungated(candidate.promises)}, None)
    verdict = _judged(job, old, candidate, planned, written)
    seen = trace(Ledger(job.audit / LEDGER), verdict.question["audit"])
    place = None if job.evidence is None else str(job.evidence)
    record = {**about, **gated(verdict), "trace": seen, "evidence": place}
    if verdict.verdict == UNDECIDED and job.accepted is not None:
        Ledger(job.audit / LEDGER).accept(verdict.look, job.name, job.accepted)
        record |= {"override": job.accepted, "why": f"{record['why']} Accepted by hand: {job.accepted.rstrip('.')}."}
    elif not verdict:
        return _refused(job, work, old, candidate, record, verdict)
    return _promoted(job, work, candidate, planned, record, verdict)


def _judged(job: Job, old: Learner, candidate: Learner, planned: Planned | None, written: bool) -> Verdict:
    examined, asked = job.examined(planned), job.asked
    grouped = "group" if job.samples.groups is not None and "group" in examined.columns else None
    against = None if asked["max_drop"] is None else old
    evidence = None if written else job.evidence
    return gate(
        candidate, examined, **asked, against=against, groups=grouped, evidence=evidence, samples=job.keep_samples
    )


def _written(place: Path, about: dict[str, Any]) -> bool:
    """Whether this evidence was written by this very update, before it was interrupted; any other is refused."""
    try:
        check_place(place)
    except UsageError:
        with suppress(PdclError, ValueError, LookupError, TypeError, RecursionError):
            if json.loads(read_regular(place / "lineage.json"))["tasks"][-1]["result"]["update"] == about:
                return True
        raise
    return False


def _refused(
    job: Job, work: Workspace, old: Learner, candidate: Learner, record: dict[str, Any], verdict: Verdict | None
) -> Update:
    """The old model stays; its lineage says what the candidate would have done."""
    entry = candidate.lineage.entries[-1]
    result = {**entry["result"], "audit": None, "update": record}
    old.lineage.note_change(entry["task"], job.name, result, REFUSED)
    save(old, job.model, amend=True)
    work.clear()
    return Update(job.name, REFUSED, record["why"], record, verdict)


def _promoted(
    job: Job,
    work: Workspace,
    candidate: Learner,
    planned: Planned | None,
    record: dict[str, Any],
    verdict: Verdict | None,
) -> Update:
    assert candidate.lineage.entries[-1]["how"] == LEARNED
    _amended(candidate, {"update": record})
    if verdict is not None:
        note_references(candidate, job.examined(planned))
    state = new_state_id()
    if planned is not None and job.audit is not None:
        _amended(candidate, {"audit": {**asdict(planned.about), "id": made_identity(job.audit)}})
        if len(planned.new["y"]):
            work.plan(state, job.audit, add=planned.new)
    save(candidate, job.model, state)
    work.finish()
    work.clear()
    return Update(job.name, PROMOTED, record["why"], record, verdict)
