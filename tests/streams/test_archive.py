"""Raw files: found in order, reported as they are, missed with directions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdcl.errors import UsageError
from pdcl.lab.benchmarks.raw.archive import MissingData, WrongFile, cache_directory, locate, status
from pdcl.lab.benchmarks.raw.sources import SOURCES
from pdcl.streams.catalog import load


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PDCL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PDCL_DATA", raising=False)
    return tmp_path


def put(place: Path, name: str, variant: str = "original", content: bytes = b"x") -> None:
    folder = place / SOURCES[name].folder
    folder.mkdir(parents=True, exist_ok=True)
    for file in SOURCES[name].variants[variant]:
        (folder / file.name).write_bytes(content)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_missing_data_name_file_address_command_and_places(
    name: str, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDCL_DATA", str(empty / "env"))
    with pytest.raises(MissingData) as caught:
        load(name, data=empty / "given")
    message = str(caught.value)
    for file in SOURCES[name].original:
        assert file.name in message
        assert file.url in message
    assert f"pdcl data fetch {name}" in message
    for place in ("given", "env", "cache/data"):
        assert str(empty / place / SOURCES[name].folder) in message


def test_the_named_directory_wins_then_the_variable_then_the_cache(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDCL_DATA", str(empty / "env"))
    for place in (cache_directory() / "data", empty / "env", empty / "given"):
        put(place, "organa")
        assert locate("organa", empty / "given").paths[0].parent == place / "organamnist"


def test_a_reduced_file_serves_where_the_original_is_not(empty: Path) -> None:
    put(empty, "speech", "reduced")
    assert locate("speech", empty).variant == "reduced"
    put(empty, "speech", "original")
    assert locate("speech", empty).variant == "original"


def test_some_of_the_files_are_not_enough(empty: Path) -> None:
    put(empty, "mnist")
    (empty / "mnist" / SOURCES["mnist"].original[2].name).unlink()
    with pytest.raises(MissingData):
        locate("mnist", empty)


def test_the_status_says_what_is_here_how_large_and_under_which_licence(empty: Path) -> None:
    put(empty, "organa", content=b"x" * 10)
    rows = {row.name: row for row in status(empty)}
    assert set(rows) == set(SOURCES)
    assert rows["organa"].present
    assert rows["organa"].size == 10
    assert rows["organa"].where == str(empty / "organamnist")
    assert not rows["mnist"].present
    assert rows["mnist"].size == 11_594_722
    assert all(row.licence for row in rows.values())


def test_a_file_that_is_not_what_its_name_says_is_refused(empty: Path) -> None:
    put(empty, "organa")
    with pytest.raises(WrongFile, match=r"organamnist\.npz is damaged or another file.*pdcl data fetch organa"):
        load("organa", data=empty)
    assert not list((cache_directory() / "prepared").glob("organa*/"))


def test_streams_without_raw_files_say_so() -> None:
    with pytest.raises(UsageError, match="'digits' has no raw files"):
        locate("digits")


def test_every_source_has_a_secure_checksum_an_address_and_a_size() -> None:
    for source in SOURCES.values():
        for file in source.original:
            algorithm, digits = file.checksum.split(":")
            assert len(digits) == {"sha256": 64, "md5": 32}[algorithm]
            assert file.url.startswith("http")
            assert file.size > 0
