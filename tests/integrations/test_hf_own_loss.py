"""Limits of Hugging Face models speak of the model's own loss, whatever its class is called and however it shifts."""

import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
sys.path.insert(0, str(Path(__file__).parent))

from hf_models import LENGTH, TOKENS, arguments, gpt2, llama, sequences, weights  # noqa: E402

from pdcl.errors import LimitBroken, UsageError  # noqa: E402
from pdcl.integrations.hf import ConstrainedTrainer  # noqa: E402
from pdcl.past.held_back import WITNESS  # noqa: E402

SMALL = {"vocab_size": TOKENS, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 32, "max_position_embeddings": 16}  # fmt: skip


def t5():
    config = transformers.T5Config(vocab_size=TOKENS, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
                                   decoder_start_token_id=0)  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def bart():
    sizes = {f"{part}_{name}": value for part in ("encoder", "decoder")
             for name, value in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 32))}  # fmt: skip
    config = transformers.BartConfig(vocab_size=TOKENS, d_model=16, max_position_embeddings=16, pad_token_id=1,
                                     bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, **sizes)  # fmt: skip
    return transformers.BartForConditionalGeneration(config)


def bert(kind, **more):
    return getattr(transformers, f"Bert{kind}")(transformers.BertConfig(**SMALL, pad_token_id=0, **more))


def experts():
    config = transformers.MixtralConfig(**SMALL, num_key_value_heads=2, num_local_experts=2, output_router_logits=True,
                                        router_aux_loss_coef=0.0)  # fmt: skip
    model = transformers.MixtralForCausalLM(config)
    model.router_aux_loss_coef = 0.5
    return model


def labelled(labels):
    return [{"input_ids": row["input_ids"], "labels": y} for row, y in zip(sequences(20, 1, 3), labels, strict=True)]


def translated():
    return labelled([row["labels"] for row in sequences(20, 3, 8, masked=True)])


def parts():
    return torch.rand(20, 3, generator=torch.Generator().manual_seed(0))


TEXTS = sequences(20, 1, 3, masked=True)
# Models whose names, configurations and losses differ, and samples for each.
MODELS = {
    "GPT-2": (gpt2, TEXTS),
    "Llama": (llama, TEXTS),
    "a decoder of BERT's": (lambda: bert("LMHeadModel", is_decoder=True), TEXTS),
    "T5": (t5, translated()),
    "BART": (bart, translated()),
    "BART on its own inputs": (bart, sequences(20, 1, 3)),
    "masked LM": (lambda: bert("ForMaskedLM"), TEXTS),
    "token classifier": (lambda: bert("ForTokenClassification", num_labels=TOKENS), TEXTS),
    "classifier": (lambda: bert("ForSequenceClassification", num_labels=4), labelled([k % 4 for k in range(20)])),
    "several labels": (lambda: bert("ForSequenceClassification", num_labels=3), labelled(parts().round())),
    "regression": (lambda: bert("ForSequenceClassification", num_labels=1), labelled(parts()[:, 0])),
    "regression of three numbers": (
        lambda: bert("ForSequenceClassification", num_labels=3, problem_type="regression"), labelled(parts()),
    ),
}  # fmt: skip


def made(model, place, samples, limit="1.1x", constraints=None, kind=ConstrainedTrainer, own=None, **more):
    return kind(model=model, args=arguments(place, **more), train_dataset=samples, constraints=constraints,
                capabilities=samples if isinstance(samples, dict) else {"one": (samples, limit)},
                **(own or {}))  # fmt: skip


@torch.no_grad()
def own_losses(model, samples):
    """What the model itself says of each sample."""
    model.eval()
    batches = [transformers.default_data_collator([sample]) for sample in samples]
    return torch.tensor([float(model(**batch).loss) for batch in batches], dtype=torch.float64)


def shuffle(model):
    """Other weights, none of them 0."""
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_of_each_sample_is_the_models_own(name, tmp_path):
    make, samples = MODELS[name]
    model = make()
    trainer = made(model, tmp_path, samples)
    for _ in range(2):
        torch.testing.assert_close(trainer.look(torch.arange(20))[:, 0], own_losses(model, samples), rtol=0, atol=1e-5)
        shuffle(model)


