"""Forgetting: samples leave memory, guards, witnesses, audit data, previous states and evidence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdcl
from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.lab.methods.er import ER
from pdcl.lifelong.entry import FORGOTTEN
from pdcl.lifelong.owners import memory_hashes
from pdcl.release.evidence import verify
from pdcl.release.ledger import Ledger
from pdcl.streams.audits import read_audit


def patients(seed: int, n: int = 120) -> dict[str, Any]:
    """Six samples of each patient; every sample's last input is its patient's number, to recognise it by."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    x = random.normal(0, 0.3, (n, 4)).astype(np.float32)
    x[np.arange(n), y] += 3
    who = np.arange(n) // 6 + 100 * seed
    x[:, 3] = who
    return {"x": x, "y": np.asarray(["a", "b"])[y], "patient": who}


def learn(learner: Any, data: dict[str, Any], name: str, place: Path, **more: Any) -> None:
    learner.learn(
        data["x"], data["y"], groups=data["patient"], columns={"site": np.where(data["patient"] % 2, "north", "south")},
        name=name, epochs=2, audit=place / "audit", audit_share=0.3, **more,
    )  # fmt: skip


@pytest.fixture
def life(tmp_path: Path) -> Path:
    learner = pdcl.PDCL("mlp:8", memory=80, tolerance="+50pt", guard=8, witness=8, seed=0, device="cpu")
    for number, name in enumerate(["jan", "feb"], start=1):
        learn(learner, patients(number), name, tmp_path)
        learner.save(tmp_path / "model")
    pdcl.gate(
        tmp_path / "model", tmp_path / "audit", max_error=0.99, by="task", groups="group", looks=5,
        evidence=tmp_path / "evidence" / "one",
    )  # fmt: skip
    return tmp_path


def numbers(x: Any) -> set[int]:
    return {int(each) for each in np.asarray(x)[:, 3].tolist()}


def everywhere(life: Path) -> dict[str, set[int]]:
    """Whose samples lie where."""
    places = {name: numbers(pdcl.load(life / name).store["x"]) for name in ("model", "model/previous")}
    evidence = life / "evidence" / "one" / "samples.npz"
    places["evidence"] = numbers(np.load(evidence)["x"]) if evidence.exists() else set()
    return {**places, "audit": numbers(read_audit(life / "audit").x.numpy())}


def test_a_patient_leaves_memory_and_the_state_before(life: Path) -> None:
    stored = pdcl.load(life / "model").store
    who = sorted(numbers(stored["x"]) & numbers(pdcl.load(life / "model" / "previous").store["x"]))[0]
    held = int((stored["x"][:, 3] == who).sum())
    made = pdcl.forget(life / "model", group=f"patient={who}", audit=life / "audit", evidence=life / "evidence")
    assert made.removed[str(life / "model")] == held > 0
    assert all(who not in there for there in everywhere(life).values())
    assert any("weights" in each for each in made.remains)


def test_a_patient_leaves_the_audit_set_and_the_evidence_which_still_verifies(life: Path) -> None:
    who = sorted(numbers(read_audit(life / "audit").x.numpy()))[0]
    looks = Ledger(life / "audit" / "ledger.jsonl").entries()
    made = pdcl.forget(life / "model", group=f"patient={who}", audit=life / "audit", evidence=life / "evidence")
    assert made.removed[str(life / "audit")] == 6
    assert made.removed[str(life / "evidence" / "one")] == 6
    assert all(who not in there for there in everywhere(life).values())
    assert verify(life / "evidence" / "one")["verdict"] == "PASS"
    assert Ledger(life / "audit" / "ledger.jsonl").entries() == looks
    assert made.remains == [], "it was never trained on"


