"""`pdcl.gate`: does this model keep its limits, with known confidence?"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pdcl.errors import UsageError
from pdcl.given import path_of, short
from pdcl.lifelong.learner import Learner
from pdcl.lifelong.rows import audit_rows, is_table
from pdcl.records.schema import CONFIG
from pdcl.release.advice import labels_of, levers
from pdcl.release.amounts import Stated
from pdcl.release.covering import Coverage, coverage, listed
from pdcl.release.criteria import Asked, criteria_of
from pdcl.release.deciding import PASS, UNDECIDED, Row, decide
from pdcl.release.leakage import check_unseen
from pdcl.release.ledger import Ledger
from pdcl.release.ledgers import others_of
from pdcl.release.measuring import Outcomes, membership_by, outcomes, rows, stored_then
from pdcl.release.outcome import Verdict
from pdcl.release.remembering import check_ledger, home_of, remember, sample_of
from pdcl.running.load import load
from pdcl.running.rebuild import recalled
from pdcl.storage.serialize import pack, tensor_bytes
from pdcl.streams.audits import Audit, as_audit
from pdcl.streams.samples import Column, column

# What stands for groups that are no column of the audit set.
GIVEN = "given"


def gate(
    model: Learner | str | Path,
    audit: Any,
    *,
    max_error: Stated | None = None,
    max_loss: Stated | None = None,
    min_sensitivity: Stated | None = None,
    min_specificity: Stated | None = None,
    max_drop: Stated | None = None,
    against: Learner | str | Path | None = None,
    limits: Mapping[str, Stated] | None = None,
    by: str = "auto",
    groups: Any = None,
    confidence: float | None = None,
    looks: int | None = None,
    clip: float | None = None,
    ledger: str | Path | None = None,
    evidence: str | Path | None = None,
    samples: bool = True,
    network: Any = None,
) -> Verdict:
    """PASS, FAIL or UNDECIDED for a model on audit data that it never learned from.

    model: a learner, or where one was saved. audit: a directory, a stream (its test data), (x, y), or a mapping with
    more columns; rows of a table, where the model learned from one. max_error, max_loss, min_sensitivity,
    min_specificity, max_drop: what is asked, one or several;
    `limits` has those of groups that differ. against: the model that errors may rise by at most max_drop from, on the
    same samples; they may never rise by more since their task was learned, where outcomes of that time are stored.
    by: task, class, a column, or all. groups: a column (or its values) whose samples aren't independent, such as
    patients. confidence (0.95) and looks (1) are fixed by the first look at an audit set. clip: where losses are cut
    off. evidence: a new directory for all that the verdict rests on; without `samples` it holds no sample content.
    network: the module of a saved learner that has its own.
    """
    if evidence is not None:
        from pdcl.release.folder import check_place

        check_place(path_of(evidence, "evidence"))
    if ledger is not None:
        path_of(ledger, "ledger")
    compared = against is not None
    criteria = criteria_of(max_error, max_loss, min_sensitivity, min_specificity, limits, clip, max_drop, compared)
    learner = loaded(model, network)
    examined = as_audit(audit_rows(learner, audit) if is_table(audit) else audit)
    # Two models must not share one module.
    old = None if against is None else loaded(against, copy.deepcopy(network))
    clusters, named = _clusters(examined, groups)
    if by == "auto":
        by = "task" if "task" in examined.columns else "all"
    case = Case.of(learner, examined, Asked(criteria, None if by == "all" else by, named), clusters, old)
    command = ""
    if not isinstance(model, Learner) and not isinstance(against, Learner) and named != GIVEN:
        command = case.asked.command(str(model), examined.name, None if against is None else str(against))
    book, home = Ledger(ledger or examined.place), home_of(learner)
    check_ledger(book, case.audit, learner, home, None if evidence is None else Path(evidence))
    verdict = case.judged(book, confidence, looks, command, home)
    if evidence is not None:
        from pdcl.release.evidence import write_evidence

        write_evidence(case, verdict, book, evidence, samples)
    return verdict


@dataclass(frozen=True)
class Case:
    """A model, an audit set and a question; `clusters` says who each sample is of, `old` what it is compared with."""

    learner: Learner
    audit: Audit
    asked: Asked
    clusters: Column | None = None
    old: Learner | None = None

    @classmethod
    def of(
        cls,
        learner: Learner,
        audit: Audit,
        asked: Asked,
        clusters: Column | None = None,
        old: Learner | None = None,
    ) -> Case:
        """With the rows of the audit set in the order of their hashes, so that how they lie can't move a p-value."""
        order = audit.order()
        return cls(learner, audit.taken(order), asked, None if clusters is None else clusters[order], old)

    def judged(
        self, ledger: Ledger, confidence: float | None, looks: int | None, command: str, home: Path | None = None
    ) -> Verdict:
        """The verdict. What can be refused is refused before the look is written down. home: where the model is."""
        made = self.rows()
        notes = [check_unseen(self.learner, self.audit, self.clusters), *self.asked.assumptions()]
        if copies := self.outcomes.copies:
            notes.append(f"{copies:,} of the {len(self.audit):,} audit samples are copies of others; each counts once.")
        notes += self.coverage.notes
        if self.asked.paired and (missing := self.without_reference):
            notes.append(f"Not compared with what was when it was learned, as no outcome is stored: {listed(missing)}.")
        sample = sample_of(self.audit)
        others, unread = others_of(ledger, home)
        look = ledger.look(self.question, looks, confidence, sample, others)
        decision = decide(made, look.level)
        if not self.coverage and decision.verdict == PASS:
            decision = replace(decision, verdict=UNDECIDED)
        answers = [[row.criterion, row.group, row.verdict] for row in decision.rows]
        ledger.note(look, {"verdict": decision.verdict, "rows": answers})
        untold = remember(home, ledger, self.audit, sample)
        notes += [f"Ledger: {ledger.path}", *unread]
        notes += [f"{place} can't be written, so that it doesn't know of this look." for place in untold]
        help_ = levers(self.learner, decision.rows, self.asked.by, self.task_names, look.looks)
        return Verdict(decision, look, self.question, notes, help_, command)

    @cached_property
    def outcomes(self) -> Outcomes:
        return outcomes(self.learner, self.audit, self.old)

    @property
    def division(self) -> Column | None:
        """The group of each sample, where groups are a column."""
        by = self.asked.by
        return None if by in (None, "class") else self.audit.column(str(by), f"by={by}")

    def rows(self) -> list[Row]:
        labels = labels_of(self.learner)
        membership = membership_by(self.division, self.asked.by, self.outcomes, labels)
        return rows(self.outcomes, self.asked.criteria, membership, labels, self.clusters)

    @property
    def without_reference(self) -> list[str]:
        """Groups of past tasks with samples whose outcome from the time when they were learned isn't stored."""
        newest = self.task_names[-1:] if self.asked.by == "task" else []
        membership = membership_by(self.division, self.asked.by, self.outcomes, labels_of(self.learner))
        there = stored_then(self.outcomes)
        return [name for name, mask in membership.items() if name not in newest and not there[mask].all()]

    @cached_property
    def coverage(self) -> Coverage:
        """Which tasks and classes that the model learned have no audit sample."""
        return coverage(self.learner, self.audit, self.outcomes.truth, labels_of(self.learner))

    @cached_property
    def question(self) -> dict[str, Any]:
        about: dict[str, Any] = {
            "model": model_hash(self.learner),
            "audit": self.audit.hash(),
            "samples": len(self.audit),
        }
        if self.asked.groups == GIVEN and self.clusters is not None:
            about["clusters"] = hashlib.sha256(repr(self.clusters.tolist()).encode()).hexdigest()
        about |= self.coverage.as_json()
        if self.old is not None:
            about["against"] = model_hash(self.old)
        if self.asked.paired and self.outcomes.then is not None:
            about["then"] = hashlib.sha256(self.outcomes.then.tobytes()).hexdigest()
        return {**about, **self.asked.as_json()}

    @property
    def task_names(self) -> list[str]:
        """What the learner's tasks are called, in the order learned."""
        return [str(entry["name"]) for entry in self.learner.lineage.tasks] or list(self.audit.tasks)


