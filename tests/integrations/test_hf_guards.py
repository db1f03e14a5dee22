"""What dual steps see: guards in pairs with what they had, drawn anew, and looked at only where it may matter."""

import sys
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
sys.path.insert(0, str(Path(__file__).parent))

from hf_models import arguments, llama, sequences  # noqa: E402

from pdcl.integrations.hf import ConstrainedTrainer  # noqa: E402


def trainer(place, capabilities, constraints=None, **more):
    return ConstrainedTrainer(
        model=llama(), args=arguments(place, **more), train_dataset=sequences(40, 2, 1), capabilities=capabilities,
        constraints=constraints,
    )  # fmt: skip


def moved_a_little(made):
    """Weights after the reference was taken, so that samples have changed, each by another amount."""
    made.constraints.begin(made.look, 100)
    with torch.no_grad():
        for parameter in made.model.parameters():
            parameter += 0.02 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    return made.constraints.core, made.constraints.guards


def test_a_slacks_standard_error_is_that_of_the_change(tmp_path):
    made = trainer(tmp_path, {"one": (sequences(400, 1, 5, masked=True), "1.05x")}, {"guard": 40, "slack_samples": 99})
    core, guards = moved_a_little(made)
    measured = core.algorithm.measure(core.past.look(lambda numbers: guards._look(numbers, made.look)))
    memory = core.memory
    there = memory["role"] == 1
    now, before = made.look(memory["x"][there])[:, 0], memory["reference"][there].double()
    assert int(there.sum()) == 40
    assert float(measured.slacks) == pytest.approx(float(now.mean()) - core.tolerances.values[0], abs=1e-6)
    change = (now - before).std(correction=0) / 40**0.5
    assert float(measured.errors) == pytest.approx(float((change**2 + 0.25 / 40**2) ** 0.5), rel=1e-4)
    assert float(change) < float(now.std()) / 40**0.5


def test_guards_drawn_anew_show_the_slack_of_all_of_them(tmp_path):
    """The mean of 300 draws of 12 of 60 guards is the slack of all: one false alarm in 10⁶."""
    made = trainer(tmp_path, {"one": (sequences(600, 1, 5), "1.05x")}, {"guard": 60, "slack_samples": 12})
    core, guards = moved_a_little(made)
    numbers = core.memory["x"][core.memory["role"] == 1]
    values = dict(zip(numbers.tolist(), made.look(numbers), strict=True))
    known = lambda drawn: torch.stack([values[i] for i in drawn.tolist()])  # noqa: E731
    draws = [core.algorithm.measure(core.past.look(lambda n: guards._look(n, known))).slacks for _ in range(300)]
    found, whole = torch.cat(draws), float(torch.stack([*values.values()])[:, 0].mean()) - core.tolerances.values[0]
    assert float(found.std()) > 0
    assert abs(float(found.mean()) - whole) < 4.9 * float(found.std()) / 300**0.5


def looked_at(place, limit, **more):
    made = trainer(place, {"far": (sequences(60, 1, 5), limit), "near": (sequences(60, 3, 6), "0.9x")},
                   {"dual_steps": 12}, max_steps=12, **more)  # fmt: skip
    seen, look = [], made._reader.look
    made._reader.look = lambda model, numbers: (seen.append(numbers), look(model, numbers))[1]
    made.train()
    # The first three are what each capability had, the last two its witnesses.
    parts = [(int((n < 60).sum()), int((n >= 60).sum())) for n in seen]
    return parts, torch.stack(made.constraints.core.progress.history)


def test_a_capability_far_within_its_limit_rests(tmp_path, monkeypatch):
    often, paths = [], []
    for limit in ("50x", "0.9x"):
        parts, path = looked_at(tmp_path, limit)
        steps = [part for part in parts if part[1] == 6 or part[0] == 6][4:-2]
        often.append((sum(far > 0 for far, _ in steps), sum(near > 0 for _, near in steps)))
        paths.append(path)
    assert often[0][0] <= 4
    assert often[0][1] == often[1][0] == often[1][1] == 12
    assert float(paths[0][:, 0].max()) == 0


def test_resting_changes_no_dual_of_a_limit_that_is_never_near(tmp_path, monkeypatch):
    from pdcl.integrations import hf_guards

    _, resting = looked_at(tmp_path, "50x")
    monkeypatch.setattr(hf_guards, "LONGEST_REST", 0)
    parts, awake = looked_at(tmp_path, "50x")
    assert torch.equal(resting, awake)
    assert sum(far == 6 for far, _ in parts) >= 12
