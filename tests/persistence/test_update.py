"""Six months of updates with a FAIL, an UNDECIDED, kills and a rollback: no reader sees anything half-done."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdcl
from pdcl.cli import main
from pdcl.errors import PdclError, StateError, UsageError
from pdcl.learners.plain import Finetune
from pdcl.lifelong.entry import REFUSED, ROLLED_BACK
from pdcl.reports.writing import report
from pdcl.streams.audits import read_audit
from pdcl.verdict.evidence import verify
from pdcl.verdict.gate import model_hash
from pdcl.verdict.ledger import Ledger
from pdcl.verdict.updating import data_hash, samples_of

ASKED = {"max_drop": 0.06, "looks": 20, "audit_share": 0.5, "epochs": 4, "by": "task"}
WORDS = ("--max-drop", "0.06", "--looks", "20", "--audit-share", "0.5", "--epochs", "4", "--by", "task")
# The k-th touch of the disk by a real process is its last.
KILLED = """
import os, signal
at, log, words = args
os.environ["PDCL_LEDGERS"] = os.path.join(os.path.dirname(log), "ledgers")
count = 0
def wrap(name):
    real = getattr(os, name)
    def touched(*given, **more):
        global count
        if name != "open" or given[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **more)
    setattr(os, name, touched)
for each in ("open", "replace", "unlink", "mkdir", "rmdir"):
    wrap(each)
from pdcl.cli import main
code = main(words)
with open(log, "w") as file:
    file.write(f"{code} {count}")
