"""The gate on models whose answers are known beforehand."""

import json
import math
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import pdcl
from pdcl.errors import UsageError
from pdcl.release.ledger import LedgerError
from pdcl.release.outcome import CAVEAT
from pdcl.release.output import FORMATS


@pytest.fixture
def ask(oracle, audit, tmp_path):
    def asked(counts, errors, columns=None, learner=oracle, **options):
        made = audit(counts, errors, **(columns or {}))
        return pdcl.gate(learner, made, **{"ledger": tmp_path / "ledger.jsonl", **options})

    return asked


def test_299_samples_without_an_error_certify_one_per_cent(ask):
    found = ask([100, 100, 99], [0, 0, 0], max_error=0.01)
    assert found.verdict == "PASS"
    assert bool(found)
    assert found.exit_code == 0
    assert found.rows[0].upper == pytest.approx(0.00997, abs=1e-5)


def test_one_sample_less_leaves_it_undecided_and_says_how_many_are_missing(ask):
    found = ask([100, 100, 98], [0, 0, 0], max_error=0.01)
    assert (found.verdict, found.exit_code) == ("UNDECIDED", 2)
    assert found.rows[0].needed == 1


def test_a_bad_class_fails_and_is_named_with_its_levers(ask):
    found = ask([200, 200, 200], [0, 60, 1], max_error=0.1, by="class")
    assert [(row.group, row.verdict) for row in found.rows] == [("cat", "PASS"), ("dog", "FAIL"), ("owl", "PASS")]
    assert (found.verdict, found.exit_code) == ("FAIL", 1)
    (name, lines) = next(iter(found.levers.items()))
    assert "dog" in name
    assert "loosest limit that would pass" in " ".join(lines)


def test_sensitivity_and_specificity_are_counted_from_the_right_samples(ask):
    found = ask([200, 100, 300], [0, 10, 0], min_sensitivity=0.8, min_specificity=0.9)
    rows = {(row.criterion, row.group): row for row in found.rows}
    assert rows["miss", "dog"].estimate == pytest.approx(0.10)
    assert rows["miss", "dog"].samples == 100
    assert rows["alarm", "owl"].estimate == pytest.approx(10 / 300)
    assert rows["alarm", "owl"].samples == 300
    assert rows["alarm", "dog"].estimate == 0


def test_groups_have_limits_of_their_own(ask):
    found = ask([200, 200, 200], [0, 20, 0], max_error=0.05, limits={"dog": 0.2}, by="class")
    assert [row.limit for row in found.rows] == [0.05, 0.2, 0.05]
    assert found.verdict == "PASS"


@pytest.mark.parametrize("stated", [0.85, "85%"])
def test_a_group_s_own_sensitivity_is_stated_as_the_others_are(ask, stated):
    """Of 100 dogs 30 are missed: a sensitivity of 70 %."""
    found = ask([200, 100, 300], [0, 30, 0], min_sensitivity="60%", limits={"dog": stated})
    assert {row.group: (row.limit, row.verdict) for row in found.rows if row.group == "dog"} == {"dog": (0.15, "FAIL")}
    assert [row.limit for row in found.rows] == pytest.approx([0.4, 0.15, 0.4])


def test_a_group_s_own_limit_has_the_unit_of_the_option_beside_it(ask):
    with pytest.raises(UsageError, match=r"'dog'.*is a rise, which max_drop limits"):
        ask([20, 20, 20], [0, 0, 0], max_error="5%", limits={"dog": "+2pt"}, by="class")
    with pytest.raises(UsageError, match=r"'dog'.*is a loss"):
        ask([20, 20, 20], [0, 0, 0], max_loss=0.2, limits={"dog": "5%"}, by="class")


def test_a_limit_for_a_group_that_is_not_there_is_refused(ask, tmp_path):
    with pytest.raises(UsageError, match="hen"):
        ask([20, 20, 20], [0, 0, 0], max_error=0.05, limits={"hen": 0.2}, by="class")
    assert not (tmp_path / "ledger.jsonl").exists()


def test_losses_count_up_to_a_clip_and_the_output_says_so(ask):
    found = ask([300, 300, 300], [0, 0, 0], max_loss=0.2)
    expected = math.log1p(2 * math.exp(-4))
    assert found.rows[0].estimate == pytest.approx(expected, rel=0.01)
    assert found.verdict == "PASS"
    assert "Losses count up to 6 in bounds" in str(found)
    assert "betting" in found.rows[0].method


def test_the_usual_clip_lies_well_above_the_limit_of_each_group_and_widens_with_its_samples(ask):
    found = ask([50, 400, 50], [0, 0, 0], max_loss=0.2, limits={"dog": 6.0}, by="class")
    assert [row.clip for row in found.rows] == pytest.approx([math.log(100), 120.0, math.log(100)])


