"""Raw files of the benchmarks: where they are, whether they are the right ones, how to get them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pdcl.errors import PdclError, UsageError
from pdcl.given import path_of
from pdcl.lab.benchmarks.raw.sources import SOURCES, File, Source
from pdcl.storage.cache import cache_directory

DATA_VARIABLE = "PDCL_DATA"


class MissingData(PdclError, FileNotFoundError):
    """Raw files that are nowhere to be found."""


class WrongFile(PdclError, ValueError):
    """A raw file that is not what its name says."""


@dataclass(frozen=True)
class Located:
    """The raw files of a source. `variant` is "original" or "reduced"."""

    source: Source
    variant: str
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Status:
    """One line of `pdcl data list`. `size` is what lies here, or what would be downloaded."""

    name: str
    present: bool
    where: str
    size: int
    licence: str
    variant: str = ""


@dataclass(frozen=True)
class Check:
    """One line of `pdcl data verify`."""

    file: str
    path: Path
    expected: str
    found: str

    @property
    def right(self) -> bool:
        return self.expected == self.found


def directories(directory: str | Path | None = None) -> list[Path]:
    """Where raw files are looked for, in order."""
    chosen = [directory, os.environ.get(DATA_VARIABLE)]
    return [*(path_of(path, "data") for path in chosen if path), cache_directory() / "data"]


def source_of(name: str) -> Source:
    """The source of this stream's raw files."""
    if name not in SOURCES:
        raise UsageError(f"stream {name!r} has no raw files; those that have are {', '.join(SOURCES)}")
    return SOURCES[name]


def locate(name: str, directory: str | Path | None = None) -> Located:
    """The raw files of a stream; directories go before variants, so what is near wins."""
    source = source_of(name)
    for place in directories(directory):
        for variant, files in source.variants.items():
            for folder in (place / source.folder, place):
                paths = tuple(folder / file.name for file in files)
                if all(path.is_file() for path in paths):
                    return Located(source, variant, paths)
    wanted = "\n".join(f"  {file.name}  from {file.url}" for file in source.original)
    places = "\n".join(f"  {place / source.folder}" for place in directories(directory))
    raise MissingData(
        f"the data of stream {source.name!r} are not here. Wanted:\n{wanted}\nLooked in:\n{places}\n"
        f"Get them with: pdcl data fetch {source.name}   (or name a directory: --data DIR, ${DATA_VARIABLE})"
    )


def digest(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, as "algorithm:digits"."""
    with path.open("rb") as stream:
        return f"{algorithm}:{hashlib.file_digest(stream, algorithm).hexdigest()}"


def check(path: Path, file: File) -> Check:
    """The file's checksum beside the one it should have."""
    return Check(file.name, path, file.checksum, digest(path, file.checksum.partition(":")[0]))


def verify(name: str, directory: str | Path | None = None) -> list[Check]:
    """Every raw file of a stream, read through and compared with its published checksum."""
    return list(_checks(locate(name, directory)))


def require_right(located: Located) -> None:
    """Raise `WrongFile` unless every raw file has its checksum."""
    for each in _checks(located):
        if not each.right:
            advice = f"Delete it and get it again: pdcl data fetch {located.source.name}"
            raise WrongFile(f"{each.path} is damaged or another file: {each.found}, not {each.expected}. {advice}")


def _checks(located: Located) -> Iterator[Check]:
    return map(check, located.paths, located.source.variants[located.variant])


def status(directory: str | Path | None = None) -> list[Status]:
    """What is here and what is missing, for every stream that needs raw files."""
    lines = []
    for name, source in SOURCES.items():
        try:
            found = locate(name, directory)
        except MissingData:
            lines.append(Status(name, False, "", source.size, source.licence))
        else:
            size = sum(path.stat().st_size for path in found.paths)
            lines.append(Status(name, True, str(found.paths[0].parent), size, source.licence, found.variant))
    return lines


def fetch(name: str, directory: str | Path | None = None, progress: bool = True) -> list[Path]:
    """Download the original files of a stream into `directory` (the cache by default); resumes what broke off."""
    from pdcl.lab.benchmarks.raw.download import download

    source = source_of(name)
    place = (path_of(directory, "data") if directory else cache_directory() / "data") / source.folder
    return [download(file, place, progress) for file in source.original]
