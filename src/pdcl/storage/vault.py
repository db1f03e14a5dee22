"""A directory that always holds a good state: parts, and a manifest that says what they must be.

A new state is written beside the old one, read back, and put in place by one rename to `.ready`; only then do its
files take the places of the old ones, which move to `previous/`. From that rename on a reader takes each part from
`.ready`, or from its final place where it has moved already, so a crash at any point leaves the old state or the new.

A part that is the same in the new state isn't written again: it gets a second name (a hard link).
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from pdcl.errors import Damaged, StateError
from pdcl.storage import disk
from pdcl.storage.serialize import BadState, Part, json_bytes, json_in
from pdcl.storage.tensor_file import LARGE, TensorFile

MANIFEST = "manifest.json"
NEXT, READY, PREVIOUS = ".next", ".ready", "previous"
# In what is said about a state that replaces the one before it, instead of retiring it.
AMENDS = "amends"
FORMAT = 2
# Format 1 lacks what a reservoir has decided ahead. A model goes on without; a run wouldn't go on to the same result.
OLDER = {"model": (1,)}
_PART = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}(\.[a-z0-9]{1,16}){1,2}")
_LARGEST_MANIFEST = 2**20
# How long a reader tries while a writer writes all the time.
PATIENCE_SECONDS = 30.0
T = TypeVar("T")
# A part's bytes, how they are made when it is their turn to be written, or pieces of a large one.
Content = bytes | Callable[[], bytes] | TensorFile


class PartGone(Exception):
    """A part that a new state should have taken over isn't there, or can't get a second name."""


@dataclass(frozen=True)
class Held:
    """A state that was read and found whole. `instead_of` says what was wrong with newer ones, if any."""

    parts: dict[str, Part]
    about: dict[str, Any]
    place: Path
    instead_of: list[str] = field(default_factory=list)


class Vault:
    """The states of one directory. `kind` keeps a checkpoint from being taken for a model."""

    def __init__(self, path: str | Path, kind: str) -> None:
        self.path, self.kind = Path(path), kind

    def write(
        self, parts: Mapping[str, Content], about: Mapping[str, Any], amend: bool = False, kept: Collection[str] = ()
    ) -> None:
        """Put a new state in place; the one before it goes to `previous/`.

        amend: it takes the place of the one before it, and what lies in `previous/` stays. kept: parts of the state
        before it that are parts of this one too; raises PartGone where one of them can't be taken over.
        """
        self._put(parts, {**about, **({AMENDS: True} if amend else {})}, kept)
        try:
            disk.sync_directory(self.path)
            self._settle()
        except OSError as error:
            raise StateError(
                f"{self.path} holds the new state, but its files can't be moved to their places: {disk.reason(error)}; "
                "it can be read as it is, and the next save finishes this",
                self.path,
            ) from error

    def _put(self, parts: Mapping[str, Content], about: Mapping[str, Any], kept: Collection[str]) -> None:
        """Up to the one rename that makes the new state the one that readers get."""
        fresh = self.path / NEXT
        with disk.reported(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._settle()
            try:
                disk.remove_tree(fresh)
                fresh.mkdir()
                described = self._taken_over(fresh, kept)
                for name, content in parts.items():
                    described[name] = _written(fresh / name, content)
                disk.write(fresh / MANIFEST, json_bytes(_manifest(self.kind, described, about)))
                disk.sync(fresh / name for name in [*parts, MANIFEST])
                self._read_back(fresh, parts)
                disk.sync_directory(fresh)
                disk.move(fresh, self.path / READY)
            except BaseException:
                with suppress(OSError):
                    disk.remove_tree(fresh)
                raise

    def _taken_over(self, fresh: Path, kept: Collection[str]) -> dict[str, dict[str, Any]]:
        """What the manifest says of parts that are the same as in the state before, which get a second name."""
        if not kept:
            return {}
        try:
            known = self._manifest(self.path / MANIFEST)["parts"]
            for name in kept:
                disk.link(self.path / name, fresh / name)
                if (fresh / name).lstat().st_size != known[name]["bytes"]:
                    raise PartGone(f"{self.path / name} has another size than it was written with")
            return {name: known[name] for name in kept}
        except (OSError, KeyError, TypeError, StateError) as error:
            raise PartGone(str(error)) from error

    def read(self, fall_back: bool = True) -> Held:
        """The newest state that is whole. Beside a writer: the state before it or after it, never one in between."""
        return self._at_rest(lambda: self._found(fall_back))

    def _at_rest(self, look: Callable[[], T]) -> T:
        """What `look` finds. A problem counts only if no file moved meanwhile: otherwise it looks again."""
        patience = time.monotonic() + PATIENCE_SECONDS
        while True:
            before, error = self._places(), None
            try:
                found = look()
            except StateError as problem:
                error = problem
            whole = error is None and bool(found) and not (isinstance(found, Held) and found.instead_of)
            if whole or self._places() == before or time.monotonic() > patience:
                if error is not None:
                    raise error
                return found
            time.sleep(0.001)

    def _places(self) -> list[tuple[str, int, int]]:
        """Every file of the states here and when it was written: changes whenever one moves."""
        found = []
        for place in (self.path / READY, self.path, self.path / PREVIOUS):
            with suppress(OSError), os.scandir(place) as entries:
                for entry in entries:
                    found.append((entry.path, *_identity(entry)))
        return sorted(found)

    def _found(self, fall_back: bool) -> Held:
        problems: list[StateError] = []
        for places in self._candidates(fall_back):
            try:
                held = self._verified(places)
                return Held(held.parts, held.about, held.place, [str(problem) for problem in problems])
            except StateError as error:
                problems.append(error)
        # What can't be read now may be whole; only where all are damaged is nothing left to read.
        raise next((problem for problem in problems if not isinstance(problem, Damaged)), problems[0])

    def exists(self) -> bool:
        return self._at_rest(
            lambda: any((place / MANIFEST).is_file() for places in self._candidates(True) for place in places)
        )

    def _candidates(self, fall_back: bool) -> list[list[Path]]:
        """Where the parts of a state may lie, the newest state first."""
        ready = [[self.path / READY, self.path]] if (self.path / READY / MANIFEST).is_file() else []
        older = [[self.path / PREVIOUS]] if fall_back and (self.path / PREVIOUS / MANIFEST).is_file() else []
        return [*ready, [self.path], *older]

    def _verified(self, places: list[Path]) -> Held:
        manifest = self._manifest(places[0] / MANIFEST)
        parts = {}
        for name, about in manifest["parts"].items():
            found = [place / name for place in places if (place / name).exists()] or [places[-1] / name]
            parts[name] = _checked(found[0], about)
        return Held(parts, manifest["about"], places[0])

    def _read_back(self, fresh: Path, names: Collection[str]) -> None:
        """One by one: together they may be larger than memory. Parts that were taken over were read back before."""
        try:
            described = self._manifest(fresh / MANIFEST)["parts"]
            for name in names:
                _checked(fresh / name, described[name])
        except Damaged as error:
            raise StateError(f"the disk gives back other bytes than were written: {error}", fresh) from error

    def _manifest(self, path: Path) -> dict[str, Any]:
        try:
            content = json_in(disk.read_regular(path, _LARGEST_MANIFEST))
        except BadState as error:
            raise Damaged(f"{path} is damaged: {error}", path) from error
        if not isinstance(content, dict) or content.get("kind") != self.kind:
            raise StateError(f"{path} doesn't describe a {self.kind}", path)
        if content.get("format") not in (FORMAT, *OLDER.get(self.kind, ())):
            raise StateError(
                f"{path} has format {content.get('format')!r}; this pdcl continues a {self.kind} of format {FORMAT}: "
                f"one of another wouldn't go on to the same result. Use the pdcl that wrote it "
                f"({content.get('versions')}), or begin anew",
                path,
            )
        parts, about = content.get("parts"), content.get("about")
        if not isinstance(parts, dict) or not isinstance(about, dict) or not all(map(_PART.fullmatch, parts)):
            raise Damaged(f"{path} is damaged: its part list is malformed", path)
        return content

    def settle(self) -> None:
        """Finish what a crash left undone of a new state, so that all files, also those before it, are in place."""
        with disk.reported(self.path):
            self._settle()

    def _settle(self) -> None:
        """Finish what a `.ready` state began: old files to `previous/`, new ones to their places, manifest last."""
        ready, old = self.path / READY, self.path / PREVIOUS
        if ready.is_symlink() or not (ready / MANIFEST).is_file():
            disk.remove_tree(ready)
            return
        try:
            manifest = self._manifest(ready / MANIFEST)
        except Damaged:
            disk.move_aside(ready)
            return
        parts = list(manifest["parts"])
        if (self.path / MANIFEST).is_file() and not manifest["about"].get(AMENDS):
            if old.is_symlink() or (old / MANIFEST).exists():
                # Without its manifest it is half of the state that is being retired, left by a crash.
                disk.remove_tree(old)
            old.mkdir(exist_ok=True)
            self._retire(old)
        for name in [*parts, MANIFEST]:
            if (ready / name).exists():
                disk.move(ready / name, self.path / name)
        disk.sync_directory(self.path)
        disk.remove_tree(ready)

    def _retire(self, old: Path) -> None:
        """The manifest goes last: while it is here, a crash has left something to retire."""
        try:
            parts = list(self._manifest(self.path / MANIFEST)["parts"])
        except StateError:
            parts = []
        for name in [*parts, MANIFEST]:
            if (self.path / name).exists():
                disk.move(self.path / name, old / name)


def _written(path: Path, content: Content) -> dict[str, Any]:
    """What the manifest says of a part, after writing it."""
    found = content() if callable(content) else content
    if isinstance(found, bytes):
        disk.write(path, found)
        return {"sha256": hashlib.sha256(found).hexdigest(), "bytes": len(found)}
    digest, sizes = hashlib.sha256(), []

    def noted() -> Iterator[bytes | memoryview]:
        for piece in found:
            digest.update(piece)
            sizes.append(len(piece))
            yield piece

    disk.write(path, noted())
    return {"sha256": digest.hexdigest(), "bytes": sum(sizes)}


def _manifest(kind: str, described: dict[str, dict[str, Any]], about: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, "kind": kind, "parts": described, "about": dict(about), "versions": versions()}


def _checked(path: Path, about: Any) -> Part:
    if not isinstance(about, dict) or not isinstance(about.get("bytes"), int):
        raise Damaged(f"{path}: the manifest doesn't say what it must be", path)
    read = disk.read_regular if about["bytes"] < LARGE else disk.map_regular
    content: Part = read(path, about["bytes"])
    if len(content) < about["bytes"]:
        raise Damaged(f"{path} is truncated: {len(content)} of {about['bytes']} bytes are there", path)
    if hashlib.sha256(content).hexdigest() != about.get("sha256"):
        raise Damaged(f"{path} was changed since it was written: its sha256 is another", path)
    return content


def _identity(entry: os.DirEntry[str]) -> tuple[int, int]:
    """Its inode and time; never the same twice for a file that moved away during the look."""
    try:
        about = entry.stat(follow_symlinks=False)
    except OSError:
        return -1, time.monotonic_ns()
    return about.st_ino, about.st_mtime_ns


def versions() -> dict[str, str]:
    """What the numbers of a state depend on."""
    found = {"python": platform.python_version()}
    for package in ("pdcl", "torch", "safetensors"):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
