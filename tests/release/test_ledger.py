"""The ledger: what it allows, what it notices, and that two processes can't take the same look."""

import json
import subprocess
import sys

import pytest

import pdcl.release.ledger
from pdcl.errors import UsageError
from pdcl.release.ledger import Ledger, LedgerError, checked


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "audit" / "ledger.jsonl")


def test_the_first_look_fixes_the_plan_and_splits_the_level(ledger):
    first = ledger.look({"model": "a"}, looks=12, confidence=0.95)
    assert (first.number, first.looks, first.level) == (1, 12, pytest.approx(0.05 / 12))
    second = ledger.look({"model": "b"})
    assert (second.number, second.level) == (2, first.level)


@pytest.mark.parametrize("other", [{"looks": 13}, {"confidence": 0.9}])
def test_a_plan_can_not_be_changed(ledger, other):
    ledger.look({"model": "a"}, looks=12, confidence=0.95)
    with pytest.raises(LedgerError, match="fixed"):
        ledger.look({"model": "b"}, **other)


def test_the_same_question_is_the_same_look(ledger):
    first = ledger.look({"model": "a", "limits": {"x": 0.1}})
    again = ledger.look({"limits": {"x": 0.1}, "model": "a"})
    assert again.repeated
    assert again.number == first.number


def test_no_look_beyond_the_plan_whatever_the_model_is_called(ledger):
    for model in "abc":
        ledger.look({"model": model}, looks=3)
    with pytest.raises(LedgerError, match="all 3 planned looks"):
        ledger.look({"model": "d"})
    assert ledger.look({"model": "c"}).repeated


def test_a_look_is_spent_before_its_answer_is_known(ledger):
    ledger.look({"model": "a"}, looks=2)
    assert [entry["kind"] for entry in Ledger(ledger.path).entries()] == ["plan", "look"]


def test_a_verdict_is_noted_once(ledger):
    look = ledger.look({"model": "a"})
    ledger.note(look, {"verdict": "PASS"})
    ledger.note(look, {"verdict": "FAIL"})
    assert [entry.get("verdict") for entry in ledger.entries()] == [None, None, "PASS"]


@pytest.mark.parametrize("change", ["edit", "remove", "swap", "rehash"])
def test_a_changed_ledger_is_noticed(ledger, change):
    for model in "abc":
        ledger.look({"model": model}, looks=3)
    lines = ledger.path.read_text().splitlines(keepends=True)
    if change == "edit":
        lines[1] = lines[1].replace('"a"', '"z"')
    elif change == "remove":
        del lines[1]
    elif change == "swap":
        lines[1:3] = lines[2:0:-1]
    else:
        entry = json.loads(lines[1])
        del entry["hash"]
        entry["question"] = {"model": "z"}
        lines[1] = json.dumps({**entry, "hash": pdcl.release.ledger.digest(entry)}) + "\n"
    ledger.path.write_text("".join(lines))
    with pytest.raises(LedgerError, match="changed"):
        ledger.look({"model": "d"})


def test_half_a_line_left_by_a_crash_was_never_a_look(ledger):
    ledger.look({"model": "a"}, looks=2)
    with ledger.path.open("a") as file:
        file.write('{"entry": 2, "kind": "lo')
    assert ledger.look({"model": "b"}).number == 2
    assert len(checked(ledger.path.read_bytes(), "")) == 3


def test_processes_at_once_take_different_looks(ledger):
    script = (
        "import sys; from pdcl.release.ledger import Ledger\n"
        "for i in range(5): print(Ledger(sys.argv[1]).look({'model': [sys.argv[2], i]}, looks=20).number)"
    )
    arguments = [sys.executable, "-c", script, str(ledger.path)]
    running = [subprocess.Popen([*arguments, name], stdout=subprocess.PIPE, text=True) for name in "abcd"]
    numbers = [int(line) for process in running for line in process.communicate()[0].split()]
    assert sorted(numbers) == list(range(1, 21))
    assert len(ledger.entries()) == 21


@pytest.mark.parametrize("wrong", [{"looks": 0}, {"confidence": 1.0}, {"confidence": 95}])
def test_nonsense_is_refused_before_anything_is_written(ledger, wrong):
    with pytest.raises(UsageError):
        ledger.look({}, **wrong)
    assert not ledger.path.exists()
