from __future__ import annotations

import sys

import pytest

from pdcl.cli import figures as command_line
from pdcl.errors import UsageError
from pdcl.records import scan
from pdcl.reports.figures import style
from pdcl.reports.figures.drawing import draw
from pdcl.reports.figures.runs import zeta
from pdcl.reports.figures.sweeps import amount, varied

PLOTS = (
    "zeta",
    "accuracy-memory-digits",
    "forgetting-memory-digits",
    "partition-digits",
    "distance-digits",
    "map-digits",
    "duals-digits",
)


def test_every_plot_with_data_comes_in_three_formats_and_the_rest_is_named(real_runs, tmp_path, capsys):
    assert command_line.main([str(real_runs), "-o", str(tmp_path)]) == 0
    for name in PLOTS:
        for form, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
            assert (tmp_path / f"{name}.{form}").read_bytes().startswith(start)
    said = capsys.readouterr().out
    assert "left out alpha-digits: no two groups" in said
    assert said.splitlines()[-1].startswith("next: pdcl report ")


def test_runs_that_differ_in_one_option_make_a_sweep(tmp_path, fake_run, monkeypatch):
    monkeypatch.setattr(style, "FORMATS", ("svg",))
    for seed in range(2):
        for value in ("0.01", "0.05", "0.5"):
            fake_run(tmp_path / "runs", seed=seed, options={"tolerance": value})
        fake_run(tmp_path / "runs", seed=seed, options={"alpha": 1.0, "tolerance": "0.05"})
    rows = scan(tmp_path / "runs")
    assert [list(line) for line in varied(rows, "tolerance") if len(line) > 1] == [[0.01, 0.05, 0.5]]
    drawn = draw([tmp_path / "runs"], tmp_path / "out")
    names = {path.stem for path in drawn.paths}
    assert {"tolerance-digits", "alpha-digits"} <= names
    assert {"map-digits", "duals-tolerance-digits"} <= drawn.skipped.keys()


def test_a_figure_drawn_twice_is_the_same_file(tmp_path):
    first, second = ([path.read_bytes() for path in style.save(zeta(), tmp_path, "zeta")] for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("value", "number"),
    [(0.5, 0.5), ("1.1x", 1.1), ("0.05", 0.05), ("1e-3", 1e-3), ("auto", None), (True, None), (None, None)],
)
def test_an_option_is_a_number_where_it_begins_with_one(value, number):
    assert amount(value) == number


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'pdcl\[figures\]'"):
        draw([tmp_path], tmp_path)
