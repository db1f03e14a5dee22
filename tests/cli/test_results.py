from __future__ import annotations

import json

import pytest

from pdcl.errors import UsageError
from pdcl.lab.cli.results import main


@pytest.fixture
def runs(tmp_path, fake_run):
    for seed in range(3):
        fake_run(tmp_path, accuracy=0.8 + seed / 100, seed=seed)
        fake_run(tmp_path, accuracy=0.7 + seed / 50, seed=seed, method="er")
    return tmp_path


def test_the_table_ends_with_what_to_type_next(runs, capsys):
    assert main([str(runs)]) == 0
    out = capsys.readouterr().out
    assert "pdcl " in out
    assert out.splitlines()[-1] == f"next: pdcl results {runs} --against er"


def test_differences_come_with_against(runs, capsys):
    main([str(runs), "--against", "er", "pdcl"])
    out = capsys.readouterr().out
    assert "difference to er on the same seeds" in out
    assert "difference to pdcl on the same seeds" in out


def test_what_goes_to_a_file_is_the_table_alone(runs, capsys, fake_run):
    fake_run(runs, accuracy=None, seed=7)
    main([str(runs), "--format", "json", "--against", "er"])
    out, err = capsys.readouterr()
    assert {group["method"] for group in json.loads(out)["groups"]} == {"pdcl", "er"}
    assert "Left out: 1 unfinished" in err
    assert err.splitlines()[-1].startswith("next: pdcl run digits pdcl --memory 100 --seeds 6 --out ")


def test_damaged_runs_are_named_but_not_by_the_hundred(runs, capsys, fake_run):
    for seed in range(10, 15):
        (fake_run(runs, seed=seed) / "result.json").write_text("{")
    main([str(runs)])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Left out")]
    assert len(lines) == 4
    assert lines[-1] == "Left out: 2 more that can't be read"


def test_one_method_alone_is_sent_for_company(tmp_path, fake_run, capsys):
    path = fake_run(tmp_path, method="er-ring")
    main([str(path)])
    assert f"next: pdcl run digits pdcl --memory 100 --seeds 1 --out {tmp_path}" in capsys.readouterr().out


def test_the_next_run_has_the_preset_of_those_it_joins(tmp_path, fake_run, capsys):
    main([str(fake_run(tmp_path, method="er-ring", preset="tuned"))])
    assert "next: pdcl run digits pdcl --preset tuned --memory 100 --seeds 1 --out" in capsys.readouterr().out


def test_a_directory_with_a_space_is_quoted(tmp_path, fake_run, capsys):
    for method in ("er", "pdcl"):
        fake_run(tmp_path / "my runs", method=method)
    main([str(tmp_path / "my runs")])
    assert f"pdcl results '{tmp_path / 'my runs'}'" in capsys.readouterr().out


def test_an_empty_directory_says_how_to_fill_it(tmp_path, fake_run):
    with pytest.raises(UsageError, match="pdcl run digits pdcl"):
        main([str(tmp_path)])
    path = fake_run(tmp_path, accuracy=None)
    with pytest.raises(UsageError, match=f"pdcl resume {path}"):
        main([str(tmp_path)])
    fake_run(tmp_path / "x")
    (path / "result.json").write_text("{")
    with pytest.raises(UsageError, match="can be read"):
        main([str(path)])


def test_an_unknown_option_stops_before_anything_is_read(tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path), "--formt", "md"])
    assert stopped.value.code == 2