"""


def month(number: int, n: int = 260, classes: tuple[int, ...] = (0, 1)) -> dict[str, Any]:
    random = np.random.default_rng(number)
    y = np.asarray(classes)[random.integers(0, len(classes), n)]
    x = random.normal(0, 0.3, (n, 4)).astype(np.float32)
    x[np.arange(n), y] += 4
    return {"x": x, "y": np.asarray([f"c{c}" for c in y]), "plan": np.asarray(["gold", "basic"])[np.arange(n) % 2]}


def write(place: Path, data: dict[str, Any]) -> Path:
    np.savez(place, **data)
    return place


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("begun")
    # It forgets what it is shown otherwise, so that a month of wrong labels breaks it for sure.
    learner = Finetune("mlp:12", seed=0, device="cpu", lr=0.1)
    first = month(0)
    learner.learn(
        first["x"],
        first["y"],
        columns={"plan": first["plan"]},
        name="m0",
        epochs=6,
        audit=place / "audit",
        audit_share=0.5,
    )
    learner.save(place / "model")
    return place


@pytest.fixture
def life(begun: Path, tmp_path: Path) -> Path:
    """A model of one month with its audit set, in a directory of its own."""
    shutil.copytree(begun / "model", tmp_path / "model")
    shutil.copytree(begun / "audit", tmp_path / "audit")
    return tmp_path


def updated(life: Path, name: str, data: dict[str, Any], **more: Any) -> Any:
    return pdcl.update(life / "model", data, name=name, audit=life / "audit", **{**ASKED, **more})


def seen(life: Path) -> tuple[Any, ...]:
    """What readers get: the model, its tasks, its decisions, the audit set and the looks."""
    learner = pdcl.load(life / "model")
    entries = [(e["name"], e["how"], (e["result"].get("update") or {}).get("why")) for e in learner.lineage.entries]
    looks = [e["kind"] for e in Ledger(life / "audit" / "ledger.jsonl").entries()]
    return model_hash(learner), tuple(entries), read_audit(life / "audit").hash(), tuple(looks)


def wrong(number: int) -> dict[str, Any]:
    """A month whose labels are swapped: what it teaches breaks what was known."""
    data = month(number)
    return {**data, "y": np.where(data["y"] == "c0", "c1", "c0")}


def test_six_months(life: Path) -> None:
    model, audit = life / "model", life / "audit"
    one = updated(life, "m1", month(1), evidence=life / "evidence" / "m1")
    assert one, one
    assert verify(life / "evidence" / "m1")["verdict"] == "PASS"
    before = seen(life)

    two = updated(life, "m2", wrong(2))
    assert (two.decision, two.exit_code, two.verdict.verdict) == (REFUSED, 1, "FAIL")
    three = updated(life, "m3", month(3, 24))
    assert (three.decision, three.exit_code, three.verdict.verdict) == (REFUSED, 2, "UNDECIDED")
    after = seen(life)
    assert (after[0], after[2]) == (before[0], before[2]), "the old model and its audit set stay"
    assert [how for _, how, _ in after[1]] == ["learned", "learned", REFUSED, REFUSED]

    four = updated(life, "m4", month(4, classes=(0, 1, 2)))
    assert four, four
    assert {"m0", "m1", "m4"} == set(read_audit(audit).columns["task"].tolist())
    before = seen(life)
    five = updated(life, "m5", month(5))
    assert five
    entry = pdcl.rollback(model, why="complaints")
    assert entry["how"] == ROLLED_BACK
    after = seen(life)
    assert (after[0], after[2]) == (before[0], before[2]), "the model and its audit set are what they were"
    assert after[1][-1] == ("m5", ROLLED_BACK, "Rolled back: complaints.")
    with pytest.raises(StateError, match="goes back by one update"):
        pdcl.rollback(model)
    assert updated(life, "m5", month(5)).decision == ROLLED_BACK, "recognised, and not learned again unasked"

    six = updated(life, "m6", month(6))
    assert six, six
    lineage = pdcl.load(model).lineage
    assert [e["name"] for e in lineage.tasks] == ["m0", "m1", "m4", "m6"]
    assert [e["name"] for e in lineage.entries if e["how"] == REFUSED] == ["m2", "m3"]
    page = report([model])
    assert "The gate says FAIL" in page
    assert "Rolled back: complaints" in page
    assert not list((model / ".update").iterdir())


def test_the_same_month_twice_is_recognised_and_takes_no_second_look(life: Path) -> None:
    assert updated(life, "m1", month(1))
    assert not updated(life, "m2", wrong(2))
    before = seen(life)
    data = month(1)
    mixed = np.random.default_rng(0).permutation(len(data["y"]))
    again = updated(life, "m1", {name: values[mixed] for name, values in data.items()})
    assert again
    assert again.repeated
    refused = updated(life, "m2", wrong(2))
    assert not refused
    assert refused.repeated
    assert "decided before" in str(refused)
    assert seen(life) == before
    with pytest.raises(UsageError, match="from other data"):
        updated(life, "m1", month(7))
    with pytest.raises(UsageError, match="learned this very data as 'm1'"):
        updated(life, "m7", month(1))
    assert not updated(life, "m2", wrong(2), again=True).repeated
    assert updated(life, "m2", month(2)), "other data under a name that was refused"


def test_a_broken_promise_refuses_without_a_look(tmp_path: Path) -> None:
    learner = pdcl.PDCL("mlp:12", memory=300, tolerance="+5pt", witness=60, base=0.0, dual="frozen", seed=0, lr=0.02)
    first = month(0, 600)
    learner.learn(first["x"], first["y"], name="m0", epochs=6, audit=tmp_path / "audit", audit_share=0.3)
    learner.save(tmp_path / "model")
    with pytest.warns(pdcl.LimitBroken):
        found = pdcl.update(
            tmp_path / "model", {k: wrong(2)[k] for k in ("x", "y")}, name="m1", audit=tmp_path / "audit", max_drop=0.9,
            epochs=6,
        )  # fmt: skip
    assert not found
    assert "A limit is broken: m0" in found.why
    assert not (tmp_path / "audit" / "ledger.jsonl").exists()
    assert pdcl.load(tmp_path / "model").lineage.entries[-1]["how"] == REFUSED


def test_a_refused_update_leaves_the_state_to_go_back_to(life: Path) -> None:
    assert updated(life, "m1", month(1))
    first = model_hash(pdcl.load(life / "model" / "previous"))
    assert not updated(life, "m2", wrong(2))
    assert model_hash(pdcl.load(life / "model" / "previous")) == first
    pdcl.rollback(life / "model")
    assert model_hash(pdcl.load(life / "model")) == first


def test_segments_of_the_month_are_audited(life: Path) -> None:
    found = updated(life, "m1", month(1), by="plan")
    assert {row.group for row in found.verdict.rows} == {"gold", "basic"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"audit_share": 1.5}, "share"),
        ({"max_drop": None}, "say what the limit is on"),
        ({"max_drop": -1}, "positive"),
        ({"audit_share": 0, "audit_budget": 5}, "no effect"),
        ({"groups": "nobody"}, "no column"),
        ({"epochs": 0}, "epochs"),
    ],
)
def test_what_can_not_be_done_changes_nothing(life: Path, change: dict[str, Any], words: str) -> None:
    before = seen(life)
    with pytest.raises(PdclError, match=words):
        updated(life, "m1", month(1), **change)
    assert seen(life) == before


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="holds no model"):
        pdcl.update(tmp_path, month(1), name="m1", audit=tmp_path / "audit", max_drop=0.1)
    with pytest.raises(StateError, match="no model"):
        pdcl.rollback(tmp_path)


def test_the_command_line(life: Path, capsys: Any) -> None:
    good, bad = write(life / "m1.npz", month(1)), write(life / "m2.npz", wrong(2))
    head = ["update", str(life / "model"), "--audit", str(life / "audit"), *WORDS]
    assert main([*head, "--data", str(good), "--name", "m1"]) == 0
    assert "m1: promoted" in capsys.readouterr().out
    assert main([*head, "--data", str(bad), "--name", "m2"]) == 1
    assert "m2: refused" in capsys.readouterr().out
    assert main([*head, "--data", str(life / "nowhere.npz"), "--name", "m3"]) == 3
    assert "no such directory or file" in capsys.readouterr().err
    assert main(["rollback", str(life / "model"), "--why", "test"]) == 0
    assert "m1 is rolled back" in capsys.readouterr().out


def _words(life: Path, name: str, data: dict[str, Any]) -> list[str]:
    place = write(life / f"{name}.npz", data)
    where = [
        "--data",
        str(place),
        "--name",
        name,
        "--audit",
        str(life / "audit"),
        "--evidence",
        str(life / "ev" / name),
    ]
    return ["update", str(life / "model"), *where, *WORDS]


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
    assert _killed_everywhere(life, forks, _words(life, "m1", month(1)), code=0, every=14, first=4) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["promoted", "refused", "rollback"])
def test_killed_at_every_touch_of_the_disk(life: Path, forks: Any, kind: str) -> None:
    if kind == "rollback":
        assert updated(life, "m1", month(1))
        # Once it is rolled back there is nothing left to roll back: the call after the kill may say so.
        _rolled_back_everywhere(life, forks, ["rollback", str(life / "model")])
        return
    words = _words(life, "m1", month(1) if kind == "promoted" else wrong(1))
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
        forks.execute(KILLED, 0, str(log), words)
        assert seen(life)[0] == new[0], at
        assert seen(life)[2] == new[2], at


def test_data_is_known_by_its_content_whatever_the_order() -> None:
    data = month(1)
    turned = {name: values[::-1].copy() for name, values in data.items()}
    assert data_hash(samples_of(data, None)) == data_hash(samples_of(turned, None))
    assert data_hash(samples_of(data, None)) != data_hash(samples_of(month(2), None))
    assert len(data_hash(samples_of(data, "plan"))) == len(hashlib.sha256().hexdigest())
    assert json.dumps(data_hash(samples_of(data, "plan")))
