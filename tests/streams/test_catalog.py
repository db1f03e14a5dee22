"""Streams by name: listed without torch, found by near misses, extended from outside."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import torch

from pdcl.errors import UsageError
from pdcl.streams.catalog import Entry, UnknownStream, built_in, catalog, load, register_stream
from pdcl.streams.class_split import split
from pdcl.streams.task import Stream


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pdcl.streams.catalog._registered", {})


def toy(rows: int = 8) -> Stream:
    """Nothing but ones."""
    return split(torch.ones(rows, 2), torch.arange(rows) % 2, name="toy")


def entries() -> dict[str, Entry]:
    return {entry.name: entry for entry in catalog()}


def test_the_list_costs_no_import_of_torch() -> None:
    code = (
        "import sys; from pdcl.streams.catalog import catalog; names = [entry.name for entry in catalog()];"
        "from pdcl.lab.benchmarks.raw.archive import status; status();"
        "assert 'mnist' in names; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_built_in_stream_can_be_resolved_and_says_what_it_is() -> None:
    for entry in built_in():
        assert callable(entry.resolve())
        assert entry.summary
        assert entry.licence
        assert entry.needs_download == (entry.size > 0)


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_the_entry_tells_the_truth(name: str) -> None:
    stream = load(name)
    assert (entries()[name].tasks, entries()[name].classes) == (len(stream.tasks), stream.spec.outputs)
    assert load(name, **stream.options).fingerprint == stream.fingerprint


def test_a_misspelt_name_or_option_suggests_the_right_one() -> None:
    with pytest.raises(UnknownStream, match=r"'minst'; did you mean 'mnist'\? There are: .*digits.* mnist"):
        load("minst")
    with pytest.raises(UsageError, match="'order'; did you mean 'order_seed'"):
        load("digits", order=1)


@pytest.mark.usefixtures("own_registry")
def test_a_users_stream_is_loaded_and_listed_by_its_name() -> None:
    register_stream("toy")(toy)
    assert load("toy", rows=12).name == "toy"
    assert entries()["toy"].summary == "Nothing but ones."
    with pytest.raises(UsageError, match="'row'; did you mean 'rows'"):
        load("toy", row=12)
    with pytest.raises(UsageError, match="built-in"):
        register_stream("mnist")(toy)


def test_installed_packages_bring_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("outside", f"{built_in()[0].loader}", "pdcl.streams")
    monkeypatch.setattr("pdcl.streams.catalog.entry_points", lambda group: [point])
    assert load("outside").name == "digits"
    assert "outside" in entries()