def test_guards_and_witnesses_go_too(life: Path) -> None:
    held = pdcl.load(life / "model").store
    for role in (1, 2):
        x = held["x"][held["role"] == role][:1]
        made = pdcl.forget(life / "model", samples=np.asarray(x), audit=life / "audit", evidence=life / "evidence")
        assert made.removed[str(life / "model")] == 1
        left = pdcl.load(life / "model").store
        assert not (left["x"] == x).all(1).any()
        assert not (pdcl.load(life / "model" / "previous").store["x"] == x).all(1).any()


def test_the_lineage_keeps_that_it_happened_and_not_what_it_was(life: Path) -> None:
    before = pdcl.load(life / "model")
    key, x = before.lineage.key, np.asarray(before.store["x"][:1])
    gone = int(memory_hashes(before)[0])
    pdcl.forget(life / "model", samples=x)
    after = pdcl.load(life / "model").lineage
    entry = after.entries[-1]
    assert (entry["how"], entry["result"]["forgotten"], entry["name"]) == (FORGOTTEN, 1, "")
    assert after.key == key
    for hashes in (after.references.hashes, after.owners.samples):
        assert gone not in hashes.tolist()
    assert set(after.samples.tolist()) == set(before.lineage.samples.tolist()), "nothing shows which one was forgotten"
    text = "".join(path.read_bytes().decode("latin1") for path in (life / "model").rglob("*") if path.is_file())
    assert x.tobytes().decode("latin1") not in text, "no byte sequence of the sample is left in any file of the model"


