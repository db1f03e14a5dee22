"""One run on disk: what it was asked for, what happened, and what came out."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from pdcl.errors import RecordError, RunFinished, RunUnfinished
from pdcl.records import reading, schema
from pdcl.records.checksum import sealed
from pdcl.records.naming import safe
from pdcl.records.writing import dumps
from pdcl.storage.disk import appending, cut_back, reported, write_whole

if TYPE_CHECKING:
    from pdcl.learning.events import Event

# What makes two runs of one name the same run; versions and where an option came from don't.
IDENTITY = ("stream", "stream_options", "method", "preset", "memory", "seed", "data")


class Record:
    """A run's directory. Hand `listener` to the loop and close the record, or use it in a `with` statement."""

    def __init__(self, path: Path, elapsed: float = 0.0) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._start = time.perf_counter() - elapsed

    @classmethod
    def create(cls, out: str | Path, name: str, config: Mapping[str, Any]) -> Record:
        """Make `<out>/<name>` with its config.json, in one step that only one of several processes can win.

        Raises RunFinished or RunUnfinished where this run was begun before, and RecordError where something else is in
        the way or nothing can be written.
        """
        path = Path(out) / safe(name)
        content = {"schema": schema.VERSION, **config}
        if missing := schema.missing_keys(content, schema.Config):
            raise RecordError(f"the config of {path} lacks {', '.join(missing)}", path)
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
            fill_directory(path, {schema.CONFIG: (dumps(content, indent=1) + "\n").encode()})
        except OSError as error:
            raise _blocked(path, content, error) from error
        return cls(path)

    @classmethod
    def reopen(cls, path: str | Path, position: int | None = None) -> Record:
        """Continue an unfinished run's record, its clock included.

        A last line that a crash cut short goes; so does all beyond `position`, the `position` of a checkpoint, since
        what came after it will happen again.
        """
        path = Path(path)
        reading.read_config(path)
        if reading.is_finished(path):
            raise RunFinished(f"{path} is finished", path)
        return cls(path, _rewind(path / schema.EVENTS, position))

    @staticmethod
    def obstacle(out: str | Path, name: str, config: Mapping[str, Any]) -> RecordError | None:
        """What `create` would raise because of what is there already: RunFinished, RunUnfinished or another."""
        path = Path(out) / safe(name)
        if not path.exists():
            return None
        return _blocked(path, config, FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)))

    @staticmethod
    def holds(out: str | Path, name: str, config: Mapping[str, Any]) -> bool:
        """Whether a directory of this name holds this very run, finished or not."""
        path = Path(out) / name
        try:
            return (path / schema.CONFIG).is_file() and not _differences(reading.read_config(path), config)
        except RecordError:
            return False

    @property
    def position(self) -> int:
        """How long events.jsonl is: what a checkpoint remembers, for `reopen`."""
        events = self.path / schema.EVENTS
        return events.stat().st_size if events.exists() else 0

    def listener(self, event: Event) -> None:
        """Append one event as one line, at once: a run that dies leaves all that it did."""
        line = {"time": round(time.perf_counter() - self._start, 3), **event.as_json()}
        with reported(self.path / schema.EVENTS):
            if self._file is None:
                self._file = appending(self.path / schema.EVENTS)
            self._file.write(dumps(line).encode() + b"\n")
            self._file.flush()

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write result.json, whole and once."""
        path = self.path / schema.RESULT
        if path.exists():
            raise RunFinished(f"{self.path} already has its result; a run is written once", self.path)
        content = {"schema": schema.VERSION, **result}
        if missing := schema.missing_keys(content, schema.Result):
            raise RecordError(f"the result for {path} lacks {', '.join(missing)}", path)
        with reported(path):
            write_whole(path, sealed(dumps(content)))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def fill_directory(path: Path, files: Mapping[str, bytes]) -> None:
    """Fill a directory under another name and rename it: it appears with these files or not at all."""
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name[:60]}.", dir=path.parent))
    try:
        os.chmod(fresh, 0o755)
        for name, content in files.items():
            write_whole(fresh / name, content)
        if path.is_dir() and not any(path.iterdir()):
            # POSIX would let an empty directory be replaced, Windows wouldn't.
            path.rmdir()
        os.rename(fresh, path)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _blocked(path: Path, config: Mapping[str, Any], error: OSError) -> RecordError:
    """Why `path` can't be made, and what to do about it."""
    if not os.path.lexists(path):
        return RecordError(f"can't write {path}: {error.strerror}; choose another directory with --out", path)
    if not (path / schema.CONFIG).is_file():
        return RecordError(f"{path} holds something else than a run; move it away or choose another --out", path)
    if other := _differences(reading.read_config(path), config):
        names = ", ".join(other)
        return RecordError(f"{path} holds another run: it differs in {names}; choose another --out", path)
    if reading.is_finished(path):
        return RunFinished(f"{path} is finished; it was not run again", path)
    return RunUnfinished(f"{path} was begun and has no result yet; continue it with `pdcl resume {path}`", path)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    fresh = reading.todays(json.loads(dumps(dict(new))))
    different = [key for key in IDENTITY if old[key] != fresh[key]]
    before, after = _values(old), _values(fresh)
    keys = sorted(before.keys() | after.keys())
    # An option that is None does nothing: a run of before it was an option is the same run.
    return different + [key for key in keys if before.get(key) != after.get(key)]


def _values(config: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: option["value"] for name, option in config["options"].items()}
    return {name: value for name, value in values.items() if schema.tells_runs_apart(name, value)}


def _rewind(events: Path, position: int | None) -> float:
    """Cut events.jsonl back to whole lines within `position`; the time of the last one."""
    if not os.path.lexists(events):
        return 0.0
    with reported(events):
        cut_back(events, position)
    last = 0.0
    for event in reading.read_events(events.parent):
        # A damaged line is told by who reads it; here it only says nothing of the time.
        last = event["time"] if isinstance(event.get("time"), int | float) else last
    return last