@pytest.mark.parametrize("name", MODELS)
def test_replay_descends_it_and_the_table_states_it(name, tmp_path):
    make, samples = MODELS[name]
    model = make()
    before = own_losses(model, samples).mean()
    trainer = made(model, tmp_path, samples, "9x", {"base": 50.0}, max_steps=20)
    trainer.train()
    found = own_losses(model, samples)
    assert found.mean() < before
    memory = trainer.constraints.core.memory
    assert trainer.promises[0].now == pytest.approx(
        float(found[memory["x"][memory["role"] == WITNESS]].mean()), abs=1e-4
    )


@pytest.mark.parametrize("name", MODELS)
def test_equal_logits_don_t_hide_what_a_model_predicts(name, tmp_path):
    """At first every reading of a head of zeros gives the same loss."""
    make, samples = MODELS[name]
    model = make()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    trainer = made(model, tmp_path, samples)
    trainer.look(torch.arange(20))
    shuffle(model)
    torch.testing.assert_close(trainer.look(torch.arange(20))[:, 0], own_losses(model, samples), rtol=0, atol=1e-5)


def test_the_table_of_a_gpt2_says_what_the_model_itself_would(tmp_path):
    samples, model, new = sequences(400, 1, 5), gpt2(), sequences(100, 2, 1)
    transformers.Trainer(model=model, args=arguments(tmp_path, max_steps=80), train_dataset=samples).train()
    before = own_losses(model, samples)
    trainer = ConstrainedTrainer(model=model, args=arguments(tmp_path, max_steps=25), train_dataset=new,
                                 capabilities={"one": (samples, "1.1x")}, constraints={"dual": "frozen"})  # fmt: skip
    with pytest.warns(LimitBroken, match="one: BROKEN"):
        trainer.train()
    memory, row = trainer.constraints.core.memory, trainer.promises[0]
    witnesses = memory["x"][memory["role"] == WITNESS]
    assert row.samples == len(witnesses) == 40
    assert row.limit == pytest.approx(1.1 * float(before[witnesses].mean()), abs=1e-4)
    assert row.now == pytest.approx(float(own_losses(model, samples)[witnesses].mean()), abs=1e-4)


def test_comparing_losses_changes_no_step_of_a_gpt2(tmp_path):
    data = sequences(40, 2, 1, masked=True)
    plain = transformers.Trainer(model=gpt2(dropout=0.2), args=arguments(tmp_path), train_dataset=data)
    plain.train()
    ours = made(gpt2(dropout=0.2), tmp_path, data, constraints={"dual": "frozen"})
    ours.train()
    assert torch.equal(weights(plain.model), weights(ours.model))


def test_what_experts_add_to_a_loss_is_no_part_of_a_sample_s(tmp_path):
    model = experts()
    found = made(model, tmp_path, TEXTS).look(torch.arange(20))[:, 0]
    model.router_aux_loss_coef = 0.0
    torch.testing.assert_close(found, own_losses(model, TEXTS), rtol=0, atol=1e-5)


# What users write.


