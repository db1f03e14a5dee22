"""`pdcl.rollback`: the state before the newest update, again in use; what happened stays in the lineage."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from pdcl.errors import StateError
from pdcl.given import path_of
from pdcl.lifelong.entry import REFUSED, ROLLED_BACK, Entry
from pdcl.lifelong.learner import Learner
from pdcl.lifelong.save import new_state_id, save
from pdcl.running.load import load
from pdcl.storage.vault import MANIFEST, PREVIOUS
from pdcl.verdict.workspace import Workspace


def rollback(model: str | Path, *, why: str = "", **handed: Any) -> Entry:
    """Put the state in `previous/` back in use; the entry of it in the lineage.

    What was in use goes to `previous/`. Audit samples that the undone update had set aside leave the audit set, since
    the model that is left has not learned their task. why: a reason for the lineage. handed: what `pdcl.load` needs.
    """
    path = path_of(model, "model")
    with Workspace(path) as work:
        if not (path / PREVIOUS / MANIFEST).is_file():
            raise StateError(f"{path} holds no earlier state to go back to", path)
        now, before = (load(place, **copy.deepcopy(handed)) for place in (path, path / PREVIOUS))
        undone = _undone(now, before, path)
        _join(now, before)
        result = {"undone": [entry["name"] for entry in undone], "why": why or "asked for"}
        before.lineage.note_change(before.tasks_learned, ", ".join(map(str, result["undone"])), result, ROLLED_BACK)
        _record(before, undone)
        state = new_state_id()
        if audits := {entry["result"]["audit"]["place"] for entry in undone if entry["result"].get("audit")}:
            work.plan(state, Path(sorted(audits)[-1]), remove=[str(entry["name"]) for entry in undone])
        save(before, path, state)
        work.finish()
    return Entry(before.lineage.entries[-1])


def _undone(now: Learner, before: Learner, path: Path) -> list[dict[str, Any]]:
    """Entries of the tasks that go back."""
    if before.tasks_learned >= now.tasks_learned:
        raise StateError(
            f"{path / PREVIOUS} holds no state before the newest task ({before.tasks_learned} tasks there, "
            f"{now.tasks_learned} in use): a model goes back by one update, and this one did already",
            path,
        )
    return now.lineage.tasks[before.tasks_learned :]


def _join(now: Learner, before: Learner) -> None:
    """What stays known: the ids of all states, and updates that were refused since."""
    since = now.lineage.entries[len(before.lineage.entries) :]
    before.lineage.states = list(now.lineage.states)
    before.lineage.entries += [entry for entry in since if entry["how"] == REFUSED]


def _record(learner: Learner, undone: list[dict[str, Any]]) -> None:
    """The undone update, so that the same data under the same name is recognised."""
    record = undone[-1]["result"].get("update")
    if record is not None:
        last = learner.lineage.entries[-1]
        kept = {**record, "verdict": "FAIL", "why": f"Rolled back: {last['result']['why']}."}
        learner.lineage.entries[-1] = {**last, "result": {**last["result"], "update": kept}}