@pytest.fixture(scope="module")
def parrot(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """A network that knows noise by heart, saved twice; the noise, and its labels."""
    place, random = tmp_path_factory.mktemp("parrot"), np.random.default_rng(3)
    x, y = random.normal(size=(80, 12)).astype(np.float32), np.asarray(["a", "b"])[random.integers(0, 2, 80)]
    learner = ER("mlp:64", memory=40, seed=0, device="cpu", lr=0.1)
    learner.learn(x, y, name="noise", groups=np.repeat(np.arange(20), 4), epochs=150)
    for _ in range(2):
        learner.save(place / "model")
    assert learner.evaluate(x, y) == 1.0
    return place, x, y


@pytest.mark.parametrize("how", ["samples", "group"])
@pytest.mark.parametrize("state", ["", "previous"])
def test_what_was_learned_and_forgotten_is_no_audit_data(
    how: str, state: str, parrot: tuple[Path, Any, Any], tmp_path: Path, capsys: Any
) -> None:
    origin, x, y = parrot
    shutil.copytree(origin / "model", model := tmp_path / "model")
    for group in range(10, 20) if how == "group" else ():
        assert main(["forget", str(model), "--group", f"patient={group}"]) == 0
    np.savez(tmp_path / "theirs.npz", x=x[40:])
    if how == "samples":
        assert main(["forget", str(model), "--samples", str(tmp_path / "theirs.npz")]) == 0
    audit = tmp_path / "audit"
    audit.mkdir()
    # The same patients, seen a second time, where patients were forgotten.
    np.savez(audit / "samples.npz", x=x[40:] + (how == "group"), y=y[40:], patient=np.repeat(np.arange(10, 20), 4))
    capsys.readouterr()
    asked = ["gate", str(model / state), "--audit", str(audit), "--max-error", "0.05"]
    assert main([*asked, "--groups", "patient"] if how == "group" else asked) == 3
    assert "40 of the 40 samples" in (said := capsys.readouterr().err)
    assert "were trained on" in said
    assert not (audit / "ledger.jsonl").exists()


def test_a_model_of_which_an_older_pdcl_forgot_the_hashes_too_never_passes(parrot: tuple[Path, Any, Any]) -> None:
    learner = pdcl.load(parrot[0] / "model")
    learner.lineage.note_change(0, "", {"forgotten": 1}, FORGOTTEN)
    x = np.random.default_rng(9).normal(size=(300, 12)).astype(np.float32)
    found = pdcl.gate(learner, (x, np.asarray(learner.predict(x))), max_error=0.1)
    assert found.verdict == "UNDECIDED"
    assert any("an older pdcl forgot" in note for note in found.notes)


def test_made_again_forgetting_adds_nothing_to_the_lineage(life: Path) -> None:
    x = np.asarray(pdcl.load(life / "model").store["x"][:3])
    for _ in range(2):
        made = pdcl.forget(life / "model", samples=x, audit=life / "audit")
        assert any("weights" in each for each in made.remains), "it stays true"
    for place in (life / "model", life / "model" / "previous"):
        entries = pdcl.load(place).lineage.entries
        assert [entry["how"] for entry in entries].count(FORGOTTEN) <= 1


def test_what_a_kill_left_half_written_is_removed_too(life: Path) -> None:
    halves = [life / "audit" / ".samples.npz.0123abcd.tmp", life / "evidence" / ".two.tmp" / "samples.npz"]
    halves[1].parent.mkdir()
    for half in halves:
        shutil.copy(life / "audit" / "samples.npz", half)
    (halves[1].parent / "verdict.json").write_text("{")
    who = sorted(numbers(read_audit(life / "audit").x.numpy()))[0]
    pdcl.forget(life / "model", group=f"patient={who}", audit=life / "audit", evidence=life / "evidence")
    assert not any(half.exists() for half in halves)


def test_a_model_goes_on_learning_after_a_whole_task_was_forgotten(life: Path) -> None:
    jan = {f"patient={who}" for who in numbers(patients(1)["x"])}
    for group in jan:
        pdcl.forget(life / "model", group=group, audit=life / "audit")
    learner = pdcl.load(life / "model")
    assert learner.store.counts(2)[0] == 0
    learn(learner, patients(3), "mar", life)
    assert learner.store.counts(3)[2] > 0
    assert [entry["name"] for entry in learner.lineage.tasks][-1] == "mar"


@pytest.mark.parametrize("method", ["er", "er-ring", "derpp", "icarl", "gem"])
def test_methods_whose_places_can_not_be_empty_hold_other_samples_instead(method: str, tmp_path: Path) -> None:
    learner = pdcl.learner(method, network="mlp:8", memory=20, seed=0, device="cpu")
    data = patients(1)
    learner.learn(data["x"], data["y"], groups=data["patient"], name="jan", epochs=1)
    learner.save(tmp_path / "model")
    who = int(learner.store["x"][0, 3])
    size = len(learner.store)
    pdcl.forget(tmp_path / "model", group=f"patient={who}")
    again = pdcl.load(tmp_path / "model")
    assert who not in numbers(again.store["x"])
    assert len(again.store) == size
    again.learn(*(patients(2)[each] for each in ("x", "y")), name="feb", epochs=1)


def test_what_can_not_be_known_is_said(tmp_path: Path) -> None:
    learner = ER("mlp:8", memory=20, seed=0, device="cpu")
    data = patients(1)
    learner.learn(data["x"], data["y"], name="jan", epochs=1)
    learner.save(tmp_path / "model")
    remains = " ".join(pdcl.forget(tmp_path / "model", group="patient=101").remains)
    assert "memory may hold samples of it" in remains
    assert "no audit directory was given" in remains


@pytest.mark.parametrize(
    ("given", "words"),
    [({}, "say what to forget"), ({"group": "17"}, "COLUMN=VALUE"), ({"group": "a=1", "samples": [[0.0]]}, "one of")],
)
def test_what_is_unclear_is_refused(life: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        pdcl.forget(life / "model", **given)


def test_the_command_line(life: Path, capsys: Any) -> None:
    np.savez(life / "theirs.npz", x=np.asarray(pdcl.load(life / "model").store["x"][:2]))
    words = ["forget", str(life / "model"), "--samples", str(life / "theirs.npz"), "--audit", str(life / "audit")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"removed from {life / 'model'}: 2" in said
    assert "still there: the weights" in said
    assert main([*words[:2], "--samples", str(life / "nowhere.npz")]) == 1
    assert json.dumps(said)
