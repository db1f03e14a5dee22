"""Limits in Hugging Face's Trainer: the plain Trainer without them, the core's duals with them."""

import json
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
sys.path.insert(0, str(Path(__file__).parent))

from hf_models import LENGTH, TOKENS, arguments, llama, sequences, weights  # noqa: E402

import pdcl  # noqa: E402
from pdcl.errors import Diverged, LimitBroken, UsageError  # noqa: E402
from pdcl.integrations import hf_checkpoints  # noqa: E402
from pdcl.integrations.hf import ConstrainedTrainer  # noqa: E402
from pdcl.objective import OBJECTIVES, Objective  # noqa: E402
from pdcl.storage.disk import write_whole  # noqa: E402

FROZEN = {"dual": "frozen"}
# Every past sample at every step, a dual step after each: nothing is drawn.
EXACT = {"guard": 0, "witness": 0, "estimator": "whole", "normalise": False, "dual_steps": None, "primal_steps": 1}


def trained(model, place, capabilities=None, constraints=None, data=None, start=True, resume=None, **more):
    given = {"model": model, "args": arguments(place, **more), "train_dataset": data or sequences(40, 2, 1)}
    if capabilities is None:
        trainer = transformers.Trainer(**given)
    else:
        trainer = ConstrainedTrainer(**given, capabilities=capabilities, constraints=constraints)
    if start:
        trainer.train(resume_from_checkpoint=resume)
    return trainer


@pytest.fixture(scope="module")
def knows_one(tmp_path_factory):
    """Weights that know the successor one further."""
    model = llama()
    trained(model, tmp_path_factory.mktemp("one"), data=sequences(200, 1), max_steps=60)
    return model.state_dict()


@pytest.fixture
def skilled(knows_one):
    model = llama()
    model.load_state_dict(knows_one)
    return model


@pytest.mark.parametrize("accumulation", [1, 3])
@pytest.mark.parametrize("limits", ["frozen", "far"])
def test_a_step_with_base_0_and_duals_0_is_the_plain_trainers_to_the_bit(accumulation, limits, tmp_path):
    data = sequences(40, 2, 1, masked=True)
    more = {"gradient_accumulation_steps": accumulation, "data": data}
    plain = trained(llama(dropout=0.2), tmp_path, **more)
    limit, options = ("1.1x", FROZEN) if limits == "frozen" else ("50x", {"dual_steps": 6})
    ours = trained(llama(dropout=0.2), tmp_path, {"one": (sequences(40, 1), limit)}, options, **more)
    assert torch.equal(weights(plain.model), weights(ours.model))
    assert [e["loss"] for e in plain.state.log_history[:-1]] == [e["loss"] for e in ours.state.log_history[:-1]]


def test_a_limit_pulls_a_capability_back_that_frozen_duals_lose(skilled, knows_one, tmp_path):
    limits = {"one": (sequences(400, 1, 5), "1.1x"), "points": (sequences(400, 1, 6), "+5pt")}
    steps = {"max_steps": 40, "learning_rate": 5e-3}
    kept = trained(skilled, tmp_path, limits, **steps)
    lost = llama()
    lost.load_state_dict(knows_one)
    with pytest.warns(LimitBroken, match="one: BROKEN"):
        lost = trained(lost, tmp_path, limits, FROZEN, **steps)
    assert [row.task for row in lost.promises.broken] == ["one", "points"]
    for held, gone in zip(kept.promises, lost.promises, strict=True):
        assert held.now - held.limit < 0.25 * (gone.now - gone.limit)


