"""One file from the web: continued where it broke off, and kept only if its checksum is right."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pdcl.errors import PdclError
from pdcl.lab.benchmarks.raw.archive import check
from pdcl.lab.benchmarks.raw.sources import File

CHUNK = 1 << 16
ATTEMPTS = 4
TIMEOUT = (10.0, 60.0)

Report = Callable[[int, int | None], None]


class DownloadFailed(PdclError, OSError):
    """A file that could not be had; what arrived is kept for the next try."""


def download(file: File, place: Path, progress: bool = True) -> Path:
    """`file` in directory `place`; a file that is there already with the right checksum is left alone."""
    from filelock import FileLock

    place.mkdir(parents=True, exist_ok=True)
    path, part = place / file.name, place / f"{file.name}.part"
    with FileLock(place / f"{file.name}.lock"):
        if not path.is_file() or not check(path, file).right:
            with _shown(file, progress) as report:
                _fetch(file.url, part, report)
            if not (arrived := check(part, file)).right:
                part.unlink()
                found = f"{arrived.found}, not {arrived.expected}"
                raise DownloadFailed(f"{file.url} gave something else than {file.name}: {found}")
            os.replace(part, path)
    return path


def _fetch(url: str, part: Path, report: Report) -> None:
    """Write to `part`; after a broken connection ask only for the rest."""
    import requests

    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _continue(url, part, report)
        except requests.HTTPError as error:
            by_hand = f"if you have the file elsewhere, put it into {part.parent}"
            raise DownloadFailed(f"{error}; {by_hand}") from error
        except (requests.RequestException, OSError) as error:
            if attempt == ATTEMPTS:
                kept = f"{_size(part):,} bytes are kept; the same command continues there"
                raise DownloadFailed(f"{url} broke off {attempt} times ({error}). {kept}") from error


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _continue(url: str, part: Path, report: Report) -> None:
    """Append what is missing; begin anew where the server can't continue."""
    import requests

    have = _size(part)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink()
            raise ConnectionError("what was kept is longer than the file; it is thrown away")
        response.raise_for_status()
        done = have if response.status_code == requests.codes.partial_content else 0
        length = response.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        with part.open("ab" if done else "wb") as stream:
            for chunk in response.iter_content(CHUNK):
                done += stream.write(chunk)
                report(done, total)
            stream.flush()
            os.fsync(stream.fileno())
    if total is not None and done < total:
        raise ConnectionError(f"{done:,} of {total:,} bytes arrived")


@contextmanager
def _shown(file: File, progress: bool) -> Iterator[Report]:
    """A progress bar, or nothing."""
    if not progress:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    name = TextColumn("{task.description}")
    with Progress(name, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()) as bar:
        row = bar.add_task(file.name, total=file.size)
        yield lambda done, total: bar.update(row, completed=done, total=total or file.size)
