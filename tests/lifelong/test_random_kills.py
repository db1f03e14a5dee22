"""SIGKILL at random moments of update, rollback and forget, then any next command: all is well, and nothing is lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from months import KILLED, begin, month, updated, words_of, write

import pdcl
from pdcl.lab.methods.er import ER
from pdcl.lifelong.entry import FORGOTTEN
from pdcl.release.evidence import verify
from pdcl.release.ledger import Ledger
from pdcl.streams.audits import read_audit

VERBS = ("update", "rollback", "forget")


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two months, the second by an update with evidence; what somebody wants forgotten lies in theirs.npz."""
    place = begin(tmp_path_factory.mktemp("grown"), ER("mlp:12", memory=40, seed=0, device="cpu", lr=0.1))
    assert updated(place, "m1", month(1), evidence=place / "ev" / "m1")
    stored, audit = pdcl.load(place / "model").store["x"], read_audit(place / "audit").x
    write(place / "theirs.npz", {"x": np.concatenate([stored[:3].numpy(), audit[:2].numpy()])})
    return place


class Life:
    """One copy of `grown`, and what it must look like after any command that was let end."""

    def __init__(self, grown: Path, place: Path, forks: Any) -> None:
        self.grown, self.place, self.forks, self.count = grown, place / "life", forks, place / "count"
        self.theirs = np.load(grown / "theirs.npz")["x"]
        # Whether their samples have left the audit set, and whether a forget came to its end.
        self.out = self.forgot = False

    def begin(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.grown, self.place)
        self.out = self.forgot = False

    def words(self, verb: str) -> list[str]:
        model, rest = str(self.place / "model"), ["--audit", str(self.place / "audit")]
        if verb == "forget":
            rest += ["--samples", str(self.place / "theirs.npz"), "--evidence", str(self.place / "ev")]
        return words_of(self.place, "m2", month(2)) if verb == "update" else [verb, model, *rest]

    def started(self, verb: str) -> int:
        child: int = self.forks._ask(words=self.words(verb), log=str(self.forks.log))
        return child

    def until(self, verb: str, touch: int) -> int:
        """Let a command run until it touches the disk for the `touch`-th time, 0: to its end; the exit code."""
        code: int = self.forks.execute(KILLED, touch, str(self.count), self.words(verb))
        return code

    def ended(self, child: int) -> int:
        code: int = self.forks._ask(wait=child)
        return code

    def finish(self, verb: str) -> None:
        """Let a command end, and look at everything."""
        self.forks.log.unlink(missing_ok=True)
        assert self.ended(self.started(verb)) == 0, f"{verb}: {self.said()}"
        assert "Traceback" not in self.said()
        self.forgot |= verb == "forget"
        self.out |= self.forgot
        self.check()

    def said(self) -> str:
        return self.forks.log.read_text() if self.forks.log.exists() else ""

    def check(self) -> None:
        model, audit = self.place / "model", read_audit(self.place / "audit")
        now, before = pdcl.load(model), pdcl.load(model / "previous")
        # Of each month half was set aside, but for what was forgotten: no sample is lost, none stays too long.
        held = Counter(map(str, audit.columns["task"].tolist()))
        whole = {str(entry["name"]): int(entry["result"]["audit"]["samples"]) for entry in now.lineage.tasks}
        gone = sum(whole.values()) - sum(held.values())
        assert held.keys() == whole.keys()
        assert gone == (2 if self.out else 0), (held, whole)
        for learner in (now, before):
            assert [entry["how"] for entry in learner.lineage.entries].count(FORGOTTEN) <= 1
        assert not list((model / ".update").iterdir())
        Ledger(self.place / "audit" / "ledger.jsonl").entries()
        for place in (self.place / "ev").iterdir():
            assert place.name.startswith(".") or verify(place)
        if self.forgot:
            held_x = [now.store["x"], before.store["x"], audit.x]
            held_x += [read_audit(place.parent).x for place in (self.place / "ev").glob("*/samples.npz")]
            rows = {row.tobytes() for x in held_x for row in x.numpy()}
            assert not any(row.tobytes() in rows for row in self.theirs)


def _killed(life: Life, verb: str, seconds: float, touches: int, chance: random.Random) -> bool:
    """Start a command and kill it, at a moment or at a touch of the disk; whether the kill came before its end."""
    if chance.random() < 0.5:
        child = life.started(verb)
        time.sleep(chance.uniform(0, seconds))
        os.kill(child, signal.SIGKILL)
        return life.ended(child) == -signal.SIGKILL
    # The disk is touched in the moments that decide, which are a small part of the time.
    return life.until(verb, chance.randint(1, touches)) == -signal.SIGKILL


def _rounds(life: Life, verb: str, kills: int) -> None:
    chance, done, then = random.Random(f"kills of {verb}"), 0, Counter[str]()
    life.begin()
    begun = time.monotonic()
    assert life.until(verb, 0) == 0
    seconds, touches = time.monotonic() - begun, int(life.count.read_text().split()[1])
    while done < kills:
        life.begin()
        if not _killed(life, verb, seconds, touches, chance):
            continue
        done += 1
        following = verb if chance.random() < 0.5 else chance.choice(VERBS)
        then[following] += 1
        life.out = verb == "forget" and _is_out(life)
        life.finish(following)
        if verb == "forget" and following != verb:
            life.finish(verb)
    print(f"{verb}: {done} kills, next command {dict(then)}; all ended with 0 and left all well", file=sys.stderr)


def _is_out(life: Life) -> bool:
    rows = {row.tobytes() for row in read_audit(life.place / "audit").x.numpy()}
    return not any(row.tobytes() in rows for row in life.theirs)


@pytest.mark.parametrize("verb", VERBS)
def test_killed_at_random_moments_the_next_command_leaves_all_well(
    verb: str, grown: Path, tmp_path: Path, forks: Any
) -> None:
    _rounds(Life(grown, tmp_path, forks), verb, kills=2)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_sixty_kills(verb: str, grown: Path, tmp_path: Path, forks: Any) -> None:
    _rounds(Life(grown, tmp_path, forks), verb, kills=20)