def by_hand(model, past, new, steps, lr, dual):
    """The loop that `pdcl.PrimalDual` shows, with the whole past at every step."""
    goal = OBJECTIVES["tokens"]
    shifted = Objective(
        "next token", lambda out, y: goal.loss(out[:, :-1], y[:, 1:]), goal.score,
        lambda out, y: goal.error(out[:, :-1], y[:, 1:]),
    )  # fmt: skip
    core = pdcl.PrimalDual(100, {k: v[1] for k, v in past.items()}, base=0.0, dual=dual, objective=shifted,
                           partition="uniform", **EXACT)  # fmt: skip
    forward = torch.no_grad()(lambda x: model(input_ids=x).logits)
    for name, (samples, _) in past.items():
        data = Tokens(samples)
        core.begin(len(data), 1)
        core.end(name, data, forward, 0)
    x, y = Tokens(new).fetch(torch.arange(len(new)))
    core.begin(len(x), steps)
    optimiser, path = torch.optim.SGD(model.parameters(), lr=lr), []
    for _ in range(steps):
        drawn = core.draw(len(x))
        seen = x if drawn is None else torch.cat([x, core.memory.read("x", drawn.slots)])
        terms = core.terms(model(input_ids=seen).logits, y, drawn)
        each = core.weights(len(x), drawn)
        optimiser.zero_grad()
        terms.backward(torch.full_like(terms, 1 / len(terms)) if each is None else each.double())
        optimiser.step()
        core.observe(torch.arange(len(x)), terms.detach(), len(x))
        if core.due():
            core.measure(forward)
        path.append(core.task_duals())
    return torch.stack(path)


class Tokens:
    def __init__(self, samples):
        self.x, self.targets = (torch.stack([sample[key] for sample in samples]) for key in ("input_ids", "labels"))

    def fetch(self, index):
        return self.x[index], self.targets[index]

    def __len__(self):
        return len(self.x)


def test_duals_equal_those_of_a_hand_written_loop(skilled, knows_one, tmp_path):
    past = {"one": (sequences(12, 1, 5), "1.01x"), "points": (sequences(10, 1, 6), "+1pt")}
    new, steps, dual = sequences(16, 2, 1), 12, "ascent:lr=0.5"
    expected = by_hand(skilled.double(), past, new, steps, 0.1, dual)
    model = llama().double()
    model.load_state_dict(knows_one)
    more = {"optim": "sgd", "max_grad_norm": 0, "lr_scheduler_type": "constant", "max_steps": steps}
    trainer = trained(model, tmp_path, past, {**EXACT, "dual": dual}, new, learning_rate=0.1,
                      per_device_train_batch_size=len(new), **more)  # fmt: skip
    found = torch.stack(trainer.constraints.core.progress.history)
    assert float(expected.max()) > 0.1
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(weights(model), weights(skilled), rtol=0, atol=1e-6)


def test_accumulated_batches_give_the_step_of_one_large_batch(tmp_path):
    past = {"one": (sequences(12, 1, 5), "1.01x")}
    more = {"optim": "sgd", "max_grad_norm": 0, "learning_rate": 0.1, "train_sampling_strategy": "sequential"}
    found = []
    for batch, accumulation in ((12, 1), (4, 3)):
        model = llama().double()
        trained(model, tmp_path, past, {**EXACT, "base": 1.0}, sequences(24, 2, 1, masked=True), max_steps=2,
                per_device_train_batch_size=batch, gradient_accumulation_steps=accumulation, **more)  # fmt: skip
        found.append(weights(model))
    # The model takes its loss in float32.
    torch.testing.assert_close(*found, rtol=0, atol=1e-7)


def test_a_step_descends_the_lagrangian(tmp_path):
    """θ − lr ∇(L_new + L_one) / 2, at base 1 with the whole capability replayed."""
    new, old = sequences(8, 2, 1), sequences(12, 1, 5)
    model, expected = llama().double(), llama().double()
    more = {"optim": "sgd", "max_grad_norm": 0, "learning_rate": 0.1, "max_steps": 1, "lr_scheduler_type": "constant"}
    options = {**EXACT, "normalise": True, "base": 1.0}
    trained(model, tmp_path, {"one": (old, "9x")}, options, new, per_device_train_batch_size=8, **more)
    for samples in (new, old):
        ids = Tokens(samples).x
        (0.05 * expected(input_ids=ids, labels=ids).loss).backward()
    with torch.no_grad():
        for parameter in expected.parameters():
            parameter -= parameter.grad
    torch.testing.assert_close(weights(model), weights(expected), rtol=0, atol=1e-7)