class Bare(torch.nn.Module):
    """Logits and no loss."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = torch.nn.Sequential(torch.nn.Embedding(TOKENS, 16), torch.nn.Linear(16, TOKENS))

    def forward(self, input_ids):
        return {"logits": self.body(input_ids)}


def mean_loss(outputs, labels, num_items_in_batch):
    return functional.cross_entropy(outputs["logits"].flatten(0, 1), labels.flatten())


def next_loss(outputs, labels, num_items_in_batch):
    return mean_loss({"logits": outputs["logits"][:, :-1]}, labels[:, 1:], None)


def sum_loss(outputs, labels, num_items_in_batch):
    each = functional.cross_entropy(outputs["logits"][:, :-1].transpose(1, 2), labels[:, 1:], reduction="sum")
    return each / num_items_in_batch


def focal_loss(outputs, labels, num_items_in_batch):
    each = functional.cross_entropy(outputs["logits"][:, :-1].transpose(1, 2), labels[:, 1:], reduction="none")
    return ((1 - (-each).exp()) * each).mean()


def of_samples(outputs, labels, num_items_in_batch):
    """Every sample counts alike, however many labels it has."""
    each = [mean_loss({"logits": x[None]}, y[None], None) for x, y in zip(outputs["logits"], labels, strict=True)]
    return torch.stack(each).mean()


class WithOwnLoss(ConstrainedTrainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        return next_loss(model(input_ids=inputs["input_ids"]), inputs.pop("labels"), None)


@pytest.mark.parametrize(
    ("model", "kind", "function", "shifts"),
    [
        (Bare, ConstrainedTrainer, mean_loss, False),
        (Bare, ConstrainedTrainer, of_samples, False),
        (Bare, ConstrainedTrainer, next_loss, True),
        (Bare, ConstrainedTrainer, sum_loss, True),
        (Bare, WithOwnLoss, None, True),
        # Labels that the user has shifted already, and a loss that only the model can say more about.
        (llama, ConstrainedTrainer, mean_loss, False),
        (gpt2, ConstrainedTrainer, focal_loss, True),
    ],
)
def test_the_users_loss_says_how_labels_are_meant(model, kind, function, shifts, tmp_path):
    made_here = model()
    trainer = made(made_here, tmp_path, TEXTS, kind=kind, own={"compute_loss_func": function},
                   remove_unused_columns=False)  # fmt: skip
    found = trainer.look(torch.arange(20))[:, 0]
    for sample, loss in zip(TEXTS, found, strict=True):
        logits, labels = made_here.eval()(input_ids=sample["input_ids"][None])["logits"].detach()[0], sample["labels"]
        logits, labels = (logits[:-1], labels[1:]) if shifts else (logits, labels)
        assert float(loss) == pytest.approx(float(functional.cross_entropy(logits, labels)), abs=1e-5)


def test_label_smoothing_smooths_the_new_loss_alone(tmp_path):
    model = gpt2()
    trainer = made(model, tmp_path, TEXTS, label_smoothing_factor=0.3)
    torch.testing.assert_close(trainer.look(torch.arange(20))[:, 0], own_losses(model, TEXTS), rtol=0, atol=1e-5)


def test_samples_whose_labels_are_all_masked_are_passed_over(tmp_path):
    masked = [{**row, "labels": torch.full((LENGTH,), -100)} for row in sequences(10, 1)]
    model, samples = gpt2(), masked + TEXTS
    found = made(model, tmp_path, samples).look(torch.arange(30))[:, 0]
    assert found[:10].tolist() == [0] * 10
    torch.testing.assert_close(found[10:], own_losses(model, TEXTS), rtol=0, atol=1e-5)


# What is refused.


class Twice(transformers.LlamaForCausalLM):
    """A loss that is no mean of token losses."""

    def forward(self, input_ids, labels=None):
        found = super().forward(input_ids, labels=labels)
        found.loss = None if found.loss is None else 2 * found.loss
        return found


def twice():
    return Twice(llama().config)


def of_both_kinds(outputs, labels, num_items_in_batch):
    several = functional.binary_cross_entropy_with_logits
    return (several if labels.is_floating_point() else functional.cross_entropy)(outputs.logits, labels)


def joined(rows):
    return {key: torch.cat([row[key] for row in rows])[None] for key in rows[0]}


ALL_MASKED = [{**row, "labels": torch.full((LENGTH,), -100)} for row in sequences(10, 1)]
REGRESSION, CLASSES = MODELS["regression"], MODELS["classifier"]


@pytest.mark.parametrize(
    ("model", "capabilities", "own", "says"),
    [
        (
            twice,
            {"one": (TEXTS, "1.1x")},
            {},
            r"'one'.* loss of \S+, which is no mean.*next tokens.*compute_loss_func=",
        ),
        (llama, {"one": (TEXTS, "1.1x")}, {"data_collator": joined}, "8 samples .* gives 1 losses.*padding_free"),
        (gpt2, {"one": (ALL_MASKED, "1.1x")}, {}, "'one': no sample has a finite loss"),
        (REGRESSION[0], {"one": (REGRESSION[1], "+2pt")}, {}, "'one' has no error rate.*limit in loss"),
        (
            MODELS["several labels"][0],
            {"a": (labelled([k % 3 for k in range(20)]), "9x"), "b": (MODELS["several labels"][1], "9x")},
            {"compute_loss_func": of_both_kinds},
            "'a' as classification, 'b' as multilabel",
        ),
    ],
)
def test_what_would_limit_another_loss_is_told_in_one_line_before_the_first_step(
    model, capabilities, own, says, tmp_path
):
    trainer = ConstrainedTrainer(
        model=model(), args=arguments(tmp_path), train_dataset=TEXTS, capabilities=capabilities, **own
    )
    with pytest.raises(UsageError, match=says) as told:
        trainer.train()
    assert "\n" not in str(told.value)
    assert trainer.state.global_step == 0


def test_the_way_out_of_a_loss_that_is_no_mean_is_one_that_is(tmp_path):
    trainer = made(twice(), tmp_path, TEXTS, own={"compute_loss_func": next_loss})
    trainer.train()
    assert trainer.promises is not None
