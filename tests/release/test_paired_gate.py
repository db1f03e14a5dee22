"""The gate against the model in use: a drop on the same samples, since last month and since a task was learned."""

import json
import shutil

import numpy as np
import pytest

import pdcl
from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.judging.paired import change_above, change_upper
from pdcl.release.changes import Change, change_of
from pdcl.release.estimates import Mean
from pdcl.release.evidence import BadEvidence, verify
from pdcl.release.gate import Case
from pdcl.release.reopen import recalled

FAR = {"cat": 0, "dog": 12, "owl": 24}


def month(labels, seed, n=300):
    random = np.random.default_rng(seed)
    y = np.asarray(labels)[random.integers(0, len(labels), n)]
    x = random.normal(size=(n, 2)) + np.asarray([FAR[label] for label in y])[:, None]
    return x.astype(np.float32), y


@pytest.fixture(scope="module")
def made_life(tmp_path_factory):
    """A learner after two months (new) with audit data (audit), and its first month's state (old)."""
    tmp_path = tmp_path_factory.mktemp("life")
    made = pdcl.PDCL("mlp:16", memory=60, seed=0, device="cpu", lr=0.01)
    segments = np.asarray(["gold", "basic"] * 150)
    asked = {"epochs": 8, "audit": tmp_path / "audit", "audit_share": 0.5, "columns": {"segment": segments}}
    made.learn(*month(["cat", "dog"], 0), name="jan", **asked)
    made.save(tmp_path / "old")
    made.learn(*month(["cat", "owl"], 1), name="feb", **asked)
    made.save(tmp_path / "new")
    return tmp_path


@pytest.fixture
def life(made_life, tmp_path):
    """A copy of that life in tmp_path, and its learner."""
    for name in ("old", "new", "audit"):
        shutil.copytree(made_life / name, tmp_path / name)
    return pdcl.load(tmp_path / "new")


def broken(learner):
    """The same learner with a head that says the first class to everything."""
    last = [each for each in learner.model.modules() if hasattr(each, "out_features")][-1]
    last.weight.data.zero_()
    last.bias.data.zero_()
    last.bias.data[0] = 1
    return learner


def test_p_decides_as_the_bound_does():
    for counts in ((0, 0, 150), (3, 1, 200), (9, 8, 340), (40, 30, 900), (2, 40, 90)):
        for level in (0.05, 0.004):
            upper = change_upper(*counts, level)
            assert change_above(*counts, upper + 1e-4, level) <= level
            assert change_above(*counts, upper - 1e-4, level) > level


def test_a_change_is_counted_and_patients_are_bet_on():
    new, old = np.array([1.0, 1, 0, 0, 1, 0]), np.array([0.0, 1, 1, 0, 0, 0])
    assert change_of(new, old, None) == Change(2, 1, 6)
    grouped = change_of(new, old, np.array(["a", "a", "b", "b", "c", "c"]))
    assert isinstance(grouped, Mean)
    assert grouped.mean == pytest.approx((0.5 - 0.5 + 0.5) / 3)
    assert grouped.units == 3


def test_segments_are_judged_against_the_old_model_and_since_they_were_learned(life, tmp_path):
    found = pdcl.gate(
        tmp_path / "new", tmp_path / "audit", against=tmp_path / "old", max_drop=0.1, by="segment", looks=3
    )
    assert [(row.criterion, row.group) for row in found.rows] == [
        ("drop", "basic"), ("drop", "gold"), ("since", "basic"), ("since", "gold")
    ]  # fmt: skip
    assert found.verdict == "PASS", str(found)
    assert "pt" in str(found)


def test_a_model_that_lost_a_class_fails_although_its_error_limit_is_kept(life, tmp_path):
    old = pdcl.load(tmp_path / "new")
    found = pdcl.gate(broken(life), tmp_path / "audit", against=old, max_drop=0.05, by="all")
    assert found.verdict == "FAIL"
    assert {row.criterion for row in found.rows if row.verdict == "FAIL"} == {"drop", "since"}


