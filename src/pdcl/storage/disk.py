"""The few ways in which pdcl writes to the disk. Everything that may fail half-way goes through here.

No write follows a symbolic link: one that was planted in a run or a model would lead to a stranger's file.
"""

from __future__ import annotations

import errno
import mmap
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pdcl.errors import Damaged, StateError

# What a directory that was moved aside is called, before its number.
ASIDE = ".damaged-"
# 0 on systems that have no such flag.
BINARY, _NO_LINK, NO_WAIT, _OWN = (
    getattr(os, f"O_{name}", 0) for name in ("BINARY", "NOFOLLOW", "NONBLOCK", "CLOEXEC")
)
# Opening a pipe to which nobody listens must fail, not wait.
_CAREFUL = _NO_LINK | NO_WAIT | _OWN


class LinkInTheWay(OSError):
    """A link, a pipe or a device where a file or directory of ours should be."""


def open_own(path: Path, flags: int) -> int:
    """`os.open` of an ordinary file for writing, made where O_CREAT is given. A link is refused, never followed."""
    if path.is_symlink():
        raise _in_the_way(path)
    try:
        handle = os.open(path, flags | _CAREFUL | BINARY, 0o644)
    except OSError as error:
        # The link came after the look, or a pipe has no reader.
        raise _in_the_way(path) if error.errno in (errno.ELOOP, errno.ENXIO) else error from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _in_the_way(path)
    return handle


def own_directory(path: Path) -> Path:
    """The directory `path`, made where it is missing. A link is refused: its files would land elsewhere."""
    if path.is_symlink():
        raise _in_the_way(path)
    path.mkdir(exist_ok=True)
    return path


def _in_the_way(path: Path) -> LinkInTheWay:
    return LinkInTheWay(
        errno.EPERM, f"{path.name} is a link or no ordinary file, and pdcl writes through none; remove it"
    )


def write(path: Path, content: bytes | Iterable[bytes | memoryview]) -> None:
    """Write a new file, as a whole or in pieces; `sync` makes sure of it."""
    with os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        for piece in (content,) if isinstance(content, bytes) else content:
            file.write(piece)


def sync(paths: Iterable[Path]) -> None:
    """Wait until the disk has these files. Together, since the first wait pays for most of the others."""
    for path in paths:
        handle = open_own(path, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def move(old: Path, new: Path) -> None:
    """Rename, over what may be there: one step that a crash can't halve."""
    os.replace(old, new)


def link(old: Path, new: Path) -> None:
    """Give a file that is never written again a second name."""
    os.link(old, new, follow_symlinks=False)


def sync_directory(path: Path) -> None:
    """Make renames within a directory last. Systems that can't open a directory do so by themselves."""
    with suppress(OSError, AttributeError):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_whole(path: Path, content: bytes | Iterable[bytes | memoryview]) -> None:
    """Write `path` so that no reader, and no crash, ever sees half of it. A link of this name is replaced."""
    with _replacing(path) as fresh:
        write(fresh, content)


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """The same, for what writes to a file by itself; at the end of `with` it is in place."""
    with _replacing(path) as fresh, os.fdopen(open_own(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL), "w+b") as file:
        yield file


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    fresh = path.with_name(f".{path.name[:60]}.{secrets.token_hex(4)}.tmp")
    try:
        yield fresh
        sync([fresh])
        move(fresh, path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise


def remove_tree(path: Path) -> None:
    """Remove a directory of ours; a link is removed itself, never what it points to."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def move_aside(path: Path) -> Path:
    """Rename what can't be used to the first free `<name>.damaged-N` beside it, so that nothing is lost."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}{ASIDE}{number}")):
        number += 1
    move(path, aside)
    return aside


def read_regular(path: Path, limit: int | None = None) -> bytes:
    """The bytes of an ordinary file. A link or a pipe, which could lead elsewhere or never end, is refused."""
    with _ordinary(path, limit):
        return path.read_bytes()


def map_regular(path: Path, limit: int) -> mmap.mmap:
    """The same, mapped: they are read as they are looked at, and stay there when the file loses its name."""
    with _ordinary(path, limit), path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


@contextmanager
def _ordinary(path: Path, limit: int | None) -> Iterator[None]:
    """Within it `path` is read; before, what isn't an ordinary file of at most `limit` bytes is refused."""
    try:
        about = os.lstat(path)
        if not stat.S_ISREG(about.st_mode):
            raise StateError(f"{path} is not an ordinary file", path)
        if limit is not None and about.st_size > limit:
            raise Damaged(f"{path} has {about.st_size} bytes; at most {limit} are expected", path)
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise Damaged(f"{path} is missing", path) from None
    except (OSError, ValueError) as error:
        raise StateError(f"{path} can't be read: {reason(error)}", path) from error


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """What the system refuses, as our error: which path, why, and that the old state stands."""
    try:
        yield
    except OSError as error:
        text = f"{path} can't be written: {reason(error)}; what was saved there before is untouched"
        raise StateError(text, path) from error


def reason(error: Exception) -> str:
    """What the system said, without its number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def cut_back(path: Path, most: int | None = None) -> None:
    """Cut a file of lines back to whole lines, within its first `most` bytes."""
    with os.fdopen(open_own(path, os.O_RDWR), "r+b") as file:
        file.truncate(file.read(-1 if most is None else most).rfind(b"\n") + 1)


def appending(path: Path) -> IO[bytes]:
    """A file, new or not, to add to at its end."""
    return os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")


def append_line(path: Path, line: bytes) -> None:
    """Add a line and wait until the disk has it; half a line that a crash left is cut off first."""
    if os.path.lexists(path):
        cut_back(path)
    with appending(path) as file:
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())
