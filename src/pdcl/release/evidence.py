"""The evidence folder: all that a verdict rests on, hashed, so that anyone can recompute it later.

verdict.json, verdict.md, junit.xml     the verdict, with its question, notes, versions and the command that repeats it
outcomes.npz                            what the model did with each sample: error, loss, truth, answer, group
ledger.jsonl, lineage.json              the looks so far; what the model learned, where it knows
samples.npz                             the audit samples themselves, unless they must stay out
manifest.json                           sha256 of each of these
"""

from __future__ import annotations

import json
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from pdcl.errors import PdclError
from pdcl.release.advice import labels_of
from pdcl.release.covering import Coverage
from pdcl.release.criteria import Asked
from pdcl.release.deciding import PASS, UNDECIDED, decide
from pdcl.release.folder import BadEvidence, check_place, json_bytes, packed, unchanged, write_folder
from pdcl.release.gate import Case, model_hash
from pdcl.release.ledger import Ledger, checked
from pdcl.release.log_evidence import recompute
from pdcl.release.looks import digest, taken
from pdcl.release.measuring import Outcomes, membership_by, rows
from pdcl.release.outcome import BEYOND, ORDERLESS, Verdict
from pdcl.release.output import as_json, as_junit, as_markdown
from pdcl.streams.npz import read_npz
from pdcl.streams.samples import Column

# What damaged files make of code that believes them.
UNFIT = (
    ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, AssertionError, EOFError, OSError,
    RecursionError, BadZipFile, zlib.error, NotImplementedError,
)  # fmt: skip
OUTCOMES = tuple(each.name for each in fields(Outcomes))


def write_evidence(case: Case, verdict: Verdict, ledger: Ledger, place: str | Path, samples: bool = True) -> Path:
    """Fill a new directory. One that holds anything is refused before a verdict could replace another."""
    path = Path(place)
    check_place(path)
    parts = {
        "verdict.json": as_json(verdict).encode(),
        "verdict.md": as_markdown(verdict).encode(),
        "junit.xml": as_junit(verdict).encode(),
        "outcomes.npz": packed(_outcomes(case)),
        "ledger.jsonl": ledger.text().encode(),
        "lineage.json": json_bytes(case.learner.lineage.as_json()),
    }
    if samples:
        audit = case.audit
        parts["samples.npz"] = packed({"x": audit.x.numpy(), "y": audit.y, **audit.columns})
    return write_folder(path, parts)


def verify(place: str | Path, case: Case | None = None) -> dict[str, Any]:
    """Recompute a verdict from its evidence, and from model and audit set where given; the verdict, if all agrees."""
    path = Path(place)
    try:
        return _verified(path, case)
    except UNFIT as error:
        if isinstance(error, PdclError):
            raise
        text = " ".join(str(error).split())
        raise BadEvidence(f"{path} is damaged: {type(error).__name__}: {text}") from error


def _verified(path: Path, case: Case | None) -> dict[str, Any]:
    parts = unchanged(path)
    verdict: dict[str, Any] = json.loads(parts["verdict.json"])
    held = _unpacked(parts["outcomes.npz"])
    if "before" in verdict["question"]:
        if case is not None:
            raise BadEvidence(f"{path} is on two logs, not on a model: verify it without MODEL")
        recompute(verdict, held)
        _compare_ledger(verdict, checked(parts["ledger.jsonl"], f"{path}/ledger.jsonl"))
        return verdict
    found = Outcomes(*(held.get(name) for name in OUTCOMES))  # type: ignore[arg-type]
    _compare_rows(verdict, found, held)
    _compare_ledger(verdict, checked(parts["ledger.jsonl"], f"{path}/ledger.jsonl"))
    if case is not None:
        _compare_case(verdict, found, case)
    return verdict


def _compare_rows(verdict: dict[str, Any], found: Outcomes, held: dict[str, Column]) -> None:
    asked, labels = Asked.from_json(verdict["question"]), held["labels"].tolist()
    membership = membership_by(held.get("division"), asked.by, found, labels)
    made = rows(found, asked.criteria, membership, labels, held.get("clusters"), verdict["schema"] >= BEYOND)
    again = decide(made, verdict["look"]["level"])
    stated = [(row["group"], row["verdict"], row["estimate"], row["lower"], row["upper"]) for row in verdict["rows"]]
    computed = [(row.group, row.verdict, row.estimate, row.lower, row.upper) for row in again.rows]
    same = len(stated) == len(computed) and all(_close(a, b) for a, b in zip(stated, computed, strict=True))
    covered = bool(Coverage.from_json(verdict["question"]))
    expected = UNDECIDED if again.verdict == PASS and not covered else again.verdict
    if not same or expected != verdict["verdict"]:
        raise BadEvidence(f"the outcomes give {expected} with {computed}, not {verdict['verdict']} with {stated}")


def _close(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    here, there = ([np.inf if value is None else value for value in each[2:]] for each in (one, other))
    return one[:2] == other[:2] and np.allclose(here, there, rtol=1e-6, atol=1e-9)


def _compare_ledger(verdict: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    number, key = verdict["look"]["number"], digest(verdict["question"])
    look = next((each.look for each in taken(entries, Path("ledger.jsonl")) if each.look.key == key), None)
    if look is None or look.number != number:
        raise BadEvidence(f"the ledger doesn't hold look {number} with this question")
    if (look.looks, look.confidence) != (verdict["look"]["of"], verdict["confidence"]):
        raise BadEvidence("the ledger planned other looks, or another confidence, than the verdict states")
    if not np.isclose(verdict["look"]["level"], look.level, rtol=1e-9):
        raise BadEvidence(f"a look errs with {look.level:g} under this plan, not {verdict['look']['level']:g}")


def _compare_case(verdict: dict[str, Any], found: Outcomes, case: Case) -> None:
    question = verdict["question"]
    if verdict["schema"] < ORDERLESS:
        raise BadEvidence("an older pdcl wrote this evidence and hashed audit sets otherwise; verify it without MODEL")
    if case.old is not None and question.get("against") != model_hash(case.old):
        raise BadEvidence("this old model is another than the one that the verdict compares with")
    for what, stated, here in (
        ("model", question["model"], model_hash(case.learner)),
        ("audit set", question["audit"], case.audit.hash()),
    ):
        if stated != here:
            raise BadEvidence(f"this {what} is another: sha256 {here[:16]}…, the verdict is on {stated[:16]}…")
    now = case.outcomes
    same_errors = _equal(found.error, now.error) and (case.old is None or _equal(found.old, now.old))
    if not same_errors or not np.allclose(found.loss, now.loss, rtol=1e-4, atol=1e-5):
        raise BadEvidence("the model answers the audit set otherwise than the evidence says")


def _equal(stated: Any, now: Any) -> bool:
    return stated is None or (now is not None and np.array_equal(stated, now))


def _outcomes(case: Case) -> dict[str, Column]:
    found = case.outcomes
    division, clusters = case.division, case.clusters
    held: dict[str, Column | None] = {
        **{name: getattr(found, name) for name in OUTCOMES},
        "labels": np.asarray(labels_of(case.learner)),
        "division": None if division is None else np.asarray([str(value) for value in division.tolist()]),
        # Codes instead of names: who a sample is of is sample content.
        "clusters": None if clusters is None else np.unique(clusters, return_inverse=True)[1],
    }
    return {name: values for name, values in held.items() if values is not None}


def _unpacked(content: bytes) -> dict[str, Column]:
    return read_npz(content, "outcomes.npz")
