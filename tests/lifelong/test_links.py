"""Links planted in a run, a model or an audit set: whatever pdcl writes, a stranger's files stay as they are."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdcl
from pdcl.errors import PdclError, StateError, UsageError
from pdcl.release.ledger import Ledger
from pdcl.running.resume import resume
from pdcl.storage.disk import append_line, write_whole
from pdcl.storage.locking import Lock

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
VAULT = ("manifest.json", "state.json", "state.safetensors", "network.safetensors", ".next", ".ready", "previous")
OF_A_RUN = (".lock", "events.jsonl", "result.json", "memory.safetensors", "checkpoint")


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    class Enough(Exception):
        pass

    def listener(event: Any) -> None:
        if event.kind == "evaluated" and event.task == 1:
            raise Enough

    out = tmp_path_factory.mktemp("linked-run")
    with pytest.raises(Enough):
        pdcl.run(
            pdcl.stream("synthetic", tasks=3, size=20, test_size=6, dim=3),
            "pdcl",
            memory=6,
            network="linear",
            epochs=1,
            out=out,
            listeners=[listener],
        )
    return next(out.iterdir())


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A directory of someone else, shaped like a state of ours, so that every file of it could be mistaken."""
    made = tmp_path / "stranger"
    made.mkdir()
    for name in (*VAULT[:4], "precious.txt"):
        (made / name).write_text(f"the stranger's {name}")
    return made


def _content(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def _plant(place: Path, stranger: Path, directory: bool) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(stranger if directory else stranger / "precious.txt")


@pytest.mark.parametrize("directory", [False, True], ids=["to-a-file", "to-a-directory"])
@pytest.mark.parametrize("name", [*OF_A_RUN, *(f"checkpoint/{part}" for part in VAULT)])
def test_resume_writes_through_no_link(
    name: str, directory: bool, interrupted: Path, stranger: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(interrupted, run)
    _plant(run / name, stranger, directory)
    before = _content(stranger)
    with contextlib.suppress(PdclError):
        resume(run, checkpoint_every=1)
    assert _content(stranger) == before


@pytest.mark.parametrize("directory", [False, True], ids=["to-a-file", "to-a-directory"])
@pytest.mark.parametrize("name", [".lock", "MODEL.md", *VAULT])
def test_save_writes_through_no_link(name: str, directory: bool, stranger: Path, tmp_path: Path, blobs: Any) -> None:
    learner = pdcl.PDCL("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    for _ in range(2):
        learner.save(tmp_path / "model")
    _plant(tmp_path / "model" / name, stranger, directory)
    before = _content(stranger)
    for _ in range(2):
        with contextlib.suppress(PdclError):
            learner.save(tmp_path / "model")
    assert _content(stranger) == before


def test_a_file_that_does_not_exist_yet_is_not_made_through_a_link(interrupted: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(interrupted, run)
    for name in (".lock", "events.jsonl"):
        _plant(run / name, tmp_path / "nowhere", directory=True)
        with pytest.raises(StateError, match=rf"{name} is a link"):
            resume(run)
        (run / name).unlink()
    assert not (tmp_path / "nowhere").exists()


def test_a_model_may_lie_behind_a_link_of_its_owner(tmp_path: Path, blobs: Any) -> None:
    (tmp_path / "large-disk").mkdir()
    (tmp_path / "model").symlink_to(tmp_path / "large-disk")
    learner = pdcl.PDCL("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    learner.save(tmp_path / "model")
    assert (tmp_path / "large-disk" / "manifest.json").exists()
    assert pdcl.load(tmp_path / "model").tasks_learned == 1


def test_an_audit_set_and_its_ledger_write_through_no_link(stranger: Path, tmp_path: Path, blobs: Any) -> None:
    before = _content(stranger)
    for name in ("samples.npz", "ledger.jsonl", ".lock"):
        audit = tmp_path / name.strip(".") / "audit"
        audit.mkdir(parents=True)
        (audit / name).symlink_to(stranger / "precious.txt")
        with contextlib.suppress(PdclError):
            pdcl.PDCL("linear", memory=10).learn(*blobs(["a", "b"]), epochs=1, audit=audit)
        with contextlib.suppress(PdclError):
            Ledger(audit / "ledger.jsonl").look({"model": "m"})
    assert _content(stranger) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ledger.jsonl")
    with pytest.raises(OSError, match="no ordinary file"):
        append_line(tmp_path / "ledger.jsonl", b"{}")
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(StateError, match="no ordinary file"):
        Lock(tmp_path).acquire()


def test_a_link_in_place_of_a_whole_file_is_replaced(stranger: Path, tmp_path: Path) -> None:
    (tmp_path / "MODEL.md").symlink_to(stranger / "precious.txt")
    write_whole(tmp_path / "MODEL.md", b"ours")
    assert (tmp_path / "MODEL.md").read_bytes() == b"ours"
    assert not (tmp_path / "MODEL.md").is_symlink()


def test_figures_are_written_through_no_link(stranger: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from pdcl.lab.figures.style import figure, save

    (tmp_path / "zeta.svg").symlink_to(stranger / "precious.txt")
    before = _content(stranger)
    with figure() as (made, axes):
        axes.plot(np.arange(3))
        save(made, tmp_path, "zeta")
    assert _content(stranger) == before
    assert (tmp_path / "zeta.svg").read_text().startswith("<?xml")


def test_the_figure_of_a_what_if_is_written_through_no_link(stranger: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from pdcl.lab.studies.whatif import Curve, Point
    from pdcl.lab.studies.whatif_figure import draw

    place = tmp_path / "whatif-task1.png"
    place.symlink_to(stranger / "precious.txt")
    before = _content(stranger)
    draw(Curve(0, "jan", 0.5, 1.0, 0.2, [Point(0.1, -0.1, None, -0.1, 0.4)], 1), place)
    assert _content(stranger) == before
    assert place.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="banana"):
        draw(Curve(0, "jan", 0.5, 1.0, 0.2, [Point(0.1, -0.1, None, -0.1, 0.4)], 1), tmp_path / "a.banana")


def test_a_checkpoint_directory_that_leads_elsewhere_is_refused(interrupted: Path, tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    shutil.copytree(interrupted, run)
    elsewhere.mkdir()
    _plant(run / "checkpoint", elsewhere, directory=True)
    with pytest.raises(StateError, match="checkpoint is a link"):
        resume(run)
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("name", [".ready", "previous", ".next"])
def test_another_model_is_never_moved_away_through_a_link(name: str, tmp_path: Path, blobs: Any) -> None:
    learner = pdcl.PDCL("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    learner.save(tmp_path / "other")
    before = {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()}
    learner.save(tmp_path / "model")
    _plant(tmp_path / "model" / name, tmp_path / "other", directory=True)
    learner.save(tmp_path / "model")
    assert {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()} == before


def test_forgetting_reaches_no_other_model_through_a_link(tmp_path: Path, blobs: Any) -> None:
    learner, (x, y) = pdcl.PDCL("linear", memory=10), blobs(["a", "b"])
    learner.learn(x, y, epochs=1)
    for name in ("other", "model"):
        learner.save(tmp_path / name)
    before = {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()}
    _plant(tmp_path / "model" / "previous", tmp_path / "other", directory=True)
    with pytest.raises(StateError, match="previous is a link"):
        pdcl.forget(tmp_path / "model", samples=x[:30])
    assert {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()} == before
