"""`--network PACKAGE.MODULE:FUNCTION`: a network of the user's own, from the command line, there and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pdcl.cli import main
from pdcl.errors import Interrupted, UsageError
from pdcl.running.rebuild import recalled

SOURCE = """
from torch import nn
def build(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 17), nn.Tanh(), nn.Linear(17, 10))
def nothing(): return 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current directory, as a user would have it."""
    name = f"mine_{tmp_path.parent.name.replace('-', '_')}_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_run_with_ones_own_network_is_recorded_by_its_name_and_resumed_by_handing_it_in(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["digits", "er", "--network", f"{own}:build", "--memory", "20", "--seed", "3"]
    assert main(["run", *words, "--out", "whole"]) == 0
    (whole,) = (tmp_path / "whole").iterdir()
    assert json.loads((whole / "config.json").read_text())["options"]["network"]["value"] == f"{own}:build"

    from pdcl.running.checkpointing import Keeper

    real, calls = Keeper.__call__, []

    def stop_soon(keeper: Keeper, loop: object) -> None:
        real(keeper, loop)  # type: ignore[arg-type]
        calls.append(1)
        if len(calls) == 20:
            raise Interrupted("enough", 130)

    monkeypatch.setattr(Keeper, "__call__", stop_soon)
    assert main(["run", *words, "--out", "cut", "--checkpoint-every", "7"]) == 130
    monkeypatch.setattr(Keeper, "__call__", real)
    (cut,) = (tmp_path / "cut").iterdir()
    capsys.readouterr()
    assert main(["resume", str(cut)]) != 0
    assert f"{own}:build" in capsys.readouterr().err
    assert main(["resume", str(cut), "--network", f"{own}:build"]) == 0
    results = [json.loads((path / "result.json").read_text()) for path in (whole, cut)]
    for result in results:
        del result["cost"], result["sha256"]
    assert results[0] == results[1]
    with pytest.raises(UsageError, match="hand it in again"):
        recalled(whole)


@pytest.mark.parametrize(("function", "complaint"), [("missing", "has no attribute"), ("nothing", "built a int")])
def test_what_builds_no_network_is_named(
    own: str, function: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "digits", "er", "--network", f"{own}:{function}"]) != 0
    assert complaint in capsys.readouterr().err
