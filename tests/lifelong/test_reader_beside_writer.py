"""A process reads while another writes: it sees the old state or the new one, whole."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from pdcl.errors import Damaged
from pdcl.storage.vault import Vault

WRITER = """
import os, sys
from pdcl.storage.vault import Vault
os.fsync = lambda handle: None
vault = Vault(sys.argv[1], "model")
for n in range(2, 1_000_000):
    vault.write({"a.json": b"a%d" % n, "b.safetensors": b"b%d" % n * 1000}, {"n": n})
"""
SECONDS = 4.0


@pytest.mark.parametrize("fall_back", [False, True])
def test_a_reader_beside_a_writer_sees_the_old_state_or_the_new(fall_back: bool, tmp_path: Path) -> None:
    """In 4 s a reader meets some of the moments between two moves: without its second look this fails every time."""
    vault = Vault(tmp_path, "model")
    vault.write({"a.json": b"a1", "b.safetensors": b"b1" * 1000}, {"n": 1})
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)]) as writer:
        try:
            seen, end = [1], time.monotonic() + 60
            while len(set(seen)) < 3 or time.monotonic() < end - 60 + SECONDS:
                held = vault.read(fall_back)
                assert vault.exists()
                assert not held.instead_of
                n = held.about["n"]
                assert held.parts == {"a.json": b"a%d" % n, "b.safetensors": b"b%d" % n * 1000}
                seen.append(n)
                assert time.monotonic() < end, "the writer didn't write"
            assert writer.poll() is None
        finally:
            writer.kill()
    assert seen == sorted(seen)


def test_a_state_that_is_damaged_is_still_said_to_be_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = Vault(tmp_path, "model")
    vault.write({"a.json": b"whole"}, {})
    (tmp_path / "a.json").write_bytes(b"other")
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with pytest.raises(Damaged, match="was changed"):
        vault.read()
    assert not waits
