"""Every example of docs/loops.md runs; Avalanche's runs in its own environment."""

from __future__ import annotations

import logging
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "loops.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    pytest.importorskip("lightning.pytorch")
    pytest.importorskip("tensorboard")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    ours = [block for block in blocks() if "avalanche" not in block]
    assert len(ours) == len(blocks()) - 1
    for block in ours:
        exec(block, space)
    assert "November" in capsys.readouterr().out
    assert list(tmp_path.glob("logs/events*"))
