"""One writer per directory. The system holds the lock, so that it ends with the process, however that ends."""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pdcl.errors import Locked
from pdcl.storage.disk import open_own, reported

NAME = ".lock"


class Lock:
    """`with Lock(directory): …` or raise Locked, naming who holds it. A file left by a crash is no lock."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.path = directory, directory / NAME
        self._handle: int | None = None

    def acquire(self) -> Self:
        while self._handle is None:
            with reported(self.path):
                handle = open_own(self.path, os.O_RDWR | os.O_CREAT)
            if not _try_lock(handle):
                holder = _holder(handle)
                os.close(handle)
                raise Locked(f"{self.directory} is in use by {holder}; wait for it, or end it first", self.directory)
            if _is_still(handle, self.path):
                self._handle = handle
            else:
                os.close(handle)
        self._sign()
        return self

    def _sign(self) -> None:
        assert self._handle is not None
        who = {"process": os.getpid(), "host": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        with suppress(OSError):
            os.truncate(self._handle if os.truncate in os.supports_fd else self.path, 0)
            os.write(self._handle, json.dumps(who).encode())

    def release(self) -> None:
        if self._handle is None:
            return
        # Gone while still held: whoever opened it meanwhile sees that it is no longer the file of this name.
        with suppress(OSError):
            self.path.unlink()
        os.close(self._handle)
        self._handle = None

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _try_lock(handle: int) -> bool:
    try:
        if os.name == "nt":
            _lock_on_windows(handle)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _lock_on_windows(handle: int) -> None:
    import msvcrt

    windows: Any = msvcrt
    # A byte beyond the text: locked bytes can't be read by others on Windows.
    os.lseek(handle, 2**20, os.SEEK_SET)
    windows.locking(handle, windows.LK_NBLCK, 1)
    os.lseek(handle, 0, os.SEEK_SET)


def _is_still(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def _holder(handle: int) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        who = json.loads(os.pread(handle, 1000, 0) if hasattr(os, "pread") else os.read(handle, 1000))
        return f"process {who['process']} on {who['host']} since {who['since']}"
    return "another process"
