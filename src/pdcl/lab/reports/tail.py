"""Bytes of a run's files, read carefully: no symbolic link out of the directory, no pipe, nothing oversized."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from pdcl.errors import RecordError
from pdcl.storage.disk import BINARY, NO_WAIT

LARGEST_JSON = 32 * 2**20
LONGEST_LINE = 2**20
CHUNK = 2**20


def opened(path: Path, root: Path | None = None) -> IO[bytes]:
    """A regular file, which lies in `root` (if given) once every link is followed."""
    real = path.resolve(strict=True)
    if root is not None and not real.is_relative_to(root):
        raise RecordError(f"{path} leads out of {root}", path)
    # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
    handle = os.open(real, os.O_RDONLY | NO_WAIT | BINARY)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise RecordError(f"{path} is no regular file", path)
    return os.fdopen(handle, "rb")


def read_object(
    path: Path, root: Path | None = None, check: Callable[[bytes, Path], Any] | None = None
) -> dict[str, Any] | None:
    """The JSON object in a file; None where there is no such file. Anything else is a RecordError.

    `check` may raise one, too, when it sees the bytes.
    """
    try:
        with opened(path, root) as file:
            text = file.read(LARGEST_JSON + 1)
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError) as error:
        raise RecordError(f"{path} can't be read: {error}", path) from error
    if len(text) > LARGEST_JSON:
        raise RecordError(f"{path} is larger than {LARGEST_JSON >> 20} MB", path)
    if check is not None:
        check(text, path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise RecordError(f"{path} is not JSON", path) from None
    if not isinstance(content, dict):
        raise RecordError(f"{path} holds no object", path)
    return content


class Tail:
    """The lines of a file that grows: each call of `events` reads what is new and nothing twice.

    A line without its end waits for it; one longer than a megabyte is skipped; a file that became shorter was
    rewritten, and is read again from its start (`rewound` tells).
    """

    def __init__(self, path: Path, root: Path | None = None) -> None:
        self.path, self.root = path, root
        self.offset = 0
        self.bad = 0
        self.rewound = False
        self._rest = b""
        self._skipping = False
        self._inode: int | None = None

    def events(self, most: int | None = None) -> Iterator[Any]:
        """Values of whole new lines, at most about `most` bytes of them."""
        self.rewound = False
        try:
            with opened(self.path, self.root) as file:
                self._check(os.fstat(file.fileno()))
                file.seek(self.offset)
                yield from self._read(file, most)
        except (OSError, RuntimeError, RecordError):
            return

    def _check(self, now: os.stat_result) -> None:
        if now.st_size < self.offset or (self._inode is not None and self._inode != now.st_ino):
            self.offset, self._rest, self._skipping, self.rewound = 0, b"", False, True
        self._inode = now.st_ino

    def _read(self, file: IO[bytes], most: int | None) -> Iterator[Any]:
        end = None if most is None else self.offset + most
        while (end is None or self.offset < end) and (chunk := file.read(CHUNK)):
            self.offset += len(chunk)
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                yield from self._parsed(line)
            if len(self._rest) > LONGEST_LINE:
                self._rest, self._skipping = b"", True

    def _parsed(self, line: bytes) -> Iterator[Any]:
        if self._skipping or len(line) > LONGEST_LINE:
            self._skipping = False
            self.bad += 1
            return
        if not line.strip():
            return
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            self.bad += 1
