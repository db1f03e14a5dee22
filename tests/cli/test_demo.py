"""The demo shows accuracies, what became of limits, their prices and a page, in the time that it promises."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pdcl.cli import demo, main
from pdcl.lab import studies
from pdcl.records import scan


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the demo ran, with two months and one pass over each."""
    out = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "STREAM", {**demo.STREAM, "domains": 2})
        patch.setattr(demo, "METHODS", {name: {**own, "epochs": 1} for name, own in demo.METHODS.items()})
        assert main(["demo", "--out", str(out)]) == 0
        yield out


def test_it_shows_accuracies_promises_prices_and_a_page(short: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = {path: path.stat().st_mtime_ns for path in short.rglob("result.json")}
    assert main(["demo", "--out", str(short)]) == 0
    text = capsys.readouterr().out
    assert all(f"\n {name} " in text for name in ("finetune", "er", "pdcl"))
    strict, new = (line for line in text.splitlines() if line.startswith(("  domain 0   1%", "  domain 1   new")))
    assert "undecided: 50 witnesses" in strict
    assert "learned" in new.lower()
    assert " domain 1 learned  λ " in text
    assert f"page: {short / 'report.html'}" in text
    assert "pdcl demo" in (short / "report.html").read_text(encoding="utf-8")
    assert sorted(row.ran for row in scan(short)) == ["er", "finetune", "pdcl"]
    assert {path: path.stat().st_mtime_ns for path in short.rglob("result.json")} == made, "run again"


def test_the_full_one_is_a_study_and_leaves_the_short_one_out(
    short: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: Any = studies.load("demo")
    assert (whole.preset, len(whole.methods), len(whole.seeds)) == ("tuned", 7, 10)
    less = replace(whole, methods=("er", "er-ring", "pdcl"), seeds=(0,), options={"epochs": 1})
    monkeypatch.setattr(studies, "load", lambda name: less)
    out = shutil.copytree(short, tmp_path / "both")
    assert main(["demo", "--full", "--workers", "1", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "digits, preset tuned" in text
    assert "What the duals of pdcl did" in text
    assert "after 5" in text


@pytest.mark.slow
def test_it_takes_no_longer_than_it_says(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "pdcl", "demo"], cwd=tmp_path, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 45
