"""A case put together again from its evidence, with the model at hand."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from pdcl.release.criteria import Asked
from pdcl.release.folder import BadEvidence
from pdcl.release.gate import Case, loaded
from pdcl.streams.audits import as_audit, read_audit


def recalled(place: Path, model: Any, audit: Any = None, network: Any = None, against: Any = None) -> Case:
    """The model on the audit set that is given, or else on the samples in the evidence."""
    if audit is None and not (place / "samples.npz").is_file():
        raise BadEvidence(f"{place} was made without samples: give the audit set, too, with --audit")
    examined = as_audit(audit) if audit is not None else read_audit(place)
    question = json.loads((place / "verdict.json").read_text(encoding="utf-8"))["question"]
    old = None if against is None else loaded(against, copy.deepcopy(network))
    return Case.of(loaded(model, network), examined, Asked.from_json(question), old=old)