def test_points_are_shares_of_wrong_unmasked_tokens(skilled, tmp_path):
    samples = sequences(20, 1, 3, masked=True)
    samples[4]["labels"][-2:] = (samples[4]["input_ids"][-2:] + 7) % TOKENS
    trainer = trained(skilled, tmp_path, {"one": (samples, "+2pt")}, start=False)
    found = trainer.look(torch.arange(20))
    for sample, (loss, error) in zip(samples, found, strict=True):
        logits, labels = skilled.eval()(input_ids=sample["input_ids"][None]).logits[0, :-1], sample["labels"][1:]
        there = labels != -100
        expected = torch.nn.functional.cross_entropy(logits[there], labels[there])
        assert float(loss) == pytest.approx(float(expected), abs=1e-5)
        assert float(error) == pytest.approx(float((logits.argmax(1) != labels)[there].double().mean()))


def test_a_collator_that_masks_at_random_masks_alike_at_every_look(skilled, tmp_path):
    def collate(rows):
        batch = {key: torch.stack([row[key] for row in rows]) for key in rows[0]}
        batch["labels"] = batch["labels"].masked_fill(torch.rand(batch["labels"].shape) < 0.5, -100)
        return batch

    args, data = arguments(tmp_path), sequences(20, 1, 3)
    trainer = ConstrainedTrainer(
        model=skilled, args=args, train_dataset=data, data_collator=collate, capabilities={"one": (data, "+2pt")}
    )
    before = torch.get_rng_state()
    assert torch.equal(trainer.look(torch.arange(20)), trainer.look(torch.arange(20)))
    assert torch.equal(torch.get_rng_state(), before)


