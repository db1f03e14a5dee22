"""The example of Avalanche in docs/loops.md runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("avalanche")


def test_the_example_of_avalanche_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "loops.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    exec(found[0], space)
    exec("from torch.utils.data import TensorDataset", space)
    exec(next(block for block in found if "avalanche" in block), space)
    assert space["result"].mean_accuracy > 0
