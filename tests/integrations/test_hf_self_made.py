"""Limits without data: the model writes samples before training, and is held to them."""

import sys
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
sys.path.insert(0, str(Path(__file__).parent))

from hf_models import TOKENS, arguments, gpt2, llama, sequences, weights  # noqa: E402

from pdcl.errors import UsageError  # noqa: E402
from pdcl.integrations.hf import ConstrainedTrainer  # noqa: E402
from pdcl.integrations.hf_self_made import SelfMade  # noqa: E402


def trainer(place, capabilities, model=None, constraints=None, **more):
    return ConstrainedTrainer(
        model=model or gpt2(), args=arguments(place, **more), train_dataset=sequences(40, 2, 1),
        capabilities=capabilities, constraints=constraints,
    )  # fmt: skip


def test_the_mean_rise_of_their_loss_is_how_far_the_model_moved():
    """E[ℓ_now − ℓ_before] = KL(before ‖ now) per token; the KL of each place is summed. One false alarm in 10⁶."""
    model, other = gpt2(), gpt2()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    made = SelfMade(4000, length=6)
    made.write(model.eval())
    ids, labels = made.ids, made.labels[:, 1:]
    with torch.no_grad():
        before, now = (each.eval()(input_ids=ids).logits[:, :-1].log_softmax(2) for each in (model, other))
    there = labels != -100
    rise = (before - now).gather(2, labels.clamp(min=0)[..., None])[..., 0]
    kl = (before.exp() * (before - now)).sum(2)
    difference = ((rise - kl) * there).sum(1)
    assert float(kl[there].mean()) > 0.1
    assert abs(float(difference.mean())) < 4.9 * float(difference.std()) / 4000**0.5


def test_prompts_start_samples_and_are_masked():
    prompts = [[3, 4, 5], [7]]
    made = SelfMade(40, length=4, prompts=prompts, at_once=7)
    made.write(llama())
    for i, (ids, labels) in enumerate(zip(made.ids.tolist(), made.labels.tolist(), strict=True)):
        start = prompts[i % 2]
        assert ids[: len(start)] == start
        assert labels[: len(start)] == [-100] * len(start)
        assert labels[len(start)] == ids[len(start)]


def test_a_sample_ends_with_the_end_of_a_text():
    model = gpt2()
    made = SelfMade(400, length=12)
    made.write(model)
    ends = made.labels == model.config.eos_token_id
    assert int(ends.sum()) > 50
    assert int(ends.sum(1).max()) == 1
    after = ends.cumsum(1) - ends.long() > 0
    assert (made.labels[after] == -100).all()


def test_the_same_seed_writes_the_same_and_disturbs_nothing():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    found = []
    for seed in (0, 0, 1):
        made = SelfMade(20, length=8, seed=seed)
        made.write(gpt2(dropout=0.5))
        found.append(made.digest)
    assert found[0] == found[1] != found[2]
    torch.manual_seed(5)
    gpt2(dropout=0.5)
    assert len(before) == len(torch.get_rng_state())
    model = gpt2()
    state = torch.get_rng_state()
    SelfMade(20, length=8).write(model)
    assert torch.equal(state, torch.get_rng_state())


def test_a_limit_on_them_holds_the_model_where_it_was(tmp_path):
    moved = []
    for limit in ("1.01x", "50x"):
        model = gpt2()
        limits, options = {"own": (SelfMade(400, length=7), limit)}, {"dual_steps": 40}
        trained = trainer(tmp_path, limits, model, options, max_steps=80, learning_rate=5e-3, logging_steps=80)
        trained.train()
        made = trained.constraints.self_made["own"]
        with torch.no_grad():
            now, before = (each.eval()(input_ids=made.ids).logits.log_softmax(2) for each in (model, gpt2()))
        moved.append(float((before.exp() * (before - now)).sum(2).mean()))
    assert moved[0] < 0.7 * moved[1], moved


def test_self_is_a_capability_and_text_of_people_is_judged_beside(tmp_path):
    made = trainer(tmp_path, {"prose": "self"})
    assert len(made.constraints.capabilities[0]) == 512
    test = sequences(60, 1, 9)
    made = trainer(tmp_path, {"prose": (SelfMade(40, length=7, test=test), "1.2x")})
    made.train()
    own, people = made.promises
    assert (own.task, own.samples) == ("prose", 4)
    assert (people.task, people.samples) == ("prose, test", 60)
    ids = torch.stack([row["input_ids"] for row in test])
    expected = [float(model.eval()(input_ids=ids, labels=ids).loss) for model in (made.model, gpt2())]
    assert people.now == pytest.approx(expected[0], abs=1e-4)
    assert people.limit == pytest.approx(1.2 * expected[1], abs=1e-4)


class Stop(transformers.TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == 8:
            raise KeyboardInterrupt


@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_interrupted_and_resumed_it_ends_where_it_would_have(from_checkpoint, tmp_path):
    """Also where the model is loaded from the checkpoint: samples are those that it wrote before training."""

    def made(place, model=None):
        limits = {"own": (SelfMade(60, length=7, test=sequences(20, 1, 9)), "1.001x")}
        more = {"max_steps": 12, "save_strategy": "steps", "save_steps": 3}
        return trainer(tmp_path / place, limits, model or gpt2(dropout=0.2), {"dual_steps": 6}, **more)

    whole = made("whole")
    whole.train()
    part = made("part")
    part.add_callback(Stop())
    with pytest.raises(KeyboardInterrupt):
        part.train()
    again = made("part", gpt2(dropout=0.2).from_pretrained(tmp_path / "part/checkpoint-6") if from_checkpoint else None)
    again.train(resume_from_checkpoint=True)
    assert whole.constraints.self_made["own"].digest == again.constraints.self_made["own"].digest
    assert float(whole.constraints.core.progress.history[-1]) > 0
    assert torch.equal(weights(whole.model), weights(again.model))
    assert str(whole.promises) == str(again.promises)
    state = again.constraints.state_dict()
    state["self-made"]["own"]["ids"] = state["self-made"]["own"]["ids"].flip(0)
    with pytest.raises(UsageError, match="don't match their hash"):
        again.constraints.load_state_dict(state, "checkpoint-9")


def test_who_cannot_write_is_told_in_one_line(tmp_path):
    config = transformers.BertConfig(vocab_size=TOKENS, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                     intermediate_size=32, max_position_embeddings=16, num_labels=4)  # fmt: skip
    with pytest.raises(UsageError, match="can't write samples of its own: give a dataset in place of 'self'"):
        trainer(tmp_path, {"own": "self"}, transformers.BertForSequenceClassification(config)).train()
    bare = llama()
    bare.config.bos_token_id = bare.config.eos_token_id = None
    with pytest.raises(UsageError, match=r"no token that starts a text: give SelfMade\(prompts=…\)"):
        trainer(tmp_path, {"own": "self"}, bare).train()
    with pytest.raises(UsageError, match="at least one sample"):
        SelfMade(0)
