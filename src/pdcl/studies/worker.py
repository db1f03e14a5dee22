"""What one process does with a job. Streams are loaded once and kept; a job's failure is a value, not an end."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
import traceback
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from pdcl.errors import PdclError, RunFinished, RunUnfinished
from pdcl.studies.engine import Ended, Job
from pdcl.studies.spec import RunSpec

if TYPE_CHECKING:
    from pdcl.streams.task import Stream

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Streams:
    """Streams that this process has loaded; many runs, one load."""

    def __init__(self) -> None:
        self._loaded: dict[str, Stream] = {}

    def get(self, spec: RunSpec) -> Stream:
        """The stream of a run, with training data in place of its test data where the run asks for that."""
        key = repr((spec.stream, sorted(spec.stream_options.items()), spec.held_out))
        if key not in self._loaded:
            self._loaded[key] = self._load(spec)
        return self._loaded[key]

    def _load(self, spec: RunSpec) -> Stream:
        from pdcl.streams.catalog import load

        stream = load(spec.stream, **spec.stream_options)
        return stream if spec.held_out is None else stream.for_tuning(spec.held_out)


def serve(connection: Connection) -> None:
    """The life of a worker process: a job comes, its outcome goes, until there is none or nobody to tell."""
    for variable in THREADS:
        os.environ[variable] = "1"
    # Ctrl-C reaches every process of a terminal; the parent decides what to do and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import torch

    torch.set_num_threads(1)
    streams, plugged = Streams(), set[str]()
    while True:
        try:
            job = connection.recv()
            if job is None:
                return
            connection.send(carry_out(job, streams, plugged))
        except (EOFError, BrokenPipeError):
            return


def _end_with_parent() -> None:
    """A study that was killed leaves no worker behind that would write beside its successor."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def carry_out(job: Job, streams: Streams, plugged: set[str]) -> Ended:
    """Run the job; whatever goes wrong becomes its cause."""
    start = time.perf_counter()
    try:
        plug_in(job.plugins, plugged)
        path, accuracy = _run(job, streams.get(job.spec))
    except PdclError as error:
        return Ended(job, time.perf_counter() - start, cause=str(error), trace=traceback.format_exc())
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        return Ended(job, time.perf_counter() - start, cause=cause, trace=traceback.format_exc())
    return Ended(job, time.perf_counter() - start, str(path), accuracy)


def plug_in(paths: tuple[str, ...], plugged: set[str]) -> None:
    """Import plug-in files, each once."""
    from pdcl.running.plugins import load_file

    for path in paths:
        if path not in plugged:
            load_file(path)
            plugged.add(path)


def _run(job: Job, stream: Stream) -> tuple[Path, float]:
    from pdcl.records.reading import read_result
    from pdcl.running.run import run

    spec = job.spec
    label = None if spec.label == spec.method else spec.label
    try:
        result = run(
            stream, spec.method, preset=spec.preset, out=job.out, study=spec.given, label=label, snapshot=job.snapshot
        )
    except RunFinished as done:
        return done.path, read_result(done.path)["mean_accuracy"] or 0.0
    except RunUnfinished as begun:
        shutil.rmtree(begun.path)
        return _run(job, stream)
    assert result.path is not None
    return result.path, result.mean_accuracy
