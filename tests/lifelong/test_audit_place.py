"""update, rollback and forget act on the audit set that they are told of, or on the recorded one beside the model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from months import month, seen, updated, words_of, write, wrong

import pdcl
from pdcl.cli import main
from pdcl.errors import StateError, UsageError
from pdcl.release import updating, workspace
from pdcl.release.evidence import verify
from pdcl.streams.audits import read_audit


class Killed(BaseException):
    pass


def killed(*given: Any, **more: Any) -> None:
    raise Killed


def content(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def tasks(audit: Path) -> set[str]:
    return set(read_audit(audit).columns["task"].tolist())


@pytest.fixture
def prod(life: Path) -> Path:
    """Two months: the second one can be rolled back."""
    assert updated(life, "m1", month(1))
    return life


def copied(prod: Path, *names: str) -> Path:
    staging = prod.with_name(f"{prod.name}-staging")
    for name in names:
        shutil.copytree(prod / name, staging / name)
    return staging


def test_a_copy_goes_back_alone(prod: Path) -> None:
    staging, before = copied(prod, "model", "audit"), content(prod)
    assert main(["rollback", str(staging / "model")]) == 0
    assert content(prod) == before
    assert tasks(staging / "audit") == {"m0"}


def test_a_rollback_from_another_directory_finds_the_audit_set(
    life: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(life)
    assert updated(Path(), "m1", month(1))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert main(["rollback", str(life / "model")]) == 0
    assert tasks(life / "audit") == {"m0"}


def test_what_was_not_found_is_said_and_can_be_done_later(prod: Path, capsys: Any) -> None:
    staging, before = copied(prod, "model"), content(prod)
    (staging / "audit").mkdir()
    shutil.copy(prod / "audit" / "samples.npz", staging / "audit")
    other = content(staging / "audit")
    assert main(["rollback", str(staging / "model")]) == 0
    assert "not found" in (said := capsys.readouterr().err)
    assert "samples of m1; they stay in it" in said
    assert content(prod) == before
    assert content(staging / "audit") == other, "it has the name of the recorded one, and not its id"
    assert main(["rollback", str(staging / "model"), "--audit", str(staging / "audit")]) == 0
    assert "was rolled back before" in capsys.readouterr().out
    assert tasks(staging / "audit") == {"m0"}
    assert main(["rollback", str(staging / "model"), "--audit", str(staging / "nowhere")]) == 1


def test_python_hears_of_it_too(prod: Path) -> None:
    staging = copied(prod, "model")
    with pytest.warns(pdcl.LearningWarning, match="not found beside"):
        pdcl.rollback(staging / "model")


def _planted(path: str, name: str, add: bool) -> Callable[[Path, Path], dict[str, Any]]:
    """What a stranger may write: a path, or the form that is read, with an id that is guessed."""

    def plan(model: Path, victim: Path) -> dict[str, Any]:
        audit: Any = str(victim / path) if path else {"name": name.format(victim=victim), "id": ""}
        return {"state": pdcl.load(model).lineage.states[-1], "audit": audit, "add": add, "remove": ["m0"]}

    return plan


@pytest.mark.parametrize("verb", ["update", "rollback", "forget"])
@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(_planted("audit", "", False), id="path"),
        pytest.param(_planted("new/audit", "", True), id="new-path"),
        pytest.param(_planted("", "{victim}/audit", False), id="absolute"),
        pytest.param(_planted("", "../victim/audit", False), id="dots"),
        pytest.param(_planted("", "victim", True), id="sibling"),
        pytest.param(_planted("", "", True), id="empty"),
        pytest.param(_planted("", "..", True), id="parent"),
    ],
)
def test_the_plan_of_a_strangers_model_touches_nothing_elsewhere(
    life: Path, verb: str, plan: Any, tmp_path: Path, capsys: Any
) -> None:
    victim = tmp_path / "victim"
    for place in (victim, victim / "audit"):
        place.mkdir()
        shutil.copy(life / "audit" / "samples.npz", place)
    work = life / "model" / ".update"
    work.mkdir(exist_ok=True)
    shutil.copy(life / "audit" / "samples.npz", work / "aside.npz")
    (work / "todo.json").write_text(json.dumps(plan(life / "model", victim)))
    asked = {
        "update": words_of(life, "m1", month(1)),
        "rollback": ["rollback", str(life / "model")],
        "forget": ["forget", str(life / "model"), "--samples", str(write(life / "theirs.npz", month(7)))],
    }[verb]
    before = {name: held for name, held in content(life).items() if not name.startswith("model/")}
    assert main(asked) in (1, 3)
    assert {name: held for name, held in content(life).items() if not name.startswith("model/")} == before
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    assert ".update" in said, "the way out"


def test_work_that_a_kill_left_is_done_to_the_copys_own_audit_set(life: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(workspace, "_with", killed)
        with pytest.raises(Killed):
            updated(life, "m1", month(1))
    staging, before = copied(life, "model", "audit"), content(life)
    theirs = write(staging / "theirs.npz", month(7))
    assert main(["forget", str(staging / "model"), "--samples", str(theirs)]) == 0
    assert tasks(staging / "audit") == {"m0", "m1"}
    assert content(life) == before


def test_work_that_a_kill_left_is_not_lost_where_the_audit_set_is_away(
    life: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(workspace, "_with", killed)
        with pytest.raises(Killed):
            updated(life, "m1", month(1))
    (life / "audit").rename(life / "away")
    for _ in range(2):
        with pytest.raises(StateError, match=r"work left on its audit set 'audit'.*--audit DIR"):
            pdcl.forget(life / "model", samples=month(7)["x"])
    pdcl.forget(life / "model", samples=month(7)["x"], audit=life / "away")
    assert tasks(life / "away") == {"m0", "m1"}


def test_old_evidence_never_stands_beside_a_new_verdict(life: Path, capsys: Any) -> None:
    asked, place = words_of(life, "m1", month(1)), life / "ev" / "m1"
    strict = ["0.001" if word == "0.06" else word for word in asked]
    assert main(strict) == 2
    before, old = seen(life), content(place)
    assert main([*asked, "--again"]) == 3
    assert "choose a new directory" in capsys.readouterr().err
    assert (seen(life), content(place)) == (before, old), "refused before anything was learned or looked at"
    assert main([*asked, "--again", "--evidence", str(life / "ev" / "again")]) == 0
    assert [verify(life / "ev" / name)["verdict"] for name in ("m1", "again")] == ["UNDECIDED", "PASS"]


def test_evidence_of_a_killed_update_is_its_own_only_for_the_same_question(
    life: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = life / "ev"
    with monkeypatch.context() as patched:
        patched.setattr(updating, "save", killed)
        with pytest.raises(Killed):
            updated(life, "m1", month(1), evidence=place)
    with pytest.raises(UsageError, match="choose a new directory"):
        updated(life, "m1", month(1), evidence=place, max_drop=0.07)
    assert updated(life, "m1", month(1), evidence=place)
    assert verify(place)["verdict"] == "PASS"


def test_refused_updates_stay_known_after_much_was_forgotten_and_a_rollback(prod: Path) -> None:
    assert not updated(prod, "m2", wrong(2))
    audit = read_audit(prod / "audit")
    for row in range(4):
        pdcl.forget(prod / "model", samples=audit.x[row : row + 1].numpy())
    pdcl.rollback(prod / "model")
    assert "m2" in [entry["name"] for entry in pdcl.load(prod / "model").lineage.entries if entry["how"] == "refused"]
