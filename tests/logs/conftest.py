"""No look of a test reaches the user's ledgers."""

import pytest


@pytest.fixture(autouse=True)
def _own_ledgers(tmp_path, monkeypatch):
    monkeypatch.setenv("PDCL_LEDGERS", str(tmp_path / "ledgers"))
