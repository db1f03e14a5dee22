"""Looks count by the samples that they saw: no copy of an audit set, or of a model, gets a fresh one."""

import json
import shutil

import numpy as np
import pytest

import pdcl
from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.release.evidence import verify
from pdcl.release.ledger import Ledger, LedgerError
from pdcl.release.looks import Sample
from pdcl.release.marks import marks_of


def samples(seed, n=150):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    return (random.normal(0, 0.5, (n, 4)) + 4 * y[:, None]).astype(np.float32), y


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    learner = pdcl.PDCL("mlp:8", memory=20, seed=0, device="cpu")
    learner.learn(*samples(0), name="jan", epochs=2)
    return learner.save(tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture
def place(saved, tmp_path):
    """A model and an audit set, for two looks, of which one was taken."""
    shutil.copytree(saved, tmp_path / "model")
    put(tmp_path / "audit", *samples(1))
    assert pdcl.gate(tmp_path / "model", tmp_path / "audit", max_error=0.3, looks=2).look.number == 1
    return tmp_path


def put(where, x, y, **columns):
    where.mkdir()
    np.savez(where / "samples.npz", x=x, y=y, **columns)
    return where


X, Y = samples(1)
AGAIN = {
    "the file itself": lambda at: at / "audit" / "samples.npz",
    "its arrays": lambda at: (X, Y),
    "its arrays as tensors of other type": lambda at: (X.astype(np.float64).tolist(), Y.tolist()),
    "a copy without its ledger": lambda at: put(at / "copy", X, Y),
    "a copy less one sample": lambda at: put(at / "less", X[1:], Y[1:]),
    "one sample of it among fresh ones": lambda at: put(
        at / "few", *map(np.concatenate, zip((X[:1], Y[:1]), samples(2), strict=True))
    ),
    "with a column more": lambda at: put(at / "more", X, Y, site=np.arange(len(X)) % 2),
    "with other labels": lambda at: (X, 1 - Y),
    "in another order": lambda at: (X[::-1].copy(), Y[::-1].copy()),
}


@pytest.fixture(params=["", "model"])
def forgetful(request, monkeypatch, tmp_path):
    """Once with all that knows of looks; once on a machine, or by a user, where only the model does."""
    return lambda: request.param and monkeypatch.setenv("PDCL_LEDGERS", str(tmp_path / "another-user"))


@pytest.mark.parametrize("how", AGAIN)
def test_the_same_samples_are_the_same_data_however_they_come(how, place, forgetful):
    forgetful()
    audit = AGAIN[how](place)
    assert pdcl.gate(place / "model", audit, max_error=0.29).look.number == 2
    with pytest.raises(LedgerError, match="all 2 planned looks"):
        pdcl.gate(place / "model", audit, max_error=0.28)
    with pytest.raises(LedgerError, match="fixed looks=2"):
        pdcl.gate(place / "model", audit, max_error=0.28, looks=3)


@pytest.mark.parametrize("how", ["the file itself", "a copy without its ledger", "a copy less one sample"])
def test_so_they_are_on_the_command_line(how, place, capsys):
    words = ["gate", str(place / "model"), "--audit", str(AGAIN[how](place)), "--max-error"]
    assert main([*words, "0.29"]) == 0
    assert "look 2 of 2" in capsys.readouterr().out
    assert main([*words, "0.28"]) == 3
    assert "all 2 planned looks" in capsys.readouterr().err


def test_a_learner_in_memory_knows_what_its_directory_knows(place, forgetful):
    forgetful()
    assert pdcl.gate(pdcl.load(place / "model"), (X, Y), max_error=0.29).look.number == 2
    with pytest.raises(LedgerError, match="all 2 planned looks"):
        pdcl.gate(place / "model", (X, Y), max_error=0.28)


def test_a_copy_of_the_model_alone_resets_nothing(place, saved, monkeypatch):
    monkeypatch.setenv("PDCL_LEDGERS", str(place / "another-user"))
    assert pdcl.gate(saved, place / "audit", max_error=0.29).look.number == 2
    (saved / "looks.jsonl").unlink()
    (saved / "looks.json").unlink()


def test_what_docs_say_of_copying_both_holds(place, saved, monkeypatch):
    """Not a wish: it is what no file of ours can notice, and docs/gate.md says so."""
    monkeypatch.setenv("PDCL_LEDGERS", str(place / "another-user"))
    shutil.copytree(place / "model", place / "stripped", ignore=shutil.ignore_patterns("looks.json*"))
    assert pdcl.gate(place / "stripped", put(place / "copy", X, Y), max_error=0.29).look.number == 1


def test_fresh_samples_in_the_same_directory_are_fresh(place):
    np.savez(place / "audit" / "samples.npz", **dict(zip("xy", samples(3), strict=True)))
    found = pdcl.gate(place / "model", place / "audit", max_error=0.3, looks=5, evidence=place / "evidence")
    assert (found.look.number, found.look.looks) == (1, 5)
    assert verify(place / "evidence")["verdict"] == "PASS"


def test_the_same_question_is_the_same_look_wherever_it_is_asked(place):
    again = pdcl.gate(place / "model", put(place / "copy", X, Y), max_error=0.3)
    assert (again.look.number, again.look.repeated) == (1, True)


def test_sets_that_are_joined_have_had_the_looks_of_both_at_the_stricter_level(place):
    other = put(place / "other", *samples(4))
    assert pdcl.gate(place / "model", other, max_error=0.3, looks=4).look.number == 1
    joined = put(place / "joined", *map(np.concatenate, zip((X, Y), samples(4), strict=True)))
    with pytest.raises(LedgerError, match="all 2 planned looks"):
        pdcl.gate(place / "model", joined, max_error=0.3)
    fresh = put(place / "fresh", *samples(5))
    assert pdcl.gate(place / "model", fresh, max_error=0.3, looks=3).look.number == 1
    joined = put(place / "both", *map(np.concatenate, zip(samples(5), samples(4), strict=True)))
    found = pdcl.gate(place / "model", joined, max_error=0.3)
    assert (found.look.number, found.look.looks) == (3, 4)


def test_a_set_that_changes_step_by_step_goes_on_counting(tmp_path):
    """Parts of it are no fresh data either: they are what an earlier look saw."""
    book = Ledger(tmp_path / "ledger.jsonl")
    x = np.arange(40, dtype=np.float32)[:, None]

    def look(rows, name):
        return book.look({"model": name}, 5, sample=Sample(marks_of(pdcl.streams.samples.inputs_of(x[rows])))).number

    parts = [slice(0, 20), slice(0, 10), slice(10, 20), slice(15, 30), slice(25, 40)]
    assert [look(rows, f"{place}") for place, rows in enumerate(parts)] == [1, 2, 3, 4, 5]
    with pytest.raises(LedgerError, match="all 5"):
        look(slice(0, 1), "more")


def test_a_ledger_has_eight_characters_a_sample_however_many_looks(tmp_path):
    book, x = Ledger(tmp_path / "ledger.jsonl"), pdcl.streams.samples.inputs_of(np.arange(3000.0)[:, None])
    for look in range(12):
        book.look({"model": look}, 12, sample=Sample(marks_of(x[: 2000 + 50 * look])))
    assert book.path.stat().st_size < 8 * 2550 + 12 * 700


def without_samples(entries):
    """As an older pdcl wrote it."""
    book = [{k: v for k, v in e.items() if k not in ("looks", "confidence", "samples", "of") or e["kind"] == "plan"}
            for e in entries]  # fmt: skip
    from pdcl.release.ledger import FIRST
    from pdcl.release.looks import digest

    previous = FIRST
    for entry in book:
        entry["previous"] = previous
        entry["hash"] = previous = digest({k: v for k, v in entry.items() if k != "hash"})
    return "".join(json.dumps(entry) + "\n" for entry in book)


@pytest.mark.parametrize("how", ["the directory", "the file itself", "its arrays"])
@pytest.mark.parametrize("looks", [2, 2.5])
def test_looks_of_an_older_pdcl_count(how, looks, place, monkeypatch):
    """They say no samples: they count in their own ledger, and for the very same set wherever it is known."""
    entries = Ledger(place / "audit" / "ledger.jsonl").entries()
    entries[0]["looks"] = looks
    shutil.rmtree(place / "model")
    model = pdcl.PDCL("mlp:8", memory=20, seed=0, device="cpu")
    model.learn(*samples(0), name="jan", epochs=2)
    monkeypatch.setenv("PDCL_LEDGERS", str(place / "ledgers"))
    (place / "ledgers" / "old").mkdir(parents=True)
    for where in (place / "audit", place / "ledgers" / "old"):
        (where / "ledger.jsonl").write_text(without_samples(entries))
    audit = place / "audit" if how == "the directory" else AGAIN[how](place)
    assert pdcl.gate(model, audit, max_error=0.29).look.number == 2
    with pytest.raises(LedgerError, match="all 2 planned looks"):
        pdcl.gate(model, audit, max_error=0.28)


def test_a_strangers_model_can_not_lower_the_confidence(place, saved):
    book = Ledger(saved / "looks.jsonl")
    book.look({"model": "x"}, 1000, 0.51, Sample(marks_of(pdcl.streams.samples.inputs_of(samples(6)[0]))))
    with pytest.raises(LedgerError, match=r"say --confidence 0\.51"):
        pdcl.gate(saved, samples(6), max_error=0.3)
    assert pdcl.gate(saved, samples(7), max_error=0.3).look.confidence == 0.95
    book.path.write_text("no ledger\n")
    found = pdcl.gate(saved, samples(8), max_error=0.3)
    assert any("looks.jsonl" in note and "can't be read" in note for note in found.notes)
    book.path.unlink()


@pytest.mark.parametrize("looks", [2.5, 2.0, True, "2", 0])
def test_half_a_look_is_refused(looks, saved):
    with pytest.raises(UsageError, match="at least 1"):
        pdcl.gate(saved, samples(9), max_error=0.3, looks=looks)
