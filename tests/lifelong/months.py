"""A model that learns a month at a time, with its audit set: what tests of updates, rollbacks and kills start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import pdcl
from pdcl.release.gate import model_hash
from pdcl.release.ledger import Ledger
from pdcl.streams.audits import read_audit

ASKED = {"max_drop": 0.06, "looks": 20, "audit_share": 0.5, "epochs": 4, "by": "task"}
WORDS = ("--max-drop", "0.06", "--looks", "20", "--audit-share", "0.5", "--epochs", "4", "--by", "task")
# The k-th touch of the disk by a real process is its last.
KILLED = """
import os, signal
at, log, words = args
os.environ["PDCL_LEDGERS"] = os.path.join(os.path.dirname(log), "ledgers")
count = 0
def wrap(name):
    real = getattr(os, name)
    def touched(*given, **more):
        global count
        if name != "open" or given[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **more)
    setattr(os, name, touched)
for each in ("open", "replace", "unlink", "mkdir", "rmdir"):
    wrap(each)
from pdcl.cli import main
code = main(words)
with open(log, "w") as file:
    file.write(f"{code} {count}")
"""


def month(number: int, n: int = 260, classes: tuple[int, ...] = (0, 1)) -> dict[str, Any]:
    random = np.random.default_rng(number)
    y = np.asarray(classes)[random.integers(0, len(classes), n)]
    x = random.normal(0, 0.3, (n, 4)).astype(np.float32)
    x[np.arange(n), y] += 4
    return {"x": x, "y": np.asarray([f"c{c}" for c in y]), "plan": np.asarray(["gold", "basic"])[np.arange(n) % 2]}


def write(place: Path, data: dict[str, Any]) -> Path:
    np.savez(place, **data)
    return place


def begin(place: Path, learner: Any) -> Path:
    """The learner with one month behind it, saved, with its audit set beside it."""
    first = month(0)
    learner.learn(
        first["x"],
        first["y"],
        columns={"plan": first["plan"]},
        name="m0",
        epochs=6,
        audit=place / "audit",
        audit_share=0.5,
    )
    learner.save(place / "model")
    return place


def updated(life: Path, name: str, data: dict[str, Any], **more: Any) -> Any:
    return pdcl.update(life / "model", data, name=name, audit=life / "audit", **{**ASKED, **more})


def seen(life: Path) -> tuple[Any, ...]:
    """What readers get: the model, its tasks, its decisions, the audit set and the looks."""
    learner = pdcl.load(life / "model")
    entries = [(e["name"], e["how"], (e["result"].get("update") or {}).get("why")) for e in learner.lineage.entries]
    looks = [e["kind"] for e in Ledger(life / "audit" / "ledger.jsonl").entries()]
    return model_hash(learner), tuple(entries), read_audit(life / "audit").hash(), tuple(looks)


def wrong(number: int) -> dict[str, Any]:
    """A month whose labels are swapped: what it teaches breaks what was known."""
    data = month(number)
    return {**data, "y": np.where(data["y"] == "c0", "c1", "c0")}


def words_of(life: Path, name: str, data: dict[str, Any]) -> list[str]:
    place = write(life / f"{name}.npz", data)
    where = [
        "--data",
        str(place),
        "--name",
        name,
        "--audit",
        str(life / "audit"),
        "--evidence",
        str(life / "ev" / name),
    ]
    return ["update", str(life / "model"), *where, *WORDS]