def test_drops_that_add_up_over_months_are_seen_where_last_month_alone_shows_none(life, tmp_path):
    bad = broken(life)
    found = pdcl.gate(bad, tmp_path / "audit", against=bad, max_drop=0.05, by="all")
    verdicts = {row.criterion: row.verdict for row in found.rows}
    assert verdicts == {"drop": "PASS", "since": "FAIL"}


def test_outcomes_at_learning_time_stay_with_the_model_and_a_rebase_drops_them(life, tmp_path):
    held = pdcl.load(tmp_path / "new").lineage.references
    assert len(held) == len(np.load(tmp_path / "audit" / "samples.npz")["y"])
    assert sorted(held.since.unique().tolist()) == [0, 1]
    life.lineage.references = held
    tolerant = pdcl.PDCL("mlp:4", memory=20, guard=0, tolerance="+2pt", seed=0, device="cpu")
    tolerant.learn(*month(["cat", "dog"], 0), name="jan", epochs=1, audit=tmp_path / "other")
    assert len(tolerant.lineage.references)
    tolerant.rebase("jan")
    assert not len(tolerant.lineage.references)


def test_the_order_of_rows_moves_nothing(oracle, audit, tmp_path):
    made = audit([60, 60, 60], [5, 3, 1], patient=np.arange(180) // 3)
    mixed = np.random.default_rng(5).permutation(180)
    other = {name: values[mixed] for name, values in made.items()}
    asked = {"max_error": 0.2, "max_loss": 1.0, "groups": "patient", "ledger": tmp_path / "l"}
    one, same = pdcl.gate(oracle, made, **asked), pdcl.gate(oracle, other, **asked)
    assert same.look.repeated
    assert [row.p_above for row in same.rows] == [row.p_above for row in one.rows]


def test_evidence_of_a_comparison_can_be_recomputed(life, tmp_path):
    old, new, audit, place = (tmp_path / name for name in ("old", "new", "audit", "evidence"))
    found = pdcl.gate(new, audit, against=old, max_drop=0.1, by="all", evidence=place)
    assert verify(place)["verdict"] == found.verdict
    assert verify(place, recalled(place, new, against=old))["verdict"] == found.verdict
    assert main(["gate", str(new), "--against", str(old), "--verify", str(place)]) == found.exit_code
    with pytest.raises(BadEvidence, match="old model is another"):
        verify(place, recalled(place, new, against=new))
    question = json.loads((place / "verdict.json").read_text())["question"]
    assert question["against"] != question["model"]


def test_what_has_no_effect_or_no_meaning_is_refused(life, oracle, audit, tmp_path):
    with pytest.raises(UsageError, match="against has no effect"):
        pdcl.gate(life, tmp_path / "audit", max_error=0.1, against=life)
    with pytest.raises(UsageError, match="nothing to compare with"):
        pdcl.gate(oracle, audit([9, 9, 9], [0, 0, 0]), max_drop=0.1, ledger=tmp_path / "l")
    with pytest.raises(UsageError, match="positive"):
        pdcl.gate(life, tmp_path / "audit", max_drop=-0.1, against=life)


def test_the_command_line_asks_the_same(life, tmp_path, capsys):
    words = ["gate", "new", "--against", "old", "--audit", "audit", "--max-drop", "0.1", "--by", "segment"]
    paths = [str(tmp_path / word) if word in ("new", "old", "audit") else word for word in words]
    assert main(paths) == 0
    assert "+10.00 pt" in capsys.readouterr().out


def test_a_case_always_holds_its_rows_in_the_order_of_their_hashes(oracle, audit):
    from pdcl.release.criteria import Asked, criteria_of
    from pdcl.streams.audits import as_audit

    made = as_audit(audit([20, 20, 20], [1, 1, 1]))
    case = Case.of(oracle, made, Asked(criteria_of(max_error=0.1)))
    assert case.audit.rows() == sorted(made.rows())
