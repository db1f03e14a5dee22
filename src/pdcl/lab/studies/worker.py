"""What one process does with a job. Streams are loaded once and kept; a job's failure is a value, not an end."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
import traceback
import warnings
from dataclasses import replace
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdcl.errors import Damaged, LearningWarning, LimitBroken, Locked, PdclError, RunFinished, RunUnfinished
from pdcl.lab.studies.engine import Call, Ended, Job, Returned, Work, failed
from pdcl.lab.studies.spec import RunSpec
from pdcl.storage.disk import move_aside

if TYPE_CHECKING:
    from pdcl.streams.task import Stream

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Streams:
    """Streams that this process has loaded; many runs, one load."""

    def __init__(self) -> None:
        self._loaded: dict[str, Stream] = {}

    def get(self, spec: RunSpec) -> Stream:
        """The stream of a run, with training data in place of its test data where the run asks for that."""
        from pdcl.streams.catalog import load

        key = repr((spec.stream, sorted(spec.stream_options.items()), spec.held_out))
        if key not in self._loaded:
            if spec.held_out is None:
                self._loaded[key] = load(spec.stream, **spec.stream_options)
            else:
                self._loaded[key] = self.get(replace(spec, held_out=None)).for_tuning(spec.held_out)
        return self._loaded[key]


def serve(connection: Connection) -> None:
    """A worker process: take a job, send its outcome, until the queue ends or the parent is gone."""
    _settle()
    streams, plugged = Streams(), set[str]()
    while True:
        try:
            job = connection.recv()
            if job is None:
                return
            connection.send(carry_out(job, streams, plugged))
        except (EOFError, BrokenPipeError):
            return


def use_one_thread() -> None:
    """One thread, freed memory kept, and silence: a study's table and report tell of broken limits."""
    for variable in THREADS:
        os.environ[variable] = "1"
    import torch

    from pdcl.learning.placement import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    for category in (LimitBroken, LearningWarning):
        warnings.filterwarnings("ignore", category=category)


def _settle() -> None:
    """One thread, and an end that is the parent's to decide."""
    use_one_thread()
    # Ctrl-C reaches every process of a terminal's group; the parent hears it and asks its workers to save and stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A study that was killed leaves no worker behind that would write beside its successor."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def carry_out(work: Work, streams: Streams, plugged: set[str], patience: float = 0.0) -> Ended | Returned:
    """Do the work; an exception becomes the cause of its failure.

    patience: seconds to wait for a run's lock, where a worker that was given up may still hold it.
    """
    start = time.perf_counter()
    try:
        if isinstance(work, Call):
            return Returned(work, work.function(work.argument))
        plug_in(work.plugins, plugged)
        path, accuracy, note = _once_unlocked(work, streams.get(work.spec), patience)
    except Exception as error:
        cause = str(error) if isinstance(error, PdclError) else f"{type(error).__name__}: {error}"
        return failed(work, cause, traceback.format_exc(), time.perf_counter() - start)
    return Ended(work, time.perf_counter() - start, str(path), accuracy, note=note)


def plug_in(paths: tuple[str, ...], plugged: set[str]) -> None:
    """Import plug-in files, each once."""
    from pdcl.running.plugins import load_file

    for path in paths:
        if path not in plugged:
            load_file(path)
            plugged.add(path)


def _once_unlocked(job: Job, stream: Stream, patience: float) -> tuple[Path, float, str]:
    """`_run`, as soon as nobody else holds the run's lock; what that other one finished is then found finished."""
    limit = time.monotonic() + patience
    while True:
        try:
            return _run(job, stream)
        except Locked:
            if time.monotonic() >= limit:
                raise
            time.sleep(0.2)


def _run(job: Job, stream: Stream) -> tuple[Path, float, str]:
    """Where the record lies, the accuracy reached, and a note."""
    from pdcl.records.reading import read_result
    from pdcl.running.run import run

    spec = job.spec
    asked: dict[str, Any] = {
        "preset": spec.preset,
        "study": spec.given,
        "label": None if spec.label == spec.method else spec.label,
        "snapshot": job.snapshot,
    }
    note = ""
    try:
        try:
            result = run(stream, spec.method, out=job.out, **asked)
        except RunUnfinished as begun:
            try:
                result = run(stream, spec.method, resume=begun.path, **asked)
            except Damaged as damage:
                # Any other error may pass, or be a defect of ours: then the run and all that it saved stay there.
                aside = move_aside(begun.path)
                note = f"began again, since its saved state is damaged: {damage}; the old run is {aside}"
                result = run(stream, spec.method, out=job.out, **asked)
    except RunFinished as done:
        # Before we came, or between our first look and the second: whoever held it has ended it.
        found = read_result(done.path)["mean_accuracy"]
        return done.path, math.nan if found is None else found, note
    assert result.path is not None
    return result.path, result.mean_accuracy, note
