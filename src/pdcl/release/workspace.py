"""Where an update happens, inside the model's directory and out of its readers' sight: `.update/`.

candidate/    the updated model, saved before the gate looks at it: after a crash the same candidate is judged, so that
              the look counts once
aside.npz     audit samples of the new task
todo.json     what remains to be done to the audit set once the model has a certain state. Saving that state is the one
              step that decides; whatever was to follow it is done by the next call. The audit set is known by its id:
              it is the one that this call names, or the one beside the model, never one at a path in this file
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from pdcl.errors import Damaged, StateError
from pdcl.lifelong.audit_place import beside, identity, made_identity
from pdcl.lifelong.audit_split import extended
from pdcl.lifelong.learner import Learner
from pdcl.lifelong.save import KIND
from pdcl.records.checkpoint import fitting
from pdcl.running.load import load
from pdcl.storage.disk import own_directory, read_regular, remove_tree, reported, write_whole
from pdcl.storage.locking import NAME as LOCK
from pdcl.storage.locking import Lock
from pdcl.storage.serialize import from_parts
from pdcl.storage.vault import MANIFEST, Vault
from pdcl.streams.audits import SAMPLES, Audit, read_audit
from pdcl.streams.samples import Column

NAME, CANDIDATE, ASIDE, TODO = ".update", "candidate", "aside.npz", "todo.json"


class Workspace:
    """`with Workspace(model) as work: …`: one update, rollback or erasure at a time."""

    def __init__(self, model: Path, audit: Path | None = None) -> None:
        """audit: the audit set that this call names."""
        self.model, self.place, self.audit = model, model / NAME, audit
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if not Vault(self.model, KIND).exists():
            raise StateError(
                f"{self.model} holds no model; make the first one with learner.learn(…) and learner.save(…)", self.model
            )
        with reported(self.place):
            own_directory(self.place)
        with ExitStack() as opening:
            opening.enter_context(Lock(self.place))
            with Lock(self.model):
                Vault(self.model, KIND).settle()
            self.finish()
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def candidate(self, key: str, handed: dict[str, Any]) -> Learner | None:
        """The candidate that an interrupted update with this key has left; any other one is removed."""
        place = self.place / CANDIDATE
        if (place / MANIFEST).is_file():
            found = load(place, **handed)
            about = found.lineage.entries[-1]["result"].get("update") if found.lineage.entries else None
            if isinstance(about, dict) and about.get("key") == key:
                return found
        self.clear()
        return None

    def keep(self, candidate: Learner) -> None:
        candidate.save(self.place / CANDIDATE)

    def clear(self) -> None:
        with reported(self.place):
            # The plan first: without it nothing here means anything. A kill may have left half-written files, too.
            (self.place / TODO).unlink(missing_ok=True)
            for each in self.place.iterdir():
                if each.name == CANDIDATE:
                    remove_tree(each)
                elif each.name != LOCK:
                    each.unlink(missing_ok=True)

    def plan(
        self, state: str, audit: Path, add: dict[str, Column] | None = None, remove: list[str] | None = None
    ) -> None:
        """What to do to the audit set once the model has this state."""
        about = {"name": Path(os.path.abspath(audit)).name, "id": made_identity(audit)}
        with reported(self.place):
            if add is not None:
                buffer = BytesIO()
                np.savez_compressed(buffer, allow_pickle=False, **add)
                write_whole(self.place / ASIDE, buffer.getvalue())
            todo = {"state": state, "audit": about, "add": add is not None, "remove": remove or []}
            write_whole(self.place / TODO, json.dumps(todo).encode())

    def finish(self) -> None:
        """Do what an earlier call planned, if the model has the state that it was planned for."""
        if not os.path.lexists(self.place / TODO):
            return
        todo = self._planned()
        if todo["state"] in self._states():
            audit = self._meant(*todo["audit"])
            if todo["remove"]:
                _without(audit, set(todo["remove"]))
            if todo["add"]:
                _with(audit, self.place / ASIDE)
        self.clear()

    def _states(self) -> list[str]:
        held = Vault(self.model, KIND).read()
        with fitting(self.model):
            return list(from_parts(held.parts)["lineage"]["states"])

    def _meant(self, name: str, recorded: str) -> Path:
        """The audit set with the id that was planned for, if this call may act on it."""
        if self.audit is not None and identity(self.audit) == recorded:
            return self.audit
        found = beside(self.model, name, recorded)
        if found is None:
            looked = f"{self.audit} is another one" if self.audit is not None else "it isn't beside the model"
            raise StateError(
                f"{self.model}: an interrupted call has work left on its audit set {name!r}, and {looked}; name it "
                f"with --audit DIR (audit=), or remove {self.place} to give that work up",
                self.place,
            )
        return found

    def _planned(self) -> dict[str, Any]:
        place = self.place / TODO
        try:
            todo = json.loads(read_regular(place, 2**20))
            audit = str(todo["audit"]["name"]), str(todo["audit"]["id"])
            remove = [str(name) for name in todo["remove"]]
            return {"state": str(todo["state"]), "audit": audit, "add": bool(todo["add"]), "remove": remove}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Damaged(f"{place} is damaged; an update left it behind: remove {self.place}", place) from error


def _with(audit: Path, aside: Path) -> None:
    new = arrays_of(read_audit(aside))
    _write(audit, extended(read_audit(audit), new) if (audit / SAMPLES).exists() else new)


def _without(audit: Path, tasks: set[str]) -> None:
    if not (audit / SAMPLES).exists():
        return
    held = read_audit(audit)
    stay = np.asarray([str(task) not in tasks for task in held.column("task", "rollback").tolist()])
    if stay.any():
        write_samples(audit, held.taken(np.flatnonzero(stay)))
    else:
        with reported(audit):
            (audit / SAMPLES).unlink()


def arrays_of(audit: Audit) -> dict[str, Column]:
    """As `samples.npz` holds them."""
    return {"x": audit.x.numpy(), "y": audit.y, **audit.columns}


def write_samples(place: Path, audit: Audit) -> None:
    """Put an audit set on disk, whole."""
    _write(place, arrays_of(audit))


def _write(audit: Path, arrays: dict[str, Column]) -> None:
    buffer = BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    with reported(audit):
        audit.mkdir(parents=True, exist_ok=True)
        write_whole(audit / SAMPLES, buffer.getvalue())
