"""Preparation happens once and whole: killed, failed or doubled, it leaves nothing that looks complete."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from pdcl.errors import PdclError
from pdcl.lab.benchmarks.raw.archive import Located
from pdcl.lab.benchmarks.raw.preparing import Arrays, prepared
from pdcl.lab.benchmarks.raw.sources import SOURCES, File, Source

RAW = b"raw bytes"

# Makes the arrays of a toy source in a process of its own; {act} happens half-way.
SCRIPT = """
import os, sys, time
import numpy as np
from pathlib import Path
from pdcl.lab.benchmarks.raw.sources import SOURCES, File, Source
from pdcl.lab.benchmarks.raw import preparing
SOURCES["toy"] = Source("toy", "toys", "MIT", "", (File("raw.bin", {checksum!r}, 9),))
def make(located):
    Path({log!r}).open("a").write("made\\n")
    {act}
    return {{"train_x": np.arange(1000)}}
print(int(preparing.prepared("toy", make).arrays["train_x"].sum()))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PDCL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PDCL_DATA", str(tmp_path))
    (tmp_path / "toys").mkdir()
    (tmp_path / "toys" / "raw.bin").write_bytes(RAW)
    checksum = "sha256:" + hashlib.sha256(RAW).hexdigest()
    monkeypatch.setitem(SOURCES, "toy", Source("toy", "toys", "MIT", "", (File("raw.bin", checksum, 9),)))
    return tmp_path


def make(located: Located) -> Arrays:
    return {"train_x": np.arange(1000)}


def never(located: Located) -> Arrays:
    raise AssertionError("prepared twice")


def start(place: Path, act: str) -> subprocess.Popen[str]:
    checksum = SOURCES["toy"].original[0].checksum
    code = SCRIPT.format(checksum=checksum, log=str(place / "log"), act=act)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def visible(place: Path) -> list[str]:
    folder = place / "cache" / "prepared"
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.exists() else []


def test_the_second_time_nothing_is_made_nor_hashed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepared("toy", make)
    monkeypatch.setattr("pdcl.lab.benchmarks.raw.preparing.require_right", never)
    second = prepared("toy", never)
    assert np.array_equal(first.arrays["train_x"], second.arrays["train_x"])
    assert second.fingerprint == {"raw.bin": SOURCES["toy"].original[0].checksum}


def test_prepared_data_outlive_their_raw_files(place: Path) -> None:
    prepared("toy", make)
    (place / "toys" / "raw.bin").unlink()
    assert prepared("toy", never).variant == "original"


def test_options_are_prepared_apart(place: Path) -> None:
    prepared("toy", make, size=64)
    prepared("toy", make, size=32)
    assert len(visible(place)) == 2


@pytest.mark.filterwarnings("error")
def test_arrays_are_mapped_and_writing_to_them_never_reaches_the_file(place: Path) -> None:
    mapped = prepared("toy", make).arrays["train_x"]
    assert isinstance(mapped, np.memmap)
    torch.from_numpy(mapped)[0] = 77
    assert prepared("toy", never).arrays["train_x"][0] == 0


def test_a_killed_preparation_is_not_mistaken_for_a_whole_one(place: Path) -> None:
    process = start(place, "(Path(preparing.cache_directory()) / 'half').write_text(''); time.sleep(60)")
    while not (place / "cache" / "half").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert [name for name in visible(place) if not name.startswith(".")] == []
    assert prepared("toy", make).arrays["train_x"].sum() == 499_500
    assert len(visible(place)) == 1


def test_a_failed_preparation_leaves_nothing(place: Path) -> None:
    def fails(located: Located) -> Arrays:
        raise RuntimeError("broken image")

    with pytest.raises(RuntimeError, match="broken image"):
        prepared("toy", fails)
    assert visible(place) == []


def test_two_processes_at_once_prepare_once(place: Path) -> None:
    processes = [start(place, "time.sleep(0.5)") for _ in range(3)]
    outputs = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert outputs == ["499500"] * 3
    assert (place / "log").read_text() == "made\n"
    assert len(visible(place)) == 1


def test_a_cache_that_can_not_be_written_says_what_to_set(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "occupied").write_text("a file, no directory")
    monkeypatch.setenv("PDCL_CACHE", str(place / "occupied"))
    with pytest.raises(PdclError, match=r"can't be written.*\$PDCL_CACHE"):
        prepared("toy", make)
