"""Every touch of the disk fails once; afterwards the directory always loads to a good state."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pdcl
from pdcl.errors import Diverged, PdclError, StateError
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule
from pdcl.records import checkpoint
from pdcl.storage.serialize import same
from pdcl.storage.vault import Vault
from pdcl.testing import SITUATIONS, gaussian_stream

ENDINGS: dict[str, Callable[[], OSError]] = {
    "full": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "broken": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
}


def _parts(version: int) -> dict[str, bytes]:
    return {"a.json": b"a%d" % version, "b.safetensors": b"b%d" % version * 100}


@pytest.mark.parametrize("ending", [*ENDINGS, "crash"])
def test_a_vault_holds_the_old_state_or_the_new_whatever_fails(ending: str, tmp_path: Path, faults: Any) -> None:
    points = _points_of_a_write(tmp_path / "counted", faults)
    assert points >= 10
    for point in range(1, points + 1):
        vault = Vault(tmp_path / f"{ending}{point}", "checkpoint")
        faults.arm(None, ENDINGS.get(ending))
        vault.write(_parts(1), {"n": 1})
        vault.write(_parts(2), {"n": 2})
        failure = _attempt(vault, faults, point, ending)
        held = vault.read()
        assert held.about["n"] in (2, 3), f"{ending} at {point}"
        assert held.parts == _parts(held.about["n"])
        assert not held.instead_of
        if failure is None:
            assert held.about["n"] == 3
        vault.write(_parts(4), {"n": 4})
        assert vault.read().parts == _parts(4), f"{ending} at {point}: the directory can't be written any more"


def _points_of_a_write(path: Path, faults: Any) -> int:
    vault = Vault(path, "checkpoint")
    vault.write(_parts(1), {"n": 1})
    vault.write(_parts(2), {"n": 2})
    faults.arm(None, OSError)
    vault.write(_parts(3), {"n": 3})
    count: int = faults.count
    return count


def _attempt(vault: Vault, faults: Any, point: int, ending: str) -> BaseException | None:
    from_start = ENDINGS.get(ending) or faults.error_of_a_crash
    faults.arm(point, from_start)
    try:
        vault.write(_parts(3), {"n": 3})
    except StateError as error:
        return error
    except faults.error_of_a_crash as error:
        return error
    finally:
        faults.arm(None, from_start)
    return None


@pytest.mark.parametrize("ending", [*ENDINGS, "crash"])
def test_a_saved_model_always_loads_whatever_fails(ending: str, tmp_path: Path, faults: Any, blobs: Any) -> None:
    learner = pdcl.PDCL("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    learner.save(tmp_path / "model")
    old = learner.state_dict()
    learner.learn(*blobs(["c"]), epochs=1)
    point, failed = 0, True
    while failed:
        point += 1
        directory = tmp_path / f"m{point}"
        _copied(tmp_path / "model", directory)
        faults.arm(point, ENDINGS.get(ending) or faults.error_of_a_crash)
        try:
            learner.save(directory)
            failed = False
        except PdclError:
            assert ending != "crash"
        except BaseException:
            assert ending == "crash"
        faults.arm(None, OSError)
        found = pdcl.load(directory).state_dict()
        assert same(found, learner.state_dict()) or same(found, _reloaded(tmp_path / "model"))
    assert point > 10
    assert same(_reloaded(tmp_path / "model")["tasks_learned"], old["tasks_learned"])


def _reloaded(path: Path) -> Any:
    return pdcl.load(path).state_dict()


def _copied(old: Path, new: Path) -> None:
    import shutil

    shutil.copytree(old, new)


def test_a_disk_that_fills_up_stops_a_run_with_its_last_checkpoint_intact(tmp_path: Path, faults: Any) -> None:
    stream = gaussian_stream(SITUATIONS["plain"])
    run: Any = {"epochs": 1, "batch": 8, "checkpoint_every": 1, "out": tmp_path}
    whole = pdcl.run(stream, pdcl.PDCL("linear", memory=12), **{**run, "out": tmp_path / "whole"})
    faults.arm(70, ENDINGS["full"])
    with pytest.raises(StateError, match="No space left"):
        pdcl.run(stream, pdcl.PDCL("linear", memory=12), **run)
    faults.arm(None, OSError)
    assert whole.path is not None
    path = tmp_path / whole.path.name
    assert checkpoint.read(path) is not None
    del run["out"]
    again = pdcl.run(stream, pdcl.PDCL("linear", memory=12), **run, resume=path)
    assert again.accuracy == whole.accuracy
    assert same(again.learner.state_dict(), whole.learner.state_dict())  # type: ignore[union-attr]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_directory_is_said_so(tmp_path: Path, blobs: Any) -> None:
    learner = pdcl.PDCL("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    tmp_path.chmod(0o500)
    with pytest.raises(StateError, match="Permission denied"):
        learner.save(tmp_path / "model")


def test_weights_that_are_no_longer_finite_are_never_saved(tmp_path: Path) -> None:
    stream = gaussian_stream(SITUATIONS["plain"])
    learner = pdcl.PDCL("linear", memory=12)
    learner.prepare(stream.spec)
    loop = Loop(learner, stream, Schedule(1, 8))
    checkpoint.write(tmp_path, loop, 0, {})
    next(learner.model.parameters()).data.fill_(float("nan"))
    with pytest.raises(Diverged):
        checkpoint.write(tmp_path, loop, 0, {})
    found = checkpoint.read(tmp_path)
    assert found is not None
    assert all(bool(value.isfinite().all()) for value in found.state["learner"]["network"].values())


def test_a_diverging_task_leaves_the_learner_as_it_was(blobs: Any) -> None:
    import copy

    learner = pdcl.PDCL("linear", memory=10, optimizer="sgd", lr=0.1)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    before = copy.deepcopy(learner.state_dict())
    x, y = blobs(["a", "b"], seed=1)
    with pytest.raises(Diverged, match="task 1"):
        learner.learn(x * 1e36, y[::-1].copy(), epochs=3)
    assert same(learner.state_dict(), before)
    assert len(learner.lineage.entries) == 1


@pytest.mark.parametrize("ending", list(ENDINGS))
def test_a_failed_save_says_which_state_is_there_and_the_same_learner_saves_again(
    ending: str, tmp_path: Path, faults: Any, blobs: Any
) -> None:
    learner = pdcl.PDCL("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    learner.save(tmp_path / "model")
    learner.learn(*blobs(["c"]), epochs=1)
    point, said = 0, set()
    while True:
        point += 1
        directory = tmp_path / f"m{point}"
        _copied(tmp_path / "model", directory)
        faults.arm(point, ENDINGS[ending])
        try:
            learner.save(directory)
            break
        except StateError as error:
            told = str(error)
        faults.arm(None, OSError)
        new = pdcl.load(directory).tasks_learned == 2
        assert ("untouched" in told) == (not new), f"{told} (at {point})"
        said.add(new)
        learner.save(directory)
        assert pdcl.load(directory).tasks_learned == 2
    assert said == {False, True}


def test_a_crash_while_the_old_state_moves_away_loses_neither(tmp_path: Path, faults: Any) -> None:
    points = _points_of_a_write(tmp_path / "counted", faults)
    for point in range(1, points + 1):
        vault = Vault(tmp_path / f"{point}", "checkpoint")
        vault.write(_parts(1), {"n": 1})
        vault.write(_parts(2), {"n": 2})
        _attempt(vault, faults, point, "crash")
        # No JSON: this write is refused once it has finished what the crash left.
        with pytest.raises(TypeError):
            vault.write(_parts(4), {"n": object()})
        now, before = vault.read(), Vault(vault.path / "previous", "checkpoint").read()
        assert (now.about["n"], before.about["n"]) in {(2, 1), (3, 2)}, point
