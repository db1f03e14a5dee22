"""No look of a test reaches the user's ledgers."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from log_rows import write_rows


@pytest.fixture(autouse=True)
def _own_ledgers(tmp_path, monkeypatch):
    monkeypatch.setenv("PDCL_LEDGERS", str(tmp_path / "ledgers"))


@pytest.fixture
def logs(tmp_path):
    def write(before, after):
        return write_rows(tmp_path / "before.jsonl", before), write_rows(tmp_path / "after.jsonl", after)

    return write
