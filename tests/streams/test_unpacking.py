"""Archives are read in memory: no member's path matters, and none unfolds without end."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from pdcl.lab.benchmarks.raw.archive import WrongFile
from pdcl.lab.benchmarks.raw.unpacking import members

FILES = {"a/one.txt": b"1" * 10, "a/two.bin": b"2" * 20, "../outside.txt": b"3", "/root.txt": b"4"}


def packed(place: Path, kind: str, files: dict[str, bytes] = FILES) -> Path:
    path = place / f"archive.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("a/link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
    return path


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_wanted_files_come_with_their_content_and_nothing_is_written(tmp_path: Path, kind: str) -> None:
    path = packed(tmp_path, kind)
    found = dict(members(path, lambda name: name.endswith(".txt")))
    assert {name.lstrip("/"): content for name, content in found.items()} == {
        "a/one.txt": b"1" * 10,
        "../outside.txt": b"3",
        "root.txt": b"4",
    }
    assert list(tmp_path.iterdir()) == [path]
    assert not (tmp_path.parent / "outside.txt").exists()


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_member_or_a_whole_that_is_too_large_is_refused(tmp_path: Path, kind: str) -> None:
    path = packed(tmp_path, kind, {"bomb": b"\0" * 100_000, "more": b"\0" * 100_000})
    with pytest.raises(WrongFile, match="bomb is larger than 50,000 bytes"):
        list(members(path, lambda _: True, largest=50_000))
    with pytest.raises(WrongFile, match="more than 150,000 bytes"):
        list(members(path, lambda _: True, total=150_000))


def test_a_leading_dot_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = packed(tmp_path, "tar.gz", {"./lists.txt": b"x"})
    assert dict(members(path, lambda name: name == "lists.txt")) == {"lists.txt": b"x"}
