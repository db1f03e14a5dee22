"""Audit data that was trained on is refused, and no look is spent on it."""

import numpy as np
import pytest

import pdcl
from pdcl.errors import UsageError


@pytest.fixture
def data():
    generator = np.random.default_rng(4)
    y = generator.integers(0, 2, 300)
    return (generator.normal(0, 1, (300, 4)) + 4 * y[:, None]).astype(np.float32), y


@pytest.fixture
def learner(data):
    x, y = data
    learner = pdcl.PDCL("mlp:8", memory=20, seed=0, device="cpu")
    learner.learn(x[:200], y[:200], name="jan", epochs=1, groups=np.repeat(np.arange(40), 5))
    return learner


def test_one_planted_training_sample_is_enough(learner, data, tmp_path):
    x, y = data
    rows = [*range(200, 300), 17]
    with pytest.raises(UsageError, match=r"1 of the 101 samples .* were trained on"):
        pdcl.gate(learner, (x[rows], y[rows]), max_error=0.1, ledger=tmp_path / "l")
    assert not (tmp_path / "l").exists()


def test_it_is_found_with_another_label_and_after_saving_and_loading(learner, data, tmp_path):
    x, y = data
    loaded = pdcl.load(learner.save(tmp_path / "model"))
    with pytest.raises(UsageError, match="were trained on"):
        pdcl.gate(loaded, (x[195:300], 1 - y[195:300]), max_error=0.1, ledger=tmp_path / "l")


def test_other_samples_of_a_patient_that_was_trained_on_are_refused(learner, data, tmp_path):
    x, y = data
    audit = {"x": x[200:], "y": y[200:], "patient": np.repeat(np.arange(39, 59), 5)}
    with pytest.raises(UsageError, match=r"5 of the 100 samples of groups .* \(39\)"):
        pdcl.gate(learner, audit, max_error=0.1, groups="patient", ledger=tmp_path / "l")


def test_fresh_samples_pass_the_check_and_the_output_says_so(learner, data, tmp_path):
    x, y = data
    found = pdcl.gate(learner, (x[200:], y[200:]), max_error=0.1, ledger=tmp_path / "l")
    assert any("among the 200" in note for note in found.notes)


def test_a_run_knows_what_it_was_trained_on(tmp_path):
    stream = pdcl.stream("synthetic")
    result = pdcl.run(stream, "finetune", epochs=1, out=tmp_path)
    x, y = stream.tasks[0].data.fetch(stream.tasks[0].data.targets.new_tensor([0, 1, 2]))
    audit = (x, [stream.spec.labels[c] for c in y.tolist()])
    for model in (result.learner, result.path):
        with pytest.raises(UsageError, match="3 of the 3 samples"):
            pdcl.gate(model, audit, max_error=0.1, ledger=tmp_path / "l")


def test_a_run_knows_whose_samples_it_was_trained_on(data, tmp_path):
    x, y = data
    patients = np.array([f"p{i}" for i in np.repeat(np.arange(40), 5)])
    stream = pdcl.split(x[:200], y[:200], classes_per_task=2, groups=patients, test=(x[200:], y[200:]),
                        test_groups=np.repeat("other", 100))  # fmt: skip
    result = pdcl.run(stream, "finetune", epochs=1, out=tmp_path)
    audit = {"x": x[200:], "y": y[200:], "patient": np.array(["p39"] * 5 + ["q"] * 95)}
    with pytest.raises(UsageError, match=r"5 of the 100 samples of groups .* \(p39\)"):
        pdcl.gate(result.learner, audit, max_error=0.1, groups="patient", ledger=tmp_path / "l")
