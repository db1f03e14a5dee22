"""Audit data must not be training data: what a learner's lineage has seen is refused."""

from __future__ import annotations

import numpy as np

from pdcl.errors import UsageError
from pdcl.lifelong.entry import FORGOTTEN
from pdcl.lifelong.learner import Learner
from pdcl.streams.audits import Audit
from pdcl.streams.hashes import name_hashes, sample_hashes
from pdcl.streams.samples import Column

SHOWN = 5


def check_unseen(learner: Learner, audit: Audit, groups: Column | None) -> str:
    """Refuse an audit set with samples, or groups, that the learner was trained on; otherwise say what was checked."""
    seen = learner.lineage.settle()
    if not len(seen.samples):
        return "Not checked: whether audit samples were trained on (this learner's lineage is empty)."
    hashes = sample_hashes(audit.x, seen.key).numpy()
    _refuse(np.isin(hashes, seen.samples.numpy()), "samples", [str(i) for i in range(len(audit))], audit)
    if groups is not None and len(seen.groups):
        names = [str(group) for group in groups.tolist()]
        _refuse(np.isin(name_hashes(names, seen.key).numpy(), seen.groups.numpy()), "samples of groups", names, audit)
    return f"No audit sample is among the {len(seen.samples):,} that the model's lineage has learned."


def untraceable(learner: Learner) -> list[str]:
    """Samples that an older pdcl forgot, and their hashes too: audit data may be among them, and nothing shows it."""
    forgotten = [entry["result"] for entry in learner.lineage.entries if entry["how"] == FORGOTTEN]
    lost = any(result.get("hashes") != "kept" for result in forgotten)
    return ["samples that an older pdcl forgot without keeping their hashes"] if lost else []


def _refuse(known: Column, what: str, names: list[str], audit: Audit) -> None:
    if not known.any():
        return
    rows = list(dict.fromkeys(name for name, hit in zip(names, known.tolist(), strict=True) if hit))
    shown = ", ".join(rows[:SHOWN]) + (", …" if len(rows) > SHOWN else "")
    raise UsageError(
        f"{int(known.sum())} of the {len(audit)} {what} in audit set {audit.name} were trained on ({shown}): "
        "a verdict from them would say nothing about new data. Take them out"
    )