def loaded(model: Learner | str | Path, network: Any = None) -> Learner:
    """The learner itself, the one saved in a directory, or the one that a run ended with."""
    if isinstance(model, Learner):
        if network is not None:
            raise UsageError("network has no effect on a learner that is here already; it is for saved ones")
        if model.spec is None:
            raise UsageError("this learner has learned nothing yet; there is nothing to judge or to compare with")
        return model
    if (path_of(model, "model") / CONFIG).is_file():
        return recalled(model, network)[0]
    return load(model, **({} if network is None else {"network": network}))


def model_hash(learner: Learner) -> str:
    """sha256 of the weights, and of memory, which some methods classify by."""
    digest = hashlib.sha256(type(learner).__name__.encode())
    memory = None if learner.store is None else learner.store.state_dict()["columns"]
    tensors, rest = pack({"network": learner.model.state_dict(), "memory": memory})
    digest.update(tensor_bytes(tensors))
    digest.update(repr(rest).encode())
    return digest.hexdigest()


def _clusters(audit: Audit, groups: Any) -> tuple[Column | None, str | None]:
    if groups is None:
        return None, None
    if isinstance(groups, str):
        return audit.column(groups, f"groups={groups}"), groups
    values = column(groups)
    if values.ndim != 1:
        raise UsageError(f"groups={short(groups)} must be a column's name, or one value per audit sample")
    if len(values) != len(audit):
        raise UsageError(f"{len(values)} groups for {len(audit)} audit samples; give one per sample")
    return np.asarray(values), GIVEN
