"""Replay inside the batch: old samples in the place of new ones, as many as their weight says."""

import sys
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
sys.path.insert(0, str(Path(__file__).parent))

from hf_models import arguments, llama, sequences, weights  # noqa: E402

from pdcl.errors import UsageError  # noqa: E402
from pdcl.integrations.hf import ConstrainedTrainer  # noqa: E402

PAST = {"one": (sequences(60, 1, 5), "1.01x"), "points": (sequences(60, 1, 6), "+1pt")}
# Λ is what `base` says, and stays.
STILL = {"dual": "frozen", "guard": 0, "witness": 0}


def trainer(place, constraints, model=None, data=None, past=PAST, replay="inside", **more):
    given = {"model": model or llama(), "args": arguments(place, **more)}
    data = data or sequences(40, 2, 1, masked=True)
    return ConstrainedTrainer(
        **given, train_dataset=data, capabilities=past, constraints=constraints, replay=replay
    )  # fmt: skip


def test_while_duals_are_0_a_step_is_the_plain_trainers_to_the_bit(tmp_path):
    model, data = llama(dropout=0.2), sequences(40, 2, 1, masked=True)
    plain = transformers.Trainer(model=model, args=arguments(tmp_path), train_dataset=data)
    plain.train()
    ours = trainer(tmp_path, STILL, llama(dropout=0.2), data)
    ours.train()
    assert torch.equal(weights(model), weights(ours.model))


@pytest.mark.parametrize("accumulation", [1, 2])
def test_the_mean_step_descends_the_normalised_lagrangian(accumulation, tmp_path):
    """E[gradient] = (∇L_new + ½ ∇L_one + ½ ∇L_two) / 2 at base ½: 400 draws, one false alarm in 10⁶."""
    new, past = sequences(8, 2, 1), {"one": (sequences(30, 1, 5), "9x"), "two": (sequences(30, 3, 6), "9x")}
    model = llama().double()
    made = trainer(tmp_path, {**STILL, "base": 0.5}, model, new, past, per_device_train_batch_size=8,
                   gradient_accumulation_steps=accumulation)  # fmt: skip
    made.constraints.begin(made.look, 1)
    made.current_gradient_accumulation_steps = accumulation
    batch = next(iter(made.get_train_dataloader()))
    found = []
    for _ in range(400):
        # The batch is cut from its end, so rows must come in any order.
        order = torch.randperm(8)
        shuffled = {key: each[order] for key, each in batch.items()}
        model.zero_grad()
        made.training_step(model, shuffled, made._get_num_items_in_batch([shuffled] * accumulation, made.args.device))
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    model.zero_grad()
    for samples, share in ((new, 0.5), (past["one"][0], 0.25), (past["two"][0], 0.25)):
        ids = torch.stack([sample["input_ids"] for sample in samples])
        (share / accumulation * model(input_ids=ids, labels=ids).loss).backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters()])
    draws = torch.stack(found)
    direction = torch.sign(expected)
    mean, spread = (draws @ direction).mean(), (draws @ direction).std() / 20
    assert abs(float(mean - expected @ direction)) < 4.9 * float(spread)
    assert float(spread) < 0.05 * float(expected @ direction)


@pytest.mark.parametrize("base", [0.05, 0.5, 40.0])
def test_a_step_takes_as_many_samples_as_a_plain_one(base, tmp_path):
    """New and old together are the batch; old ones are Λ/(1 + Λ) of it, and one new sample always stays."""
    seen = []

    class Counting(ConstrainedTrainer):
        def compute_loss(self, model, inputs, **kwargs):
            seen[-1][0] += len(inputs["input_ids"])
            return super().compute_loss(model, inputs, **kwargs)

        def training_step(self, *args, **kwargs):
            seen.append([0, 0])
            return super().training_step(*args, **kwargs)

        def _replay(self, model, replay):
            seen[-1][1] += len(replay.numbers)
            return super()._replay(model, replay)

    made = Counting(model=llama(), args=arguments(tmp_path, max_steps=40), train_dataset=sequences(160, 2, 1),
                    capabilities=PAST, constraints={**STILL, "base": base}, replay="inside")  # fmt: skip
    made.train()
    assert {sum(step) for step in seen} == {4}
    assert min(new for new, _ in seen) >= 1
    # Base weights together are at most 4.
    total = min(2 * base, 4.0)
    expected, spread = 4 * 40 * total / (1 + total), (40 * 0.25) ** 0.5
    assert abs(sum(old for _, old in seen) - min(expected, 3 * 40)) <= 4 * spread


def test_a_dual_that_wants_more_than_a_batch_has_places_weighs_more(tmp_path):
    made = trainer(tmp_path, {**STILL, "base": 40.0})
    made.constraints.begin(made.look, 1)
    replay = made.constraints.draw_inside(4)
    assert len(replay.numbers) == 3
    # Base weights together are at most 4: four fifths are old, where a batch of 4 has three places.
    assert float(replay.weights.sum()) == pytest.approx(4 / 5)
    assert replay.share == pytest.approx(1 / 5)


class Stop(transformers.TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == 8:
            raise KeyboardInterrupt


def test_interrupted_and_resumed_it_ends_where_it_would_have(tmp_path):
    more = {"max_steps": 12, "save_strategy": "steps", "save_steps": 3, "gradient_accumulation_steps": 2}
    options = {"dual_steps": 6, "base": 0.2}
    whole = trainer(tmp_path / "whole", options, llama(dropout=0.2), **more)
    whole.train()
    part = trainer(tmp_path / "part", options, llama(dropout=0.2), **more)
    part.add_callback(Stop())
    with pytest.raises(KeyboardInterrupt):
        part.train()
    again = trainer(tmp_path / "part", options, llama(dropout=0.2), **more)
    again.train(resume_from_checkpoint=True)
    assert torch.equal(weights(whole.model), weights(again.model))
    assert str(whole.promises) == str(again.promises)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"replay": "beside"}, "'beside' must be a number of samples or \"inside\""),
        ({"replay": 0}, "must be at least 1"),
        ({"per_device_train_batch_size": 1}, "per_device_train_batch_size=1, which has no place"),
        ({"constraints": {"estimator": "whole"}}, "estimator='whole' has no effect"),
        ({"constraints": {"normalise": False}}, "normalise=False has no effect"),
    ],
)
def test_what_has_no_place_is_told_in_one_line(given, says, tmp_path):
    with pytest.raises(UsageError, match=says) as told:
        trainer(tmp_path, **{"constraints": {}, **given})
    assert "\n" not in str(told.value)


def test_batches_with_several_rows_a_sample_are_refused(tmp_path):
    made = trainer(tmp_path, {**STILL, "base": 1.0})
    made.constraints.begin(made.look, 1)
    twice = {"input_ids": torch.zeros(8, 8).long(), "labels": torch.zeros(8, 8).long()}
    with pytest.raises(UsageError, match=r"one row for each of at most 4 samples.*8 rows"):
        made.training_step(made.model, twice)
