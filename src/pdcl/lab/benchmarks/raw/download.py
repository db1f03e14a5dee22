"""One file from the web: continued where it broke off, and kept only if its checksum is right."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pdcl.errors import PdclError
from pdcl.lab.benchmarks.raw.sources import File

CHUNK = 1 << 16
ATTEMPTS = 4
TIMEOUT = (10.0, 60.0)

Report = Callable[[int, int | None], None]


class DownloadFailed(PdclError, OSError):
    """A file that could not be had; what arrived is kept for the next try."""


def download(file: File, place: Path, progress: bool = True) -> Path:
    """`file` in directory `place`; a file that is there already with the right checksum is left alone."""
    import pooch
    from filelock import FileLock

    place.mkdir(parents=True, exist_ok=True)
    part = place / f"{file.name}.part"
    with FileLock(place / f"{file.name}.lock"), _quiet(pooch.get_logger()), _shown(file, progress) as report:
        try:
            path = pooch.retrieve(
                file.url, file.checksum, fname=file.name, path=place, downloader=Resuming(part, report)
            )
        except ValueError as error:
            raise DownloadFailed(f"{file.url} gave something else than {file.name}: {error}") from error
    return Path(path)


class Resuming:
    """A downloader for pooch that writes to `part` and, after a broken connection, asks only for the rest."""

    def __init__(self, part: Path, report: Report, attempts: int = ATTEMPTS) -> None:
        self.part = part
        self.report = report
        self.attempts = attempts

    def __call__(self, url: str, output: str, pooch: Any) -> None:
        import requests

        for attempt in range(1, self.attempts + 1):
            try:
                self._continue(url)
                break
            except requests.HTTPError as error:
                raise DownloadFailed(f"{error}; {self._by_hand()}") from error
            except (requests.RequestException, OSError) as error:
                if attempt == self.attempts:
                    kept = f"{self._have():,} bytes are kept; the same command continues there"
                    raise DownloadFailed(f"{url} broke off {attempt} times ({error}). {kept}") from error
        os.replace(self.part, output)

    def _by_hand(self) -> str:
        return f"if you have the file elsewhere, put it into {self.part.parent}"

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _continue(self, url: str) -> None:
        """Append what is missing; begin anew where the server can't continue."""
        import requests

        have = self._have()
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                self.part.unlink()
                raise ConnectionError("what was kept is longer than the file; it is thrown away")
            response.raise_for_status()
            start = have if response.status_code == requests.codes.partial_content else 0
            length = response.headers.get("Content-Length")
            total = None if length is None else start + int(length)
            self._write(response.iter_content(CHUNK), start, total)

    def _write(self, chunks: Iterator[bytes], start: int, total: int | None) -> None:
        done = start
        with self.part.open("ab" if start else "wb") as stream:
            for chunk in chunks:
                done += stream.write(chunk)
                self.report(done, total)
            stream.flush()
            os.fsync(stream.fileno())
        if total is not None and done < total:
            raise ConnectionError(f"{done:,} of {total:,} bytes arrived")


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Without pooch's own messages: ours say what to do."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _shown(file: File, progress: bool) -> Iterator[Report]:
    """A progress bar, or nothing."""
    if not progress:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as bar:
        row = bar.add_task(file.name, total=file.size)
        yield lambda done, total: bar.update(row, completed=done, total=total or file.size)
