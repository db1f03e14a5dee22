from __future__ import annotations

import pytest

from pdcl.lab.comparing import group
from pdcl.lab.reports.finding import finding, headline, settings
from pdcl.records import scan


@pytest.fixture
def found(tmp_path, fake_run):
    def make(scores, memory=100):
        for method, values in scores.items():
            for seed, value in enumerate(values):
                fake_run(
                    tmp_path, accuracy=value, method=method, seed=seed, memory=None if method == "finetune" else memory
                )
        return [finding(setting) for setting in settings(group(scan(tmp_path)))]

    return make


FIVE = [0.80, 0.81, 0.79, 0.80, 0.82]


def test_a_steady_lead_over_five_seeds_is_a_finding(found):
    (only,) = found({"pdcl": [v + 0.05 + s / 1000 for s, v in enumerate(FIVE)], "er": FIVE, "finetune": [0.2] * 5})
    assert only.kind == "clear"
    assert only.leader == "pdcl"
    assert "5.2 points above er" in only.text
    assert "5 shared seeds" in only.text


def test_a_lead_that_seeds_disagree_on_is_none(found):
    (only,) = found({"pdcl": [0.85, 0.75, 0.86, 0.74, 0.85], "er": FIVE, "finetune": [0.2] * 5})
    assert only.kind == "unclear"
    assert only.text.startswith("No method is significantly above all others")
    assert "told apart from pdcl." in only.text or "told apart from er." in only.text


def test_few_seeds_are_a_first_look_and_one_seed_is_nothing(found, tmp_path):
    (only,) = found({"pdcl": [0.9, 0.91], "er": [0.8, 0.81]})
    assert only.kind == "early"
    assert "not a finding" in only.text


def test_one_seed_tells_nothing_apart(found):
    (only,) = found({"pdcl": [0.9], "er": [0.8]})
    assert only.kind == "unknown"


def test_one_method_has_nothing_to_be_compared_with(found):
    (only,) = found({"pdcl": FIVE})
    assert only.kind == "alone"
    assert headline([only]) == only.text


def test_joint_training_is_a_ceiling_and_no_rival(found):
    (only,) = found({"pdcl": [v + 0.05 + s / 1000 for s, v in enumerate(FIVE)], "er": FIVE, "joint": [0.99] * 5})
    assert only.leader == "pdcl"
    assert only.kind == "clear"


def test_many_comparisons_ask_for_more_than_one_does(found):
    """A lead with p = 0.03 alone is one of eight here: Holm doesn't let it pass."""
    lead = [0.02, 0.001, 0.03, 0.004, 0.02]
    others = {f"m{k}": FIVE for k in range(8)}
    (only,) = found({"pdcl": [v + d for v, d in zip(FIVE, lead, strict=True)], **others})
    assert only.kind == "unclear"


def test_the_headline_counts_settings(found, tmp_path):
    found({"pdcl": [v + 0.05 + s / 1000 for s, v in enumerate(FIVE)], "er": FIVE}, memory=50)
    both = found({"pdcl": [v + 0.04 + s / 1000 for s, v in enumerate(FIVE)], "er": FIVE}, memory=200)
    assert headline(both).startswith("pdcl has the highest mean accuracy in 2 of 2 settings")
    assert "significantly in each" in headline(both)


def test_a_split_lead_names_every_leader(found):
    ahead = [v + 0.05 + s / 1000 for s, v in enumerate(FIVE)]
    found({"pdcl": ahead, "er": FIVE}, memory=50)
    both = found({"pdcl": FIVE, "er": ahead}, memory=200)
    assert headline(both).startswith("No one method leads over 2 settings")
    assert "pdcl (significantly)" in headline(both)
    assert "er (significantly)" in headline(both)


def test_a_headline_does_not_add_up_two_algorithms_of_one_name(tmp_path, fake_run):
    """pdcl leads on both streams, and on one it has no limits: that is `even`."""
    without = {"tolerance": None, "dual": "ascent", "partition": "uniform", "selection": "uniform", "base": 1.0}
    for stream, options in (("digits", {**without, "tolerance": 0.02, "base": 0.0}), ("parts", without)):
        for seed, value in enumerate(FIVE):
            fake_run(tmp_path, accuracy=value + 0.05 + seed / 1000, stream=stream, options=options, seed=seed)
            fake_run(tmp_path, accuracy=value, stream=stream, method="er", seed=seed)
    text = headline([finding(setting) for setting in settings(group(scan(tmp_path)))])
    assert text.startswith("No one method leads over 2 settings")
    assert "pdcl (significantly) and pdcl, no limits = even (significantly)" in text
