"""The few ways in which states touch the disk. Everything that may fail half-way goes through here."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pdcl.errors import StateError

LARGEST_TEXT = 64 * 2**20


def write(path: Path, content: bytes) -> None:
    """Write a new file; `sync` makes sure of it."""
    with path.open("wb") as file:
        file.write(content)


def sync(paths: Iterable[Path]) -> None:
    """Wait until the disk has these files. Together, since the first wait pays for most of the others."""
    for path in paths:
        with path.open("rb+") as file:
            os.fsync(file.fileno())


def move(old: Path, new: Path) -> None:
    """Rename, over what may be there: one step that a crash can't halve."""
    os.replace(old, new)


def sync_directory(path: Path) -> None:
    """Make renames within a directory last. Systems that can't open a directory do so by themselves."""
    with suppress(OSError, AttributeError):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_whole(path: Path, content: bytes) -> None:
    """Write `path` so that no reader, and no crash, ever sees half of it."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(fresh, content)
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


def read_regular(path: Path, limit: int | None = None) -> bytes:
    """The bytes of an ordinary file. A link or a pipe, which could lead elsewhere or never end, is refused."""
    try:
        about = os.lstat(path)
        if not stat.S_ISREG(about.st_mode):
            raise StateError(f"{path} is not an ordinary file", path)
        if limit is not None and about.st_size > limit:
            raise StateError(f"{path} has {about.st_size} bytes; at most {limit} are expected", path)
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise StateError(f"{path} is missing", path) from None
    except (OSError, ValueError) as error:
        raise StateError(f"{path} can't be read: {_reason(error)}", path) from error


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """What the system refuses, as our error: which path, why, and that the old state stands."""
    try:
        yield
    except OSError as error:
        text = f"{path} can't be written: {_reason(error)}; what was saved there before is untouched"
        raise StateError(text, path) from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def append_line(path: Path, line: bytes) -> None:
    """Add a line and wait until the disk has it; half a line that a crash left is cut off first."""
    with path.open("a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.seek(0, os.SEEK_END)
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())
