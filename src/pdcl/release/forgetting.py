"""`pdcl.forget`: samples, or all that belongs to somebody, taken out of a model and of what was kept beside it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdcl.errors import PdclError, StateError, UsageError
from pdcl.given import path_of, short
from pdcl.lifelong import rows
from pdcl.lifelong.backbone import unchanged
from pdcl.lifelong.entry import FORGOTTEN
from pdcl.lifelong.learner import Learner
from pdcl.lifelong.owners import GROUP, belonging, memory_hashes
from pdcl.lifelong.save import save
from pdcl.release.workspace import Workspace, write_samples
from pdcl.running.load import load
from pdcl.storage.disk import read_regular, remove_tree, reported, write_whole
from pdcl.storage.vault import MANIFEST, PREVIOUS
from pdcl.streams.audits import SAMPLES, Audit, read_audit
from pdcl.streams.hashes import name_hashes, sample_hashes
from pdcl.streams.npz import read_npy, read_npz
from pdcl.streams.samples import inputs_of


@dataclass(frozen=True)
class Forgotten:
    """removed: samples by place. remains: where something of them still is, and what to do about it."""

    removed: dict[str, int]
    remains: list[str]

    def __str__(self) -> str:
        lines = [f"removed from {place}: {count}" for place, count in self.removed.items()]
        lines += [f"still there: {each}" for each in self.remains]
        return "\n".join(lines)


@dataclass(frozen=True)
class Wanted:
    """What is to be forgotten: raw inputs (with targets, where they were given), or a column with a value."""

    x: Tensor | None
    y: Any
    column: str | None
    value: str | None

    @classmethod
    def of(cls, samples: Any, group: str | None) -> Wanted:
        if (samples is None) == (group is None):
            raise UsageError("say what to forget: samples, or a group such as patient=17; one of the two")
        if group is None:
            return cls(*_inputs(samples), None, None)
        if not isinstance(group, str):
            raise UsageError(f"group={short(group)} must be COLUMN=VALUE, such as patient=17")
        column, equals, value = group.partition("=")
        if not equals or not column or not value:
            raise UsageError(f"group={group!r} must be COLUMN=VALUE, such as patient=17")
        return cls(None, None, column, value)

    @property
    def names(self) -> list[str]:
        return [] if self.value is None else [f"{self.column}={self.value}", f"{GROUP}={self.value}"]

    def among(self, learner: Learner) -> Tensor:
        """Hashes of the samples meant, under the key of this learner's lineage."""
        key = learner.lineage.key
        if self.x is None:
            return memory_hashes(learner)[belonging(learner, *self.names)]
        found = [sample_hashes(self.x, key)]
        if learner.backbone is not None:
            found.append(sample_hashes(unchanged(learner)(self.x), key))
        return torch.cat(found)

    def in_audit(self, audit: Audit) -> Any:
        """Which audit samples are meant: mask [n]."""
        if self.x is not None:
            theirs = {row.tobytes() for row in self.x.contiguous().reshape(len(self.x), -1).numpy()}
            rows = audit.x.contiguous().reshape(len(audit), -1).numpy()
            return np.asarray([row.tobytes() in theirs for row in rows], dtype=bool)
        columns = [audit.columns[name] for name in (self.column, GROUP) if name in audit.columns]
        return (
            np.any([[str(v) == self.value for v in values.tolist()] for values in columns], axis=0) if columns else None
        )


def forget(
    model: str | Path,
    *,
    samples: Any = None,
    group: str | None = None,
    audit: str | Path | None = None,
    evidence: str | Path | None = None,
    **handed: Any,
) -> Forgotten:
    """Take samples out of memory, guards, witnesses, the previous state, the audit set and evidence.

    A model of `exact` with erasable=True is then solved anew without them, and equals one that never saw them.

    samples: their inputs, as an array, (x, y), a file or directory with x, or rows of a table. group: `COLUMN=VALUE`,
    a column of `learn(…, columns=)` or the groups of `learn(…, groups=)`. audit: the audit set. evidence: a directory
    of evidence folders; those that hold the samples lose their copy of the audit samples, and still verify without
    it. handed: what `pdcl.load` needs. The lineage keeps that something was forgotten, when and how many, and keyed
    hashes of what the weights were trained on, so that the gate still refuses it as audit data.
    """
    path, in_rows = path_of(model, "model"), group is None and rows.is_table(samples)
    wanted = None if in_rows else Wanted.of(samples, group)
    for what, place in (("audit", audit), ("evidence", evidence)):
        if place is not None and not path_of(place, what).is_dir():
            raise UsageError(f"{what}={str(place)!r} is no directory; nothing was forgotten")
    removed: dict[str, int] = {}
    with Workspace(path, None if audit is None else Path(audit)) as work:
        work.clear()
        _check_link(path / PREVIOUS)
        learner = load(path, **copy.deepcopy(handed))
        wanted = wanted or Wanted.of(rows.known(learner, samples), None)
        trained = _trained_on(learner, wanted)
        places = [path, *([path / PREVIOUS] if (path / PREVIOUS / MANIFEST).is_file() else [])]
        states = {place: learner if place == path else load(place, **copy.deepcopy(handed)) for place in places}
        counts = {place: held.take_out(wanted.among(held), wanted.x, wanted.y) for place, held in states.items()}
        removed |= {str(place): count or 0 for place, count in counts.items()}
        remains = _from_audit(audit, wanted, removed) + _from_evidence(evidence, wanted, removed)
        # The model comes last: after a kill its lineage says that something was forgotten only once all of it was.
        for place in reversed(places):
            if (count := counts[place]) is not None:
                _save_without(states[place], place, count)
    traces = [learner.keeps_traces.format(path=path)] if trained else []
    return Forgotten(removed, [*traces, *_unsure(learner, wanted, audit, evidence), *remains])


