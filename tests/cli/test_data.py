"""`pdcl data`: what is here, what is missing, what is right."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pdcl.cli import main
from pdcl.lab.benchmarks.raw import archive
from pdcl.lab.benchmarks.raw.sources import SOURCES


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for data, and nothing anywhere else."""
    monkeypatch.setenv("PDCL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PDCL_DATA", raising=False)
    return tmp_path / "data"


def put(place: Path, content: bytes) -> None:
    """Files that are called as mnist's are."""
    folder = place / SOURCES["mnist"].folder
    folder.mkdir(parents=True)
    for file in SOURCES["mnist"].original:
        (folder / file.name).write_bytes(content)


def test_list_names_every_stream_its_size_and_licence(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(place, b"x" * 500_000)
    assert main(["data", "list", "--data", str(place)]) == 0
    said = capsys.readouterr().out
    lines = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    assert "yes" in lines["mnist"]
    assert "2.0 MB" in lines["mnist"]
    assert all(SOURCES[name].licence in lines[name] for name in SOURCES)
    assert "no " in lines["speech"]
    assert said.splitlines()[-1] == "next: pdcl data fetch organa"
    assert str(place) in said


def test_verify_tells_a_wrong_file_from_a_right_one(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(place, b"content")
    assert main(["data", "verify", "mnist", "--data", str(place)]) == 1
    said = capsys.readouterr().out
    assert said.count("WRONG") == 4
    assert "pdcl data fetch mnist" in said
    sha = f"sha256:{hashlib.sha256(b'content').hexdigest()}"
    right = tuple(replace(file, checksum=sha) for file in SOURCES["mnist"].original)
    monkeypatch.setitem(archive.SOURCES, "mnist", replace(SOURCES["mnist"], original=right))
    assert main(["data", "verify", "--data", str(place)]) == 0
    assert capsys.readouterr().out.count("right") == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fetch"], "name the streams"),
        (["fetch", "digits"], "has no raw files"),
        (["verify"], "no data here"),
        (["verify", "mnist"], "Looked in"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_message(
    words: list[str], said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", *words]) == 1
    assert said in capsys.readouterr().err


def test_a_verb_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data"]) == 2
    assert main(["data", "--help"]) == 0
    assert "list|fetch|verify" in capsys.readouterr().out


def test_torch_is_not_imported() -> None:
    code = "import sys; from pdcl.cli import main; main(['data', 'list']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