class Stop(transformers.TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == 8:
            raise KeyboardInterrupt


def test_interrupted_and_resumed_it_ends_where_it_would_have(tmp_path):
    limits = {"one": (sequences(60, 1, 5), "1.01x"), "points": (sequences(60, 1, 6), "+1pt")}
    more = {"max_steps": 12, "save_strategy": "steps", "save_steps": 3, "gradient_accumulation_steps": 2}
    whole = trained(llama(dropout=0.2), tmp_path / "whole", limits, {"dual_steps": 6}, **more)
    part = trained(llama(dropout=0.2), tmp_path / "part", limits, {"dual_steps": 6}, start=False, **more)
    part.add_callback(Stop())
    with pytest.raises(KeyboardInterrupt):
        part.train()
    again = trained(llama(dropout=0.2), tmp_path / "part", limits, {"dual_steps": 6}, resume=True, **more)
    duals = [trainer.constraints.core.progress.history for trainer in (whole, again)]
    assert float(duals[0][-1].max()) > 0
    assert all(torch.equal(*pair) for pair in zip(*duals, strict=True))
    assert torch.equal(weights(whole.model), weights(again.model))
    states = [list(trainer.optimizer.state_dict()["state"].values()) for trainer in (whole, again)]
    assert all(torch.equal(a[key], b[key]) for a, b in zip(*states, strict=True) for key in a)
    assert str(whole.promises) == str(again.promises)


LIMITS = {"one": (sequences(60, 1, 5), "1.01x"), "points": (sequences(60, 1, 6), "+1pt")}
SAVING = {"max_steps": 12, "save_strategy": "steps", "save_steps": 3}


class Kill(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 8:
            os.kill(os.getpid(), signal.SIGKILL)


def until_killed(place, saving):
    """Train in a process of its own, until SIGKILL ends it: after step 8, or while checkpoint-9 is saved."""
    trainer = trained(llama(dropout=0.2), place, LIMITS, {"dual_steps": 6}, start=False, **SAVING)
    if saving:
        hf_checkpoints.write_whole = lambda path, content: (
            write_whole(path, content) if "checkpoint-9" not in str(path) else os.kill(os.getpid(), signal.SIGKILL)
        )
    else:
        trainer.add_callback(Kill())
    trainer.train()


@pytest.mark.parametrize("saving", [False, True])
def test_killed_and_resumed_it_ends_where_it_would_have(saving, tmp_path):
    process = multiprocessing.get_context("spawn").Process(target=until_killed, args=(tmp_path / "part", saving))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert (tmp_path / "part" / "checkpoint-9").exists() == saving
    again = trained(llama(dropout=0.2), tmp_path / "part", LIMITS, {"dual_steps": 6}, resume=True, **SAVING)
    whole = trained(llama(dropout=0.2), tmp_path / "whole", LIMITS, {"dual_steps": 6}, **SAVING)
    assert torch.equal(weights(whole.model), weights(again.model))
    assert str(whole.promises) == str(again.promises)
    assert torch.equal(whole.constraints.core.progress.history[-1], again.constraints.core.progress.history[-1])


def test_a_second_training_keeps_the_reference_of_the_first(skilled, tmp_path):
    trainer = trained(skilled, tmp_path, {"one": (sequences(100, 1, 5), "9x")})
    first = trainer.constraints.core.tolerances.values
    trainer.train()
    assert trainer.constraints.core.tolerances.values == first


def test_duals_and_slacks_stand_in_the_logs(tmp_path):
    trainer = trained(llama(), tmp_path, {"one": (sequences(60, 1, 5), "1.01x")}, {"dual_steps": 6})
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    core = trainer.constraints.core
    assert [entry["dual/one"] for entry in logged] == [float(step) for step in core.progress.history]
    assert [entry["slack/one"] for entry in logged] == [float(step) for step in core.progress.slacks]


def test_held_back_samples_are_never_replayed(tmp_path):
    limits = {"a": (sequences(60, 1, 5), "1.01x"), "b": (sequences(30, 1, 6), "+1pt")}
    trainer = trained(llama(), tmp_path, limits, {"base": 1.0}, max_steps=1)
    memory = trainer.constraints.core.memory
    held = memory["x"][memory["role"] > 0]
    assert len(held) == 6 + 6 + 3 + 3
    drawn = trainer.constraints.draw(2000).numbers
    assert not torch.isin(drawn, held).any()
    assert len(drawn.unique()) == 90 - len(held)


def test_columns_that_the_model_ignores_are_removed(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = [{**{k: v.tolist() for k, v in row.items()}, "comment": "why"} for row in sequences(40, 1)]
    data = datasets.Dataset.from_list(rows)
    trainer = trained(llama(), tmp_path, {"one": (data, "1.1x")}, {"base": 1.0}, data=data, max_steps=2)
    assert trainer.promises[0].samples == 4


def test_a_classifier_has_right_and_wrong(tmp_path):
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=TOKENS, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                     intermediate_size=32, max_position_embeddings=16, num_labels=4)  # fmt: skip
    rows = [{"input_ids": row["input_ids"], "label": int(row["input_ids"][0]) % 4} for row in sequences(80, 1)]
    model = transformers.BertForSequenceClassification(config)
    trainer = trained(model, tmp_path, {"one": (rows, "+5pt")}, {"base": 1.0}, data=rows[:40])
    found = trainer.look(torch.arange(80))
    ids, labels = torch.stack([row["input_ids"] for row in rows]), torch.tensor([row["label"] for row in rows])
    wrong = model.eval()(input_ids=ids).logits.argmax(1) != labels
    assert torch.equal(found[:, 1], wrong.double())


@pytest.mark.parametrize(
    ("capabilities", "constraints", "says"),
    [
        ({}, None, "must be a mapping"),
        ({"code": sequences(20, 1)}, None, "'code' must be a name with .dataset, limit."),
        ({"code": ([], "1.1x")}, None, "'code' has no samples"),
        ({"code": (sequences(3, 1), "1.1x")}, None, "'code' has 3 samples"),
        ({"code": (iter([]), "1.1x")}, None, "'code': samples of list_iterator have no positions"),
        ({"code": (sequences(20, 1), "+2%")}, None, "limit of capability 'code'.*write \\+2pt"),
        ({"code": (sequences(20, 1), "5%,10%")}, None, "'code' is a list"),
        ({"code": (sequences(20, 1), "1.1x")}, {"dual": "asent"}, "asent"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line_before_training(capabilities, constraints, says, tmp_path):
    with pytest.raises(UsageError, match=says) as told:
        trained(llama(), tmp_path, capabilities, constraints, start=False)
    assert "\n" not in str(told.value)


def test_samples_without_labels_are_told_before_the_first_step(tmp_path):
    bare = [{"input_ids": row["input_ids"]} for row in sequences(20, 1)]
    trainer = trained(llama(), tmp_path, {"code": (bare, "1.1x")}, start=False)
    with pytest.raises(UsageError, match="no 'labels', only input_ids"):
        trainer.train()
    assert trainer.state.global_step == 0


class Poison(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, model=None, **kwargs):
        if state.global_step == 3:
            with torch.no_grad():
                next(model.parameters()).fill_(torch.nan)


@pytest.mark.parametrize("limit", ["50x", "1.01x"])
def test_a_loss_that_is_not_finite_stops_training(limit, tmp_path):
    trainer = trained(llama(), tmp_path, {"one": (sequences(20, 1), limit)}, {"dual_steps": 1}, start=False)
    trainer.add_callback(Poison())
    with pytest.raises(Diverged, match="isn't finite after step 3"):
        trainer.train()
    assert trainer.state.global_step == 3


def test_a_checkpoint_of_other_capabilities_is_refused(tmp_path):
    more = {"save_strategy": "steps", "save_steps": 3}
    trained(llama(), tmp_path, {"code": (sequences(20, 1), "1.1x")}, **more)
    other = {"chat": (sequences(20, 1), "1.1x")}
    with pytest.raises(UsageError, match=r"saved with capabilities code \(20.*this trainer has chat"):
        trained(llama(), tmp_path, other, resume=True, max_steps=8)
    (tmp_path / "checkpoint-6" / "pdcl.pt").unlink()
    with pytest.raises(UsageError, match=r"checkpoint-6 has no pdcl\.pt"):
        trained(llama(), tmp_path, {"code": (sequences(20, 1), "1.1x")}, resume=True, max_steps=8)


def test_with_lora_only_the_adapter_is_trained_and_saved(skilled, knows_one, tmp_path):
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(skilled, peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    limits = {"one": (sequences(60, 1, 5), "1.01x")}
    trainer = trained(model, tmp_path, limits, {"dual_steps": 6}, save_strategy="steps", save_steps=6)
    assert float(trainer.constraints.core.progress.history[-1]) > 0
    inside = {
        k.replace(".base_layer", ""): v for k, v in model.get_base_model().state_dict().items() if "lora" not in k
    }
    assert inside.keys() == knows_one.keys()
    assert all(torch.equal(value, knows_one[name]) for name, value in inside.items())
    adapter = json.loads((tmp_path / "checkpoint-6" / "adapter_config.json").read_text(encoding="utf-8"))
    assert adapter["r"] == 4
    assert not list((tmp_path / "checkpoint-6").glob("model*.safetensors"))
    counted = sum(group.numel() for each in trainer.optimizer.param_groups for group in each["params"])
    assert counted == sum(p.numel() for p in model.parameters() if p.requires_grad) == 2 * 4 * (16 + 16)
    assert len(sequences(1, 1)[0]["input_ids"]) == LENGTH
