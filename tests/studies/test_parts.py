"""A study in parts: each is a study of its own, runs that they share are carried out once."""

from __future__ import annotations

import pytest

from pdcl.errors import UsageError
from pdcl.lab.cli import study as command_line
from pdcl.lab.studies import execute, load
from pdcl.lab.studies.parsing import parse

CONTENT = {
    "study": {"name": "s", "streams": ["synthetic"], "methods": ["er", "pdcl"], "memory": [20], "seeds": 1},
    "parts": {
        "first": {},
        "alpha": {"methods": ["pdcl"], "grid": {"drift": [0.1, 0.9]}},
        "again": {"methods": ["er"], "on": {"synthetic": {"memory": [20, 30]}}},
    },
}


def test_runs_come_part_by_part_and_shared_ones_once() -> None:
    titles = [run.title for run in parse(CONTENT).runs()]
    assert titles == [
        "synthetic er m20 s0", "synthetic pdcl m20 s0",
        "synthetic pdcl m20 s0 drift=0.1", "synthetic pdcl m20 s0 drift=0.9",
        "synthetic er m30 s0",
    ]  # fmt: skip


def test_named_parts_alone_are_run_in_the_order_of_the_file() -> None:
    titles = [run.title for run in parse(CONTENT).restricted(["again", "alpha"]).runs()]
    assert titles[0] == "synthetic pdcl m20 s0 drift=0.1"
    assert titles[-2:] == ["synthetic er m20 s0", "synthetic er m30 s0"]
    assert len(parse(CONTENT).restricted([]).runs()) == 5


def test_an_unknown_part_a_study_without_parts_and_a_bad_part_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--part has 'alfa'.*Did you mean 'alpha'"):
        parse(CONTENT).restricted(["alfa"])
    with pytest.raises(UsageError, match="has no parts"):
        load("demo").restricted(["alpha"])
    with pytest.raises(UsageError, match=r"\[parts.x\].*'sorts'"):
        parse({"study": CONTENT["study"], "parts": {"x": {"sorts": 1}}})


def test_a_part_is_carried_out_and_the_whole_goes_on_from_it(tmp_path, engine) -> None:
    study = parse(CONTENT)
    first = execute(study.restricted(["first"]), tmp_path, engine)
    rest = execute(study, tmp_path, engine)
    assert (len(first.done), len(rest.skipped), len(rest.done)) == (2, 2, 3)


def test_the_paper_has_every_part_and_the_sizes_that_it_promises() -> None:
    paper = load("paper")
    assert [*paper.parts][:5] == ["mnist", "speech", "epsilon", "epsilon-mnist", "alpha"]
    assert {"organa", "bp", "tiny", "lambda", "tsne", "prices", "noise", "capacity"} <= {*paper.parts}
    found = {(run.stream, run.preset, run.memory) for run in paper.runs() if not run.options}
    sizes = {("mnist", p, m) for p in ("paper", "equal") for m in (200, 500, 1000, 2000)}
    sizes |= {(s, "paper", m) for s in ("speech", "organa") for m in (200, 500, 1000)}
    assert sizes | {("speech", "equal", 500), ("organa", "equal", 500)} <= found


def test_a_dry_run_says_how_long_each_part_takes(capsys, tmp_path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        '[study]\nname = "s"\nstreams = ["synthetic"]\nmethods = ["er"]\nmemory = 20\nseeds = 2\n'
        '[parts.one]\n[parts.two]\nmethods = ["pdcl"]\n'
    )
    command = [str(file), "--dry-run", "--workers", "1", "--out", str(tmp_path / "none")]
    assert command_line.main(command) == 0
    said = capsys.readouterr().out
    assert "part one                 2 runs,    2 to run   0:00:04" in said
    assert command_line.main([*command, "--part", "two"]) == 0
    assert "part one" not in capsys.readouterr().out


def test_packed_runs_are_done_wherever_they_are_unpacked(tmp_path, engine, capsys) -> None:
    from pdcl.lab.cli import unpack
    from pdcl.lab.studies.packing import pack
    from pdcl.records import scan

    study = parse(CONTENT)
    execute(study.restricted(["first"]), tmp_path / "here", engine)
    pack([row.path for row in scan(tmp_path / "here")], tmp_path / "runs.gz")
    assert unpack.main([str(tmp_path / "runs.gz"), "--out", str(tmp_path / "there")]) == 0
    assert "2 runs written" in capsys.readouterr().out
    rest = execute(study, tmp_path / "there", engine)
    assert (len(rest.done), len(rest.skipped), rest.failures) == (3, 2, [])
