"""docs/extending.md: three short files of a user's own, each of which does what the page says of it."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import pdcl
from pdcl.algorithm import rules
from pdcl.integrations.task_replay import forward_of
from pdcl.methods import catalog
from pdcl.past.held_back import REPLAY, WITNESS
from pdcl.storage.serialize import same
from pdcl.streams.data import TensorData

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r'^```python title="(.*?)"\n(.*?)^```$', PAGE, re.DOTALL | re.MULTILINE))


@pytest.fixture(autouse=True)
def _forgotten():
    """Rules and methods of the page are unknown again after a test."""
    kinds, methods = {kind: dict(known) for kind, known in rules._KNOWN.items()}, dict(catalog.methods())
    yield
    rules._KNOWN.update(kinds)
    catalog._METHODS.clear()
    catalog._METHODS.update(methods)


def month(k, samples=200):
    rng = np.random.default_rng(k)
    y = rng.integers(2 * k, 2 * k + 2, samples)
    return rng.normal(size=(samples, 8)).astype("float32") + 3 * np.eye(8, dtype="float32")[y], y


def names_of(file, monkeypatch):
    """What a file of the page defines."""
    module = type(sys)(file)
    monkeypatch.setitem(sys.modules, file, module)
    module.__dict__["__name__"] = file
    exec(FILES[file], module.__dict__)
    return module


def test_each_file_has_at_most_thirty_lines():
    assert set(FILES) == {"momentum.py", "share.py", "generated.py"}
    assert max(len([line for line in text.splitlines() if line.strip()]) for text in FILES.values()) <= 30


@pytest.mark.parametrize("file", ["momentum.py", "share.py"])
def test_a_rule_runs_from_the_command_line(file, tmp_path):
    (tmp_path / file).write_text(FILES[file], encoding="utf-8")
    line = re.search(rf"^    pdcl (run .* {file} .*)$", PAGE, re.MULTILINE)[1]
    call = [sys.executable, "-m", "pdcl", *line.split(), "--epochs", "1", "--memory", "30", "--out", "runs"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_dual_rule_keeps_its_second_number_in_a_saved_learner(tmp_path, monkeypatch):
    names_of("momentum.py", monkeypatch)
    learner = pdcl.PDCL("mlp:8", memory=40, tolerance=0.01, dual="momentum:keep=.8", warm=True)
    for k in range(2):
        learner.learn(*month(k), epochs=1)
    assert learner.core.algorithm.duals.state.shape == (1, 2)
    assert float(learner.core.algorithm.duals.state[0, 1]) > 0
    learner.save(tmp_path / "model")
    again = pdcl.load(tmp_path / "model")
    for each in (learner, again):
        each.learn(*month(2), epochs=1)
    assert same(again.core.state_dict(), learner.core.state_dict())


def generated(monkeypatch, **options):
    return names_of("generated.py", monkeypatch).Generated("mlp:16", memory=300, tolerance="+5pt", **options)


def learned(learner, *months, epochs=4):
    for k in months:
        learner.learn(*month(k), epochs=epochs)
    return learner


def test_a_generator_replaces_stored_inputs_and_witnesses_stay_real(monkeypatch):
    learner = learned(generated(monkeypatch), 0, 1)
    given = {row.tobytes() for k in range(2) for row in month(k)[0]}
    role, x, ids = (learner.store[name] for name in ("role", "x", "id"))
    real = torch.tensor([row.numpy().tobytes() in given for row in x])
    assert real[role == WITNESS].all()
    # Witnesses that lost their place are replayed by their label; no input that was trained on is stored.
    assert int(real[role == REPLAY].sum()) < 0.1 * int((role == REPLAY).sum())
    assert len(ids.unique()) == len(ids)
    slots = (role == REPLAY).nonzero().flatten()[:20]
    first, second = (learner.core.past.inputs(slots) for _ in range(2))
    assert not torch.equal(first, second)


def test_a_generator_holds_what_plain_training_forgets(monkeypatch):
    plain, learner = pdcl.learner("finetune", "mlp:16", lr=0.01), generated(monkeypatch, lr=0.01)
    forgot, held = (learned(each, 0, 1, 2, epochs=12).evaluate(*month(0)) for each in (plain, learner))
    assert forgot < 0.5 < 0.8 < held


def test_a_generator_is_saved_with_the_learner_and_undone_with_a_task(tmp_path, monkeypatch):
    learner = learned(generated(monkeypatch), 0)
    learner.save(tmp_path / "model")
    again = pdcl.load(tmp_path / "model")
    for each in (learner, again):
        learned(each, 1)
    assert same(again.state_dict(), learner.state_dict())
    models = set(learner.core.past.own)

    def stop(event):
        if event.kind == "promises_judged":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.learn(*month(2), epochs=1, listener=stop)
    assert set(learner.core.past.own) == models == {"0", "1", "2", "3"}


def test_a_generator_works_in_a_loop_by_hand(monkeypatch):
    past = names_of("generated.py", monkeypatch).Gaussians
    core, network = pdcl.PrimalDual(60, 0.1, past=past), torch.nn.Linear(8, 4)
    data = TensorData(*map(torch.as_tensor, month(0)))
    core.begin(len(data), 1)
    core.end("first", data, forward_of(network), 0)
    core.begin(10, 1)
    drawn = core.draw(5)
    assert core.past.inputs(drawn.slots).shape == (5, 8)
    assert not torch.isin(core.memory["x"], data.fetch(torch.arange(200))[0]).all(1).any()
