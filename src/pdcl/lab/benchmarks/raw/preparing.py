"""Raw files turned once into arrays that are mapped into memory; half a preparation is never mistaken for a whole."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.errors import PdclError
from pdcl.lab.benchmarks.raw.archive import Located, MissingData, locate, require_right, source_of
from pdcl.storage.cache import CACHE_VARIABLE, cache_directory

Arrays = Mapping[str, npt.NDArray[Any]]
Maker = Callable[[Located], Arrays]
VERSION = 1

log = logging.getLogger("pdcl.streams")


@dataclass(frozen=True)
class Prepared:
    """Arrays of a stream, mapped from files, with what identifies them."""

    arrays: Arrays
    variant: str
    fingerprint: dict[str, str]


def prepared(name: str, make: Maker, directory: str | Path | None = None, **options: Any) -> Prepared:
    """What `make` reads from the raw files of stream `name`: verified and made the first time, then only mapped."""
    try:
        located = locate(name, directory)
    except MissingData:
        for variant in source_of(name).variants:
            if (place := _place(name, variant, options)).is_dir():
                return _open(place, name, variant)
        raise
    place = _place(name, located.variant, options)
    if not place.is_dir():
        _prepare(place, located, make)
    return _open(place, name, located.variant)


def _place(name: str, variant: str, options: Mapping[str, Any]) -> Path:
    """One directory per content: the checksums of the raw files and all that shapes the result are in its name."""
    identity = {"version": VERSION, "files": _fingerprint(name, variant), "options": dict(options)}
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    return cache_directory() / "prepared" / f"{name}-{variant}-{key}"


def _fingerprint(name: str, variant: str) -> dict[str, str]:
    return {file.name: file.checksum for file in source_of(name).variants[variant]}


def _prepare(place: Path, located: Located, make: Maker) -> None:
    with _alone(place) as alone:
        if place.is_dir():
            return
        if alone:
            for leftover in place.parent.glob(f".{place.name}.*"):
                shutil.rmtree(leftover, ignore_errors=True)
        log.info("preparing %s from %s, once", located.source.name, located.paths[0].parent)
        require_right(located)
        draft = place.parent / f".{place.name}.{uuid.uuid4().hex}"
        draft.mkdir()
        try:
            for name, array in make(located).items():
                with (draft / f"{name}.npy").open("wb") as stream:
                    np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
                    stream.flush()
                    os.fsync(stream.fileno())
            _publish(draft, place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _alone(place: Path) -> Iterator[bool]:
    """Keep a second process from doing the same work; False where the file system can't lock."""
    from filelock import FileLock

    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(place.parent / f"{place.name}.lock")
        lock.acquire()
    except NotImplementedError:
        yield False
        return
    except OSError as error:
        where = f"name another place in ${CACHE_VARIABLE}"
        raise PdclError(f"{place.parent} can't be written ({error}); {where}") from error
    try:
        yield True
    finally:
        lock.release()


def _publish(draft: Path, place: Path) -> None:
    """Give the complete draft its name, in one step; if another process was first, its result is the same."""
    if os.name == "posix":
        entries = os.open(draft, os.O_RDONLY)
        os.fsync(entries)
        os.close(entries)
    try:
        os.replace(draft, place)
    except OSError:
        if not place.is_dir():
            raise


def _open(place: Path, name: str, variant: str) -> Prepared:
    # Mode "c" maps privately: torch gets memory it may call writable, and the file is never changed.
    arrays = {path.stem: np.load(path, mmap_mode="c", allow_pickle=False) for path in sorted(place.glob("*.npy"))}
    return Prepared(arrays, variant, _fingerprint(name, variant))
