"""`pdcl` without a word more is one thing, wherever it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pdcl
from pdcl.cli import main
from pdcl.records import read_config, read_result, scan


def from_a_command_line(out: Path, stated: dict[str, str]) -> None:
    words = [word for name, value in stated.items() for word in (f"--{name}", value)]
    assert main(["run", "digits", "pdcl", "--epochs", "1", *words, "--out", str(out)]) == 0


def as_an_object(out: Path, stated: dict[str, Any]) -> None:
    pdcl.run(pdcl.stream("digits"), pdcl.PDCL(**stated), epochs=1, out=out)


def in_a_study(out: Path, stated: dict[str, str]) -> None:
    lines = ["[study]", 'name = "one"', 'streams = ["digits"]', 'methods = ["pdcl"]', "seeds = 1", "[options]"]
    lines += ["epochs = 1", *(f'{name} = "{value}"' for name, value in stated.items())]
    out.mkdir()
    (out / "one.toml").write_text("\n".join(lines))
    assert main(["study", str(out / "one.toml"), "--out", str(out), "--workers", "1"]) == 0


@pytest.mark.filterwarnings("ignore::pdcl.errors.LearningWarning", "ignore::pdcl.errors.LimitBroken")
@pytest.mark.parametrize("stated", [{}, {"tolerance": "+2pt"}], ids=["no limit", "a limit"])
def test_every_door_means_the_same_pdcl(stated: dict[str, str], tmp_path: Path) -> None:
    doors: list[Callable[[Path, dict[str, str]], None]] = [from_a_command_line, as_an_object, in_a_study]
    found = []
    for door in doors:
        door(tmp_path / door.__name__, stated)
        (row,) = scan(tmp_path / door.__name__)
        config, result = read_config(row.path), read_result(row.path)
        options = {name: option["value"] for name, option in config["options"].items()}
        found.append((config["preset"], options, result["accuracy"], result["duals"], result["partitions"]))
    assert found[0][0] == "auto"
    for door, other in zip(doors[1:], found[1:], strict=True):
        assert other == found[0], door.__name__
    assert row.ran == ("pdcl" if stated else "pdcl, no limits = even")
