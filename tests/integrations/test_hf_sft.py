"""Limits in TRL's SFTTrainer: it tokenises texts, and its LM head gives log-probabilities instead of logits."""

import sys
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")
tokenizers = pytest.importorskip("tokenizers")
sys.path.insert(0, str(Path(__file__).parent))

from hf_models import gpt2, llama, weights  # noqa: E402

from pdcl.integrations.hf import Constrained  # noqa: E402
from pdcl.integrations.hf_joined import starts  # noqa: E402
from pdcl.integrations.hf_readings import Reading  # noqa: E402
from pdcl.objective import OBJECTIVES  # noqa: E402

WORDS = ["<pad>", "<unk>", "<eos>", *"abcdefghijklmnopqrstuvwxyz"]


class ConstrainedSFTTrainer(Constrained, trl.SFTTrainer):
    pass


def tokenizer():
    known = {word: number for number, word in enumerate(WORDS)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>"
    )


def texts(count, step):
    letters = WORDS[3:]
    rows = [" ".join(letters[(i + step * k) % 26] for k in range(3 + i % 5)) for i in range(count)]
    return datasets.Dataset.from_dict({"text": rows})


def trained(place, capabilities=None, constraints=None, start=True, model=llama, **more):
    args = trl.SFTConfig(
        output_dir=str(place), max_steps=4, per_device_train_batch_size=4, gradient_accumulation_steps=2,
        learning_rate=1e-2, use_cpu=True, bf16=False, report_to=[], save_strategy="no", disable_tqdm=True,
        **more,
    )  # fmt: skip
    given = {"model": model(), "args": args, "train_dataset": texts(40, 2), "processing_class": tokenizer()}
    if capabilities is None:
        trainer = trl.SFTTrainer(**given)
    else:
        trainer = ConstrainedSFTTrainer(**given, capabilities=capabilities, constraints=constraints)
    if start:
        trainer.train()
    return trainer


def test_without_duals_it_is_the_plain_sft_trainer_to_the_bit(tmp_path):
    plain = trained(tmp_path)
    ours = trained(tmp_path, {"alphabet": (texts(40, 1), "1.1x")}, {"dual": "frozen"})
    assert torch.equal(weights(plain.model), weights(ours.model))


def test_losses_of_the_fused_head_are_those_of_the_logits(tmp_path):
    trainer = trained(tmp_path, {"alphabet": (texts(20, 1), "+2pt")}, start=False)
    found = trainer.look(torch.arange(20))
    trainer._reader.reading = Reading(OBJECTIVES["tokens"], shifts=True)
    torch.testing.assert_close(found, trainer.look(torch.arange(20)), rtol=0, atol=1e-5)
    assert trainer.constraints.capabilities[0].dataset.column_names != ["text"]


def test_a_limit_is_pursued_and_judged(tmp_path):
    trainer = trained(tmp_path, {"alphabet": (texts(60, 1), "0.5x")}, {"dual_steps": 4})
    assert [float(step) for step in trainer.constraints.core.progress.history] == sorted(
        map(float, trainer.constraints.core.progress.history)
    )
    assert float(trainer.constraints.core.progress.history[-1]) > 0
    assert trainer.promises[0].samples == 6


@pytest.mark.parametrize("model", [llama, gpt2])
def test_the_loss_of_each_text_is_the_models_own(model, tmp_path):
    trainer = trained(tmp_path, {"alphabet": (texts(20, 1), "1.1x")}, start=False, model=model)
    samples = trainer.constraints.capabilities[0].dataset
    for sample, (loss, _) in zip(samples, trainer.look(torch.arange(20)), strict=True):
        ids = torch.tensor([sample["input_ids"]])
        assert float(loss) == pytest.approx(
            float(trainer.model.eval()(input_ids=ids, labels=ids).loss.detach()), abs=1e-5
        )


def test_without_padding_duals_are_the_same(tmp_path):
    past, options = {"alphabet": (texts(60, 1), "0.5x")}, {"dual_steps": 4, "base": 0.3}
    padded, free = (trained(tmp_path, past, options, padding_free=free, max_length=None) for free in (False, True))
    duals = [torch.stack(each.constraints.core.progress.history) for each in (padded, free)]
    torch.testing.assert_close(*duals, rtol=0, atol=1e-6)
    assert float(duals[0].max()) > 0
    torch.testing.assert_close(weights(padded.model), weights(free.model), rtol=0, atol=1e-5)


def test_packed_texts_give_way_to_old_ones(tmp_path):
    """A step of one packed row has some three texts; every second one is old at base 1."""
    seen = []

    class Counting(ConstrainedSFTTrainer):
        def compute_loss(self, model, inputs, **kwargs):
            seen.append(len(starts(inputs)))
            return super().compute_loss(model, inputs, **kwargs)

    args = trl.SFTConfig(output_dir=str(tmp_path), max_steps=9, per_device_train_batch_size=1, use_cpu=True, bf16=False,
                         packing=True, max_length=16, report_to=[], save_strategy="no", disable_tqdm=True)  # fmt: skip
    found = []
    for base in (0, 1):
        trainer = Counting(model=llama(), args=args, train_dataset=texts(40, 2), processing_class=tokenizer(),
                           capabilities={"alphabet": (texts(60, 1), "9x")}, constraints={"base": base})  # fmt: skip
        trainer.train()
        found.append(sum(seen))
        seen.clear()
    assert len(trainer.constraints.capabilities[0].dataset) == 60
    assert 0.4 * found[0] < found[1] < 0.65 * found[0]
