"""What engines share: which options belong to which, calls in order, and one writer per run."""

from __future__ import annotations

import importlib
import importlib.util
import threading
from pathlib import Path

import pytest

from pdcl.errors import UsageError, WorkFailed
from pdcl.lab.cli.study import main
from pdcl.lab.studies import Ended, Job, LocalProcesses, RunSpec
from pdcl.lab.studies.worker import Streams, carry_out
from pdcl.storage.disk import write_whole
from pdcl.storage.locking import Lock

SPEC = RunSpec(
    "synthetic", "er", "er", 0, 10, None, {"epochs": 1, "network": "linear"}, {"tasks": 2, "size": 40, "test_size": 20}
)


def half(number: int) -> float:
    return 1 / number


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--address", "auto"], "--address=auto has no effect with --engine processes"),
        (["--gpus-per-run", "0.5"], "--gpus-per-run=0.5 has no effect with --engine processes"),
        (["--engine", "ray", "--workers", "2"], "--workers=2 has no effect with --engine ray"),
    ],
)
def test_an_option_of_the_other_engine_is_an_error(words: list[str], said: str, tmp_path: Path, quick: str) -> None:
    (tmp_path / "quick.toml").write_text(quick)
    with pytest.raises(UsageError, match=said):
        main([str(tmp_path / "quick.toml"), "--out", str(tmp_path / "out"), *words])
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed here")
def test_a_missing_ray_is_named_with_the_way_to_get_it(tmp_path: Path, quick: str) -> None:
    (tmp_path / "quick.toml").write_text(quick)
    with pytest.raises(UsageError, match=r"pip install 'pdcl\[ray\]'"):
        main([str(tmp_path / "quick.toml"), "--out", str(tmp_path / "out"), "--engine", "ray"])


def test_calls_come_back_in_order_and_a_failing_one_shows_its_trace() -> None:
    with LocalProcesses(2) as engine:
        assert engine.map(half, [1, 2, 4, 8]) == [1, 0.5, 0.25, 0.125]
        with pytest.raises(WorkFailed, match=r"ZeroDivisionError[\s\S]*in half"):
            engine.map(half, [1, 0])


def test_a_run_given_out_twice_waits_for_the_other_and_takes_its_result(tmp_path: Path) -> None:
    job = Job(SPEC, str(tmp_path))
    first = carry_out(job, Streams(), set())
    assert isinstance(first, Ended)
    assert first.path is not None
    run = Path(first.path)
    result = (run / "result.json").read_bytes()
    # The other one, as it were before its end: it holds the lock, and has no result yet.
    (run / "result.json").unlink()
    lock = Lock(run).acquire()
    refused = carry_out(job, Streams(), set())
    assert "is in use by process" in (refused.cause or "")

    def finish() -> None:
        write_whole(run / "result.json", result)
        lock.release()

    timer = threading.Timer(0.5, finish)
    timer.start()
    second = carry_out(job, Streams(), set(), patience=30)
    timer.join()
    assert isinstance(second, Ended)
    assert (second.cause, second.path, second.accuracy) == (None, first.path, first.accuracy)
    assert (run / "result.json").read_bytes() == result


def test_a_run_that_the_other_ends_between_two_looks_is_taken_as_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(SPEC, str(tmp_path))
    first = carry_out(job, Streams(), set())
    assert isinstance(first, Ended)
    assert first.path is not None
    result = Path(first.path) / "result.json"
    ended = result.read_bytes()
    result.unlink()
    module = importlib.import_module("pdcl.running.run")
    run, resumed = module.run, []

    def run_as_the_other_ends(*given: object, resume: Path | None = None, **more: object) -> object:
        if resume is not None:
            result.write_bytes(ended)
            resumed.append(resume)
        return run(*given, resume=resume, **more)

    monkeypatch.setattr(module, "run", run_as_the_other_ends)
    second = carry_out(job, Streams(), set())
    assert isinstance(second, Ended)
    assert resumed
    assert (second.cause, second.path, second.accuracy) == (None, first.path, first.accuracy)
