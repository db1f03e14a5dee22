"""A directory of runs, followed: what is new is read, what is known is kept small."""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdcl.errors import RecordError
from pdcl.lab.reports.dossier import Detail, Files, dossier, identity, read_files
from pdcl.lab.reports.holdings import chart, read_holdings
from pdcl.lab.reports.story import Story
from pdcl.lab.reports.tail import Tail, opened
from pdcl.records import schema
from pdcl.records.table import DEPTH
from pdcl.storage.disk import ASIDE

MOST_RUNS = 5000
# Seconds without a new event after which a run counts as stopped, unless its process holds the lock.
SILENCE = 30.0
# How long one round of reading may take: the page gets what there is and asks again.
SLICE = 0.4
# The same for one run that someone looks at.
LOOK = 1.0
OPEN_RUNS = 12
BYTES = 2**20


@dataclass
class Follower:
    """The story of one run, read on as its events grow."""

    tail: Tail
    points: int
    story: Story = field(init=False)
    behind: bool = False
    # Held while this run is read in full, so that a slow one keeps nobody but its own readers waiting.
    busy: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.story = Story(self.points)

    def read(self, until: float) -> None:
        """Read on until nothing is new or the time is up."""
        self.behind = True
        while self.behind:
            before = self.tail.offset
            for number, event in enumerate(self.tail.events(BYTES)):
                if number == 0 and self.tail.rewound:
                    self.story = Story(self.points)
                self.story.hear(event)
            self.behind = self.tail.offset != before
            if time.monotonic() > until:
                break


@dataclass
class Watched:
    """A run as the list shows it."""

    path: Path
    files: Files
    stamp: tuple[float, ...] = ()
    version: int = 0
    follower: Follower | None = None
    row: dict[str, Any] = field(default_factory=dict)


class Directory:
    """All runs below `root`, and the few that someone looks at in full. Safe to use from several threads."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)
        self.version = 0
        self.runs: dict[str, Watched] = {}
        self._open: OrderedDict[str, Follower] = OrderedDict()
        self._shown: dict[str, tuple[tuple[float, ...], dict[str, Any]]] = {}
        self._charts: dict[str, tuple[tuple[float, ...], dict[str, Any] | None]] = {}
        self._guard = threading.RLock()

    def refresh(self) -> None:
        """One round: runs that came or went, and news of those that are not finished."""
        until = time.monotonic() + SLICE
        found = {_id(path): path for path in self._paths()}
        with self._guard:
            for gone in self.runs.keys() - found.keys():
                del self.runs[gone]
                self.version += 1
        for key, path in found.items():
            self._look(key, path, until)

    def changes(self, since: int) -> tuple[int, list[dict[str, Any]], list[str]]:
        """The version now, rows that are newer than `since`, and the ids of all runs."""
        with self._guard:
            rows = [run.row for run in self.runs.values() if run.version > since]
            return self.version, rows, list(self.runs)

    def detail(self, key: str) -> dict[str, Any] | None:
        """The whole of one run as far as it is read; None if there is no such run. Only known ids are looked up."""
        with self._guard:
            run = self.runs.get(key)
            if run is None:
                return None
            follower = self._open.pop(key, None) or Follower(Tail(run.path / schema.EVENTS, self.root), points=400)
            self._open[key] = follower
            while len(self._open) > OPEN_RUNS:
                self._open.popitem(last=False)
        with follower.busy:
            try:
                follower.read(time.monotonic() + LOOK)
                return self._described(key, run, follower)
            except Exception as error:
                return _nothing_of(run, error)

    def chart(self, key: str) -> dict[str, Any] | None:
        """The map of a run's stored samples, apart from all else and without the lock: it may take a while."""
        with self._guard:
            run = self.runs.get(key)
        if run is None:
            return None
        stamp, known = _stamp(run.path)[:2], self._charts.get(key)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            held = read_holdings(run.path, self.root)
            drawn = None if held is None else chart(held)
        except Exception:
            drawn = None
        with self._guard:
            self._charts = {**dict(list(self._charts.items())[-OPEN_RUNS:]), key: (stamp, drawn)}
        return drawn

    def _described(self, key: str, run: Watched, follower: Follower) -> dict[str, Any]:
        stamp = (*run.stamp, float(follower.tail.offset))
        known = self._shown.get(key)
        # The map is asked for by itself: it takes longest.
        detail = Detail(points=400, samples=24, near=None)
        if known is not None and known[0] == stamp:
            return {**known[1], **run.row, "partial": follower.behind}
        run.files = read_files(run.path, self.root)
        content = dossier(run.files, follower.story, detail, self.root)
        content["partial"] = follower.behind
        content["story"]["bad"] += follower.tail.bad
        with self._guard:
            self._shown = {open_key: self._shown[open_key] for open_key in self._open if open_key in self._shown}
            self._shown[key] = (stamp, content)
        return {**content, **run.row, "partial": follower.behind}

    def _look(self, key: str, path: Path, until: float) -> None:
        """News of one run. Whatever goes wrong with it is its own row's content: the others go on."""
        stamp, run = _stamp(path), self.runs.get(key)
        try:
            if run is None or stamp[:2] != run.stamp[:2]:
                run = Watched(path, read_files(path, self.root), version=run.version if run else 0)
            self._read_on(run, stamp, until)
            run.stamp = stamp
            row = _row(key, run, self.root)
        except Exception as error:
            run = run or Watched(path, Files(path, {}, None, []))
            run.stamp = stamp
            row = _unreadable(key, run, self.root, error)
        with self._guard:
            self.runs[key] = run
            if row != run.row:
                self.version += 1
                run.row, run.version = row, self.version

    def _read_on(self, run: Watched, stamp: tuple[float, ...], until: float) -> None:
        behind = run.follower is not None and run.follower.behind
        if run.files.result is None and (stamp != run.stamp or behind):
            run.follower = run.follower or Follower(Tail(run.path / schema.EVENTS, self.root), points=8)
            if time.monotonic() < until:
                run.follower.read(until)
            else:
                run.follower.behind = True

    def _paths(self) -> Iterator[Path]:
        count = 0
        for path in _below(self.root, DEPTH):
            if count >= MOST_RUNS:
                return
            with suppress(OSError, RuntimeError):
                if path.resolve().is_relative_to(self.root):
                    count += 1
                    yield path


