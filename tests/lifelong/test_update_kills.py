"""Updates, rollbacks and erasures that are killed: the next command leaves all well, and nothing is lost unsaid."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from months import KILLED, month, seen, updated, words_of, wrong

from pdcl.release.evidence import verify
from pdcl.reports.writing import report


def _killed_everywhere(life: Path, forks: Any, words: list[str], code: int, every: int, first: int = 1) -> int:
    """Kill the same command at each `every`-th touch of the disk, look, finish it, look again; how many kills."""
    origin, log = life.with_name(f"{life.name}-origin"), life / "count"
    shutil.copytree(life, origin)
    old = seen(life)
    assert forks.execute(KILLED, 0, str(log), words) == 0, forks.log.read_text()
    found, touches = map(int, log.read_text().split())
    assert found == code, forks.log.read_text()
    new, kills = seen(life), 0
    for at in range(first, touches + 1, every):
        shutil.rmtree(life)
        shutil.copytree(origin, life)
        assert forks.execute(KILLED, at, str(log), words) == -9
        kills += 1
        half = seen(life)
        assert (half[0], half[1]) in ((old[0], old[1]), (new[0], new[1])), at
        assert half[2] in (old[2], new[2]), at
        report([life / "model"])
        assert forks.execute(KILLED, 0, str(log), words) == 0
        assert seen(life) == new, at
        assert not list((life / "model" / ".update").iterdir())
        if (life / "ev").exists():
            assert all(verify(place) for place in (life / "ev").iterdir() if not place.name.startswith("."))
    return kills


def test_killed_in_any_phase_an_update_ends_as_if_it_had_not_been(life: Path, forks: Any) -> None:
    assert _killed_everywhere(life, forks, words_of(life, "m1", month(1)), code=0, every=14, first=4) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["promoted", "refused", "rollback"])
def test_killed_at_every_touch_of_the_disk(life: Path, forks: Any, kind: str) -> None:
    if kind == "rollback":
        assert updated(life, "m1", month(1))
        _rolled_back_everywhere(life, forks, ["rollback", str(life / "model")])
        return
    words = words_of(life, "m1", month(1) if kind == "promoted" else wrong(1))
    assert _killed_everywhere(life, forks, words, code=0 if kind == "promoted" else 1, every=1) > 30


def _rolled_back_everywhere(life: Path, forks: Any, words: list[str]) -> None:
    origin, log = life.with_name(f"{life.name}-origin"), life / "count"
    shutil.copytree(life, origin)
    old = seen(life)
    forks.execute(KILLED, 0, str(log), words)
    touches, new = int(log.read_text().split()[1]), seen(life)
    for at in range(1, touches + 1):
        shutil.rmtree(life)
        shutil.copytree(origin, life)
        assert forks.execute(KILLED, at, str(log), words) == -9
        assert seen(life)[:2] in (old[:2], new[:2]), at
        assert forks.execute(KILLED, 0, str(log), words) == 0
        assert log.read_text().split()[0] == "0", at
        assert seen(life) == new, at
