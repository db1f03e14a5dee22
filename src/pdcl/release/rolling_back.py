"""`pdcl.rollback`: the state before the newest update, again in use; what happened stays in the lineage."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from pdcl.errors import StateError, UsageError
from pdcl.given import path_of
from pdcl.lifelong.audit_place import beside, recorded_in
from pdcl.lifelong.entry import REFUSED, ROLLED_BACK, UNDONE, Entry
from pdcl.lifelong.learner import Learner
from pdcl.lifelong.save import new_state_id, save
from pdcl.lifelong.warning import warn_people
from pdcl.release.workspace import Workspace
from pdcl.running.load import load
from pdcl.storage.vault import MANIFEST, PREVIOUS


def rollback(model: str | Path, *, audit: str | Path | None = None, why: str = "", **handed: Any) -> Entry:
    """Put the state in `previous/` back in use; the entry of it in the lineage.

    What was in use goes to `previous/`. Audit samples that the undone update had set aside leave the audit set, since
    the model that is left has not learned their task. audit: that audit set; without it, the one beside the model, if
    it has the id that the model recorded, and a warning where there is none. why: a reason for the lineage. handed:
    what `pdcl.load` needs. Made again, it gives the same entry (`entry.repeated`) and goes no further back.
    """
    path, named = path_of(model, "model"), None if audit is None else path_of(audit, "audit")
    if named is not None and not named.is_dir():
        raise UsageError(f"audit={audit}: there is no such directory")
    with Workspace(path, named) as work:
        if not (path / PREVIOUS / MANIFEST).is_file():
            raise StateError(f"{path} holds no earlier state to go back to", path)
        now, before = (load(place, **copy.deepcopy(handed)) for place in (path, path / PREVIOUS))
        if (made := _made_before(now, before)) is not None:
            if named is not None:
                work.plan(now.lineage.states[-1], named, remove=made["result"]["undone"])
                work.finish()
            return made
        undone = _undone(now, before, path)
        _join(now, before, undone)
        result = {"undone": [str(entry["name"]) for entry in undone], "why": why or "asked for"}
        before.lineage.note_change(before.tasks_learned, ", ".join(result["undone"]), result, ROLLED_BACK)
        _record(before, undone)
        state, (place, names, left) = new_state_id(), _set_aside(path, undone, named)
        if place is not None:
            work.plan(state, place, remove=names)
        save(before, path, state)
        work.finish()
    if left:
        warn_people(left)
    return Entry(before.lineage.entries[-1])


def _made_before(now: Learner, before: Learner) -> Entry | None:
    """The rollback that an earlier call made, if nothing has happened since: it may have been killed at its end."""
    last = Entry(now.lineage.entries[-1])
    if not last.rolled_back or "undone" not in last["result"] or before.tasks_learned < now.tasks_learned:
        return None
    last.repeated = True
    return last


def _set_aside(path: Path, undone: list[dict[str, Any]], named: Path | None) -> tuple[Path | None, list[str], str]:
    """The audit set to act on, the undone tasks that it holds samples of, and what to say of one that isn't found."""
    asides = [(str(entry["name"]), recorded) for entry in undone if (recorded := recorded_in(entry)) is not None]
    if not asides or named is not None:
        return named, [str(entry["name"]) for entry in undone], ""
    newest = asides[-1][1]
    place = beside(path, *newest)
    names = [task for task, recorded in asides if place is not None and recorded == newest]
    missing = {task: recorded[0] for task, recorded in asides if task not in names}
    return place, names, _not_found(path, missing) if missing else ""


def _not_found(path: Path, missing: dict[str, str]) -> str:
    """missing: the names of audit sets by task."""
    return (
        f"not found beside {path}: the audit set {', '.join(dict.fromkeys(missing.values()))}, which holds samples of "
        f"{', '.join(missing)}; they stay in it. To take them out: pdcl rollback {path} --audit DIR"
    )


def _undone(now: Learner, before: Learner, path: Path) -> list[dict[str, Any]]:
    """Entries of the tasks that go back."""
    if before.tasks_learned >= now.tasks_learned:
        raise StateError(
            f"{path / PREVIOUS} holds no state before the newest task ({before.tasks_learned} tasks there, "
            f"{now.tasks_learned} in use): a model goes back by one update, and this one did already",
            path,
        )
    return now.lineage.tasks[before.tasks_learned :]


def _join(now: Learner, before: Learner, undone: list[dict[str, Any]]) -> None:
    """What stays known: the ids of all states, what is undone, and updates that were refused since."""
    since = now.lineage.entries[now.lineage.entries.index(undone[0]) :]
    before.lineage.states = list(now.lineage.states)
    for entry in since:
        if entry["how"] == REFUSED:
            before.lineage.entries.append(entry)
        elif any(entry is each for each in undone):
            # Its audit samples leave the audit set.
            before.lineage.entries.append({**entry, "how": UNDONE, "result": {**entry["result"], "audit": None}})


def _record(learner: Learner, undone: list[dict[str, Any]]) -> None:
    """The undone update, so that the same data under the same name is recognised."""
    record = undone[-1]["result"].get("update")
    if record is not None:
        last = learner.lineage.entries[-1]
        kept = {**record, "verdict": "FAIL", "why": f"Rolled back: {last['result']['why']}."}
        learner.lineage.entries[-1] = {**last, "result": {**last["result"], "update": kept}}
