"""A study meets runs that it can't go on with: nothing of them is ever deleted."""

from __future__ import annotations

import errno
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pdcl.cli import main
from pdcl.errors import PdclError
from pdcl.lab.reports.live.following import Directory
from pdcl.lab.studies import Outcome, execute
from pdcl.lab.studies.parsing import parse
from pdcl.learning.loop import Loop
from pdcl.records import Record, scan, survey
from pdcl.storage import disk


@pytest.fixture
def study(quick: str, engine: Any) -> Callable[[Path], Outcome]:
    content = tomllib.loads(quick)
    content["study"] |= {"methods": ["er"], "seeds": 1}
    return lambda out: execute(parse(content, quick), out, engine)


@pytest.fixture
def begun(study: Any, tmp_path: Path) -> Path:
    """A run of the study that a power cut ended in its second task."""
    real = Record.listener

    def listener(self: Record, event: Any) -> None:
        real(self, event)
        if event.kind == "stepped" and event.task == 1:
            raise RuntimeError("power cut")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Record, "listener", listener)
        (failed,) = study(tmp_path).failures
    assert "power cut" in str(failed.cause)
    (run,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert (run / "checkpoint" / "manifest.json").exists()
    return run


def _content(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def _damage(run: Path) -> None:
    for path in run.rglob("state.json"):
        path.write_bytes(path.read_bytes()[:-10])


def _full(where: str) -> Callable[[Path, bytes], None]:
    """`disk.write` on a disk that has no room left for paths with `where` in them."""
    real = disk.write

    def write(path: Path, content: bytes) -> None:
        if where in str(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content)

    return write


def test_a_full_disk_ends_a_run_and_keeps_what_it_saved(study: Any, begun: Path, tmp_path: Path) -> None:
    saved = {name: content for name, content in _content(begun).items() if name.startswith("checkpoint")}
    with pytest.MonkeyPatch.context() as full:
        full.setattr(disk, "write", _full("checkpoint"))
        (failed,) = study(tmp_path).failures
    assert "No space left" in str(failed.cause)
    assert {name: content for name, content in _content(begun).items() if name.startswith("checkpoint")} == saved
    assert len(study(tmp_path).done) == 1


def test_a_disk_too_full_for_the_study_itself_is_one_message(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "write", _full("study.toml"))
    with pytest.raises(PdclError, match="No space left"):
        study(tmp_path)


def test_a_disk_that_can_not_be_read_now_ends_a_run_and_keeps_it(study: Any, begun: Path, tmp_path: Path) -> None:
    before, real = _content(begun), Path.read_bytes

    def read(self: Path) -> bytes:
        if "checkpoint" in self.parts:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(self)

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(Path, "read_bytes", read)
        (failed,) = study(tmp_path).failures
    assert "Input/output error" in str(failed.cause)
    assert _content(begun) == before


def test_a_defect_of_ours_ends_a_run_and_keeps_it(
    study: Any, begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = _content(begun)

    def defect(self: Loop, state: Any) -> None:
        raise KeyError("a defect of ours")

    monkeypatch.setattr(Loop, "load_state_dict", defect)
    (failed,) = study(tmp_path).failures
    assert "a defect of ours" in str(failed.cause)
    kept = _content(begun)
    assert {name: kept[name] for name in saved if name != "events.jsonl"} == {
        name: saved[name] for name in saved if name != "events.jsonl"
    }


def test_a_damaged_run_is_moved_aside_said_so_and_begun_again(study: Any, begun: Path, tmp_path: Path) -> None:
    _damage(begun)
    before = _content(begun)
    (ended,) = study(tmp_path).done
    aside = begun.with_name(f"{begun.name}.damaged-1")
    assert _content(aside) == before
    assert "truncated" in ended.note
    assert str(aside) in ended.note
    (row,) = scan(tmp_path)
    assert row.path == begun


def test_what_was_moved_aside_is_in_no_table_and_on_no_page(study: Any, begun: Path, tmp_path: Path) -> None:
    _damage(begun)
    study(tmp_path)
    found = survey(tmp_path)
    assert (len(found.rows), found.unfinished, found.unreadable) == (1, [], [])
    directory = Directory(tmp_path)
    directory.refresh()
    assert [row["name"] for row in directory.changes(0)[1]] == [begun.name]


def test_a_second_damage_takes_the_next_number(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / "run").mkdir()
        assert disk.move_aside(tmp_path / "run") == tmp_path / f"run.damaged-{number}"


def test_the_command_line_says_that_a_run_was_moved_aside(
    quick: str, begun: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _damage(begun)
    file = tmp_path / "quick.toml"
    file.write_text(quick.replace('["finetune", "er"]', '["er"]').replace("seeds = 2", "seeds = 1"))
    assert main(["study", str(file), "--out", str(tmp_path), "--workers", "1"]) == 0
    assert f"{begun.name}.damaged-1" in capfd.readouterr().out