@pytest.mark.parametrize(("wrong", "expected"), [(0, "PASS"), (1, "UNDECIDED"), (300, "FAIL")])
def test_no_loss_gate_passes_where_a_loss_reaches_the_clip(wrong, expected, ask):
    """One answer with a loss of 4 in 300 hardly moves a mean; what one of 4,000 would do, a clip of 2 hides."""
    found = ask([300, 300, 300], [wrong, 0, 0], max_loss=0.2, clip=2.0, by="class")
    row = found.rows[0]
    assert (found.verdict, row.beyond) == (expected, wrong)
    assert row.estimate == pytest.approx(0.036 + 4 * wrong / 300, rel=0.02)
    assert (row.upper is None) == (row.loosest is None) == (wrong > 0)
    assert ("Losses that reach it" in str(found)) == (wrong > 0)
    if wrong == 1:
        assert row.needed is None
        assert "none bounds losses that large" in str(found)
    assert json.loads(FORMATS["json"](found))["rows"][0]["beyond"] == wrong


def test_patients_count_once_and_the_output_says_so(ask):
    patients = np.repeat(np.arange(120), 5)
    found = ask([200, 200, 200], [0, 10, 0], {"patient": patients}, max_error=0.2, groups="patient")
    assert found.rows[0].units == 120
    assert found.rows[0].samples == 600
    assert any("groups (patient) are independent" in note for note in found.notes)


def test_without_groups_the_output_says_what_it_assumes(ask):
    found = ask([100, 100, 100], [0, 0, 0], max_error=0.1)
    assert any("Assumes independent samples" in note for note in found.notes)
    assert CAVEAT in str(found)


def test_patients_of_one_sample_each_are_counted_exactly(ask):
    found = ask([100, 100, 99], [0, 0, 0], {"patient": np.arange(299)}, max_error=0.01, groups="patient")
    assert found.verdict == "PASS"
    assert "Clopper" in found.rows[0].method


def test_a_column_divides_the_audit_set(ask):
    site = np.array(["north", "south"] * 300)
    found = ask([200, 200, 200], [0, 0, 0], {"site": site}, max_error=0.05, by="site")
    assert [row.group for row in found.rows] == ["north", "south"]


def test_an_unknown_column_is_refused_before_a_look_is_spent(ask, tmp_path):
    with pytest.raises(UsageError, match="no column 'site'"):
        ask([20, 20, 20], [0, 0, 0], max_error=0.05, by="site")
    assert not (tmp_path / "ledger.jsonl").exists()


def test_looks_are_counted_over_models_and_split_the_level(ask, oracle):
    first = ask([200, 200, 200], [0, 0, 0], max_error=0.02, looks=2)
    assert (first.look.number, first.look.level) == (1, 0.025)
    again = ask([200, 200, 200], [0, 0, 0], max_error=0.02)
    assert again.look.repeated
    assert again.verdict == first.verdict
    with torch.no_grad():
        oracle.model.bias += 0.01
    assert ask([200, 200, 200], [0, 0, 0], max_error=0.02).look.number == 2
    with torch.no_grad():
        oracle.model.bias += 0.01
    with pytest.raises(LedgerError, match="all 2 planned looks"):
        ask([200, 200, 200], [0, 0, 0], max_error=0.02)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "say what the limit is on"),
        ({"max_error": 0}, "positive"),
        ({"max_error": 5}, "5 % is 0.05"),
        ({"max_loss": 9, "clip": 4.6}, "below the clip"),
        ({"max_error": 0.1, "clip": 3}, "no effect"),
        ({"max_error": 0.1, "confidence": 95}, "0.95 is 95 %"),
    ],
)
def test_nonsense_is_refused_with_a_way_out(ask, options, text):
    with pytest.raises(UsageError, match=text):
        ask([20, 20, 20], [0, 0, 0], **options)


def test_an_unknown_class_in_the_audit_set_is_refused(oracle, audit, tmp_path):
    made = audit([10, 10, 10], [0, 0, 0])
    made["y"] = np.where(made["y"] == "owl", "hen", made["y"])
    with pytest.raises(UsageError, match="hen"):
        pdcl.gate(oracle, made, max_error=0.1, ledger=tmp_path / "l")


def test_outputs_that_are_not_finite_count_as_errors(oracle, audit, tmp_path):
    with torch.no_grad():
        oracle.model.bias.fill_(float("nan"))
    found = pdcl.gate(oracle, audit([50, 50, 50], [0, 0, 0]), max_error=0.1, ledger=tmp_path / "l")
    assert found.rows[0].estimate == 1.0


def test_every_format_names_the_verdict_and_the_groups(ask):
    found = ask([200, 200, 200], [0, 60, 12], max_error=0.1, by="class")
    for name, render in FORMATS.items():
        text = render(found)
        assert "FAIL" in text, name
        assert "dog" in text, name
    assert json.loads(FORMATS["json"](found))["exit_code"] == 1
    suite = ElementTree.fromstring(FORMATS["junit"](found))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")


def test_a_stream_is_audited_by_its_test_data_and_tasks(tmp_path):
    stream = pdcl.stream("synthetic")
    result = pdcl.run(stream, "finetune", epochs=1, seed=0)
    found = pdcl.gate(result.learner, stream, max_error=0.3, ledger=tmp_path / "l")
    assert [row.group for row in found.rows] == [task.name for task in stream.tasks]
    accuracy = result.accuracy["class_il"][-1]
    assert [1 - row.estimate for row in found.rows] == pytest.approx(accuracy, abs=1e-9)