def _check_link(previous: Path) -> None:
    if previous.is_symlink():
        raise StateError(f"{previous} is a link, and pdcl writes through none; remove it", previous)


def _trained_on(learner: Learner, wanted: Wanted) -> bool:
    key, seen = learner.lineage.key, learner.lineage.settle()
    by_sample = torch.isin(wanted.among(learner), seen.samples).any()
    by_name = wanted.value is not None and torch.isin(name_hashes([wanted.value], key), seen.groups).any()
    return bool(by_sample) or bool(by_name)


def _save_without(learner: Learner, place: Path, count: int) -> None:
    """Save the state without the samples, in the place of the one that has them."""
    learner.lineage.note_change(learner.tasks_learned - 1, "", {"forgotten": count, "hashes": "kept"}, FORGOTTEN)
    save(learner, place, amend=True)


def _unsure(learner: Learner, wanted: Wanted, audit: Any, evidence: Any) -> list[str]:
    found = []
    if wanted.value is not None and learner.backbone is not None:
        found.append("memory holds features of a backbone, whose owners aren't known; give the samples themselves")
    elif wanted.value is not None and learner.store is not None and not len(learner.lineage.owners):
        found.append(
            "memory may hold samples of it: no group or column came with the data; give the samples themselves"
        )
    for name, given in (("audit", audit), ("evidence", evidence)):
        if given is None:
            found.append(f"{name} data, if there is any: not looked at, as no {name} directory was given")
    return found


def _from_audit(audit: str | Path | None, wanted: Wanted, removed: dict[str, int]) -> list[str]:
    if audit is None:
        return []
    with reported(Path(audit)):
        for half in Path(audit).glob(f".{SAMPLES}.*.tmp"):
            half.unlink()
    if not (Path(audit) / SAMPLES).exists():
        return []
    held = read_audit(audit)
    mask = wanted.in_audit(held)
    if mask is None:
        return [f"{audit} may hold samples of it: it has no column {wanted.column!r}; give the samples themselves"]
    if mask.all():
        with reported(Path(audit)):
            (Path(audit) / SAMPLES).unlink()
    elif mask.any():
        write_samples(Path(audit), held.taken(np.flatnonzero(~mask)))
    removed[str(audit)] = int(mask.sum())
    return []


def _from_evidence(evidence: str | Path | None, wanted: Wanted, removed: dict[str, int]) -> list[str]:
    remains = []
    for place in _folders(evidence):
        if (place / SAMPLES).exists():
            mask = wanted.in_audit(read_audit(place))
            if mask is None or mask.any():
                _drop_samples(place)
                removed[str(place)] = 0 if mask is None else int(mask.sum())
        if wanted.value is not None and _names_it(place, wanted.value):
            remains.append(f"{place} has a row named {wanted.value!r} in its verdict; remove the folder if it must go")
    return remains


def _folders(evidence: str | Path | None) -> Iterator[Path]:
    """Evidence folders; what a kill left half-written, which may hold samples, is removed."""
    if evidence is not None:
        root = Path(evidence)
        for half in root.glob(".*.tmp/verdict.json"):
            with reported(half):
                remove_tree(half.parent)
        yield from sorted({each.parent for each in (*root.glob("verdict.json"), *root.glob("*/verdict.json"))})


def _drop_samples(place: Path) -> None:
    """The copy of the audit samples goes; the manifest says no more that there is one, so that the rest verifies."""
    manifest = json.loads(read_regular(place / MANIFEST))
    manifest.pop(SAMPLES, None)
    with reported(place):
        write_whole(place / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
        (place / SAMPLES).unlink()


def _names_it(place: Path, value: str) -> bool:
    try:
        rows = json.loads(read_regular(place / "verdict.json"))["rows"]
        return any(row["group"] == value for row in rows)
    except (PdclError, ValueError, KeyError, TypeError):
        return True


def _inputs(given: Any) -> tuple[Tensor, Any]:
    """x, and y where it is given."""
    if isinstance(given, str | Path):
        return _file_inputs(Path(given))
    targets = None
    if isinstance(given, tuple):
        given, targets = (*given, None, None)[:2]
    elif isinstance(given, dict):
        given, targets = given.get("x"), given.get("y")
    found = inputs_of(given)
    if found.dim() < 2 or not len(found):
        raise UsageError(f"samples={short(given)} must hold the inputs of at least one sample, one row each")
    return found, targets


def _file_inputs(path: Path) -> tuple[Tensor, Any]:
    place = path / SAMPLES if path.is_dir() else path
    try:
        content = read_regular(place)
        alone = content.startswith(np.lib.format.MAGIC_PREFIX)
        held = {"x": read_npy(content, str(place))} if alone else read_npz(content, str(place))
        return inputs_of(held["x"]), held.get("y")
    except (ValueError, KeyError) as error:
        raise UsageError(f"{place} holds no array x of samples to forget: {error}") from error
