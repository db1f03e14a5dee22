"""Who else knows of the looks at an audit set, so that neither a copy of it nor a cut ledger makes them anew.

Looks are written into three ledgers: that of the audit set, `looks.jsonl` beside a saved model, and the user's, of all
audit sets. A copy of the audit set alone, or of the model alone, leaves two of them.

A trace is how long a ledger was and the hash of its last entry. It stands in `looks.json` beside a saved model, in the
lineage of an updated one, and in every evidence folder. A ledger that lacks what a trace saw was cut, emptied or
replaced.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from pdcl.errors import PdclError
from pdcl.lifelong.learner import Learner
from pdcl.release.ledger import RESTORE, Ledger, checked
from pdcl.release.ledgers import OWN, others_of, tell
from pdcl.release.looks import LedgerError, Sample
from pdcl.release.marks import marks_of
from pdcl.storage.disk import read_regular, write_whole
from pdcl.storage.vault import MANIFEST, PREVIOUS
from pdcl.streams.audits import Audit
from pdcl.streams.hashes import sample_hashes

LOOKS = "looks.json"
LARGEST = 2**24
Trace = dict[str, Any]


def trace(ledger: Ledger, audit: str) -> Trace:
    """The ledger as it is now; audit: the hash of the audit set."""
    entries = ledger.entries()
    return {"ledger": str(ledger.path.resolve()), "audit": audit, "entries": len(entries), "head": entries[-1]["hash"]}


def home_of(learner: Learner) -> Path | None:
    """Where the model is saved; looks at its state before the newest one count there, too."""
    home = learner.home
    if home is None or not (home / MANIFEST).is_file():
        return None
    return home.absolute().parent if home.absolute().name == PREVIOUS else home


def sample_of(audit: Audit) -> Sample:
    return Sample(marks_of(audit.x), audit.hash())


def check_ledger(
    ledger: Ledger, audit: Audit, learner: Learner, model: Path | None = None, evidence: Path | None = None
) -> None:
    """Raise LedgerError where a look at this audit set is remembered that the ledger doesn't hold.

    Where another ledger knows the looks themselves, they count in that of a copy, too, and it lacks nothing.
    """
    content, place = audit.hash(), str(ledger.path.resolve())
    known = [each for each in (*_beside(model), *_in_evidence(evidence)) if each.get("audit") == content]
    known += _in_lineage(learner, audit, content, ledger)
    entries = ledger.entries()
    told = any(each.question.get("audit") == content for each in others_of(ledger, model)[0])
    for each in known:
        if told and each.get("ledger") not in (None, place):
            continue
        count = each["entries"]
        if len(entries) < count or entries[count - 1]["hash"] != each["head"]:
            raise LedgerError(
                f"{ledger.path} lacks looks at this audit set that were taken before ({each['where']} knows of "
                f"{count} entries, {len(entries)} are there): it was cut, emptied or replaced; {RESTORE}"
            )


def remember(model: Path | None, ledger: Ledger, audit: Audit, sample: Sample) -> list[str]:
    """Tell the user's ledgers and the model's directory of the looks at this audit set; who couldn't be told."""
    looks = ledger.past(sample)
    silent = tell(Ledger(audit.shelf), ledger, looks)
    if model is None:
        return silent
    newest = trace(ledger, audit.hash())
    about = ("audit", "ledger")
    held = [each for each in _read(model / LOOKS) if any(each.get(name) != newest[name] for name in about)]
    with suppress(OSError):
        write_whole(model / LOOKS, json.dumps([*held, newest], indent=1).encode())
    return silent + tell(Ledger(model / OWN), ledger, looks)


def _beside(model: Path | None) -> list[Trace]:
    return [] if model is None else [{**each, "where": model / LOOKS} for each in _read(model / LOOKS)]


def _read(path: Path) -> list[Trace]:
    try:
        found = json.loads(read_regular(path, LARGEST))
    except (PdclError, ValueError, RecursionError):
        return []
    usable = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    return [each for each in found if _is_trace(each)] if usable else []


def _is_trace(each: Trace) -> bool:
    return isinstance(each.get("entries"), int) and each["entries"] > 0 and isinstance(each.get("head"), str)


def _in_evidence(evidence: Path | None) -> list[Trace]:
    """What the other evidence folders beside this one hold."""
    found = []
    for place in sorted(evidence.parent.glob("*/ledger.jsonl")) if evidence is not None else ():
        with suppress(PdclError, ValueError, KeyError, TypeError, RecursionError):
            question = json.loads(read_regular(place.with_name("verdict.json"), LARGEST))["question"]
            entries = checked(read_regular(place, LARGEST), str(place))
            found.append(
                {
                    "audit": question["audit"],
                    "entries": len(entries),
                    "head": entries[-1]["hash"],
                    "where": place.parent,
                }
            )
    return found


def _in_lineage(learner: Learner, audit: Audit, content: str, ledger: Ledger) -> list[Trace]:
    """Traces of updates: at this very audit set, or at one in the same place that shares samples with it."""
    updates = [entry["result"].get("update") for entry in learner.lineage.entries]
    traces = [each["trace"] for each in updates if isinstance(each, dict) and each.get("trace")]
    place = str(ledger.path.resolve())
    same = [each for each in traces if each["audit"] == content or each["ledger"] == place]
    if not same:
        return []
    known = torch.isin(sample_hashes(audit.x, learner.lineage.key), learner.lineage.references.hashes)
    shared = bool(known.any())
    return [{**each, "where": "the model's lineage"} for each in same if each["audit"] == content or shared]
