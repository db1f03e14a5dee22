"""What makes no sense on the command line is answered in one line, before anything is run or written."""

from pathlib import Path

import pytest

import pdcl
from pdcl.cli import main

TABLE = [
    ("pdcl", "--tolerance banana", "tolerance"),
    ("pdcl", "--tolerance=-5%", "tolerance"),
    ("pdcl", "--tolerance 0.1,0.2", "2 values for 5 tasks"),
    ("pdcl", "--tolerance nan", "tolerance"),
    ("er", "--seed -1", "seed=-1"),
    ("er", "--seeds 0", "--seeds 0"),
    ("er", "--seeds -2", "--seeds -2"),
    ("er", "--device tpu", "device='tpu'"),
    ("er", "--device cuda:99", "device='cuda:99'"),
    ("pdcl", "--dual-lr nan", "dual_lr=nan"),
    ("pdcl", "--dual-lr inf", "dual_lr=inf"),
    ("er", "--lr nan", "lr=nan"),
    ("er", "--lr 0", "lr=0"),
    ("er", "--weight-decay -1", "weight_decay=-1"),
    ("er", "--precision float8", "precision='float8'"),
    ("er", "--epochs 0", "epochs=0"),
    ("er", "--batch 0", "batch=0"),
    ("er", "--replay 1000000000", "replay=1000000000"),
    ("er", "--replay 0", "replay=0"),
    ("er", "--memory 0", "memory='0'"),
    ("er", "--memory=-5", "memory='-5'"),
    ("er", "--memory abc", "memory='abc'"),
    ("er", "--memory 4", "memory=4"),
]


@pytest.mark.parametrize(("method", "words", "named"), TABLE, ids=lambda value: value.replace(" ", "_"))
def test_one_line_names_the_value(
    method: str, words: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["run", "digits", method, "--out", str(tmp_path / "runs"), *words.split()])
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("auto:")]
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith("pdcl run: ")
    assert named in lines[0]
    assert not (tmp_path / "runs").exists()


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pdcl {pdcl.__version__}\n"