def _below(directory: Path, depth: int) -> Iterator[Path]:
    """Directories with a config.json; links are not followed."""
    if os.path.exists(directory / schema.CONFIG):
        yield directory
        return
    if not depth:
        return
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".") and ASIDE not in entry.name:
                yield from _below(Path(entry.path), depth - 1)


def _id(path: Path) -> str:
    return str(identity(Files(path, {}, None, []))["id"])


def _stamp(path: Path) -> tuple[float, ...]:
    """Changes whenever a file of the run does: config, result, then the size of events."""
    found = []
    for name in (schema.CONFIG, schema.RESULT, schema.EVENTS):
        try:
            state = os.stat(path / name)
            found.append(float(state.st_size) if name == schema.EVENTS else state.st_mtime)
        except OSError:
            found.append(-1.0)
    return tuple(found)


def _row(key: str, run: Watched, root: Path) -> dict[str, Any]:
    """One line of the list: who, how far, how long still, and how it went."""
    about = {**identity(run.files), "id": key, "place": _place(run.path, root), "problems": run.files.problems}
    if run.files.result is not None:
        return {**about, "status": "finished", "progress": 1.0, "left": None, "cause": None, "stamp": run.stamp[2]}
    if len(run.stamp) > 1 and run.stamp[1] >= 0:
        return _unreadable(key, run, root, run.files.problems[-1] if run.files.problems else schema.RESULT)
    story = run.follower.story if run.follower else Story(8)
    status = "failed" if story.failed else "running" if _alive(run.path) else "stopped"
    left = story.left if status == "running" else None
    return {
        **about,
        "status": status,
        "progress": round(story.progress, 3),
        "left": None if left is None else round(left),
        "cause": story.failed,
        "task": story.chapters[-1].task + 1 if story.chapters else None,
        "tasks": story.tasks,
        "stamp": run.stamp[2],
    }


def _unreadable(key: str, run: Watched, root: Path, why: object) -> dict[str, Any]:
    """The line of a run that nothing can be shown of but the reason."""
    about = {**identity(Files(run.path, {}, None, [])), "id": key, "place": _place(run.path, root)}
    with suppress(Exception):
        about |= identity(Files(run.path, run.files.config, None, []))
    problem = f"can't be read: {_said(why)}"
    rest = {"status": "unreadable", "progress": 0.0, "left": None, "cause": None, "stamp": run.stamp[2]}
    return {**about, "problems": [problem], **rest}


def _nothing_of(run: Watched, error: Exception) -> dict[str, Any]:
    """The page of a run that can't be shown, with the reason."""
    problem = f"can't be read: {_said(error)}"
    nowhere = Files(run.path / ".unreadable", {}, None, [problem])
    content = dossier(nowhere, Story(), Detail(samples=0, near=None))
    return {**content, **run.row, "problems": [problem], "partial": False}


def _said(why: object) -> str:
    return f"{type(why).__name__}: {str(why)[:200]}" if isinstance(why, Exception) else str(why)


def _place(path: Path, root: Path) -> str:
    parent = path.parent
    return "" if path == root or parent == root else parent.relative_to(root).as_posix()


def _alive(path: Path) -> bool:
    """Whether events came lately, or a living process on this machine holds the run's lock."""
    try:
        if time.time() - max(os.stat(path / name).st_mtime for name in _present(path)) < SILENCE:
            return True
        with opened(path / ".lock") as file:
            who = json.loads(file.read(1000))
        if who["host"] != platform.node() or os.name == "nt":
            return False
        os.kill(int(who["process"]), 0)
        return True
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError, RecordError):
        return False


def _present(path: Path) -> list[str]:
    return [name for name in (schema.CONFIG, schema.EVENTS) if (path / name).exists()] or [schema.CONFIG]
