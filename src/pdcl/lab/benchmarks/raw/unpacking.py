"""Members of an archive, one after another and in memory: nothing is unpacked to disk, so no path can lead astray."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pdcl.lab.benchmarks.raw.archive import WrongFile

LARGEST_MEMBER = 64 << 20
LARGEST_TOTAL = 8 << 30

Wanted = Callable[[str], bool]


def members(
    path: Path, wanted: Wanted, largest: int = LARGEST_MEMBER, total: int = LARGEST_TOTAL
) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in a zip or tar archive whose name is wanted.

    Names lose a leading "./". A member that claims or turns out to be larger than `largest`, or more than `total` bytes
    altogether, is an error: a small archive that unfolds without end is no data set.
    """
    unfolded = 0
    for name, content in _zip(path, wanted, largest) if zipfile.is_zipfile(path) else _tar(path, wanted, largest):
        unfolded += len(content)
        if unfolded > total:
            raise WrongFile(f"{path} unfolds to more than {total:,} bytes; that is not the archive it should be")
        yield name, content


def _zip(path: Path, wanted: Wanted, largest: int) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and wanted(member.filename):
                _require(member.file_size <= largest, path, member.filename, largest)
                with archive.open(member) as stream:
                    content = stream.read(largest + 1)
                _require(len(content) <= largest, path, member.filename, largest)
                yield member.filename, content


def _tar(path: Path, wanted: Wanted, largest: int) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            if member.isfile() and wanted(name):
                _require(member.size <= largest, path, name, largest)
                stream = archive.extractfile(member)
                if stream is not None:
                    yield name, stream.read()


def _require(fits: bool, path: Path, name: str, largest: int) -> None:
    if not fits:
        raise WrongFile(f"{path}: {name} is larger than {largest:,} bytes; that is not the archive it should be")
