"""Limits in TRL's DPOTrainer: it learns from pairs, capabilities are texts."""

import sys
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")
sys.path.insert(0, str(Path(__file__).parent))

from hf_models import llama, sequences, weights  # noqa: E402
from test_hf_sft import WORDS, tokenizer  # noqa: E402

from pdcl.errors import UsageError  # noqa: E402
from pdcl.integrations.hf import Constrained  # noqa: E402
from pdcl.integrations.hf_self_made import SelfMade  # noqa: E402


class ConstrainedDPOTrainer(Constrained, trl.DPOTrainer):
    pass


def pairs(count):
    letters = WORDS[3:]
    rows = [
        {"prompt": f"{letters[i % 26]} ", "chosen": letters[(i + 2) % 26], "rejected": letters[(i + 5) % 26]}
        for i in range(count)
    ]
    return datasets.Dataset.from_list(rows)


def made(place, capabilities=None, constraints=None, **more):
    args = trl.DPOConfig(
        output_dir=str(place), per_device_train_batch_size=4, use_cpu=True, bf16=False, report_to=[],
        save_strategy="no", disable_tqdm=True, **{"max_steps": 6, "learning_rate": 1e-2, **more},
    )  # fmt: skip
    given = {"model": llama(), "args": args, "train_dataset": pairs(40)}
    given |= {"ref_model": llama(), "processing_class": tokenizer()}
    if capabilities is None:
        return trl.DPOTrainer(**given)
    return ConstrainedDPOTrainer(
        **given, capabilities=capabilities, constraints=constraints, replay=4,
        capability_collator=transformers.default_data_collator,
    )  # fmt: skip


def test_without_duals_it_is_the_plain_dpo_trainer_to_the_bit(tmp_path):
    plain = made(tmp_path)
    plain.train()
    ours = made(tmp_path, {"one": (sequences(40, 1), "1.1x")}, {"dual": "frozen"})
    ours.train()
    assert torch.equal(weights(plain.model), weights(ours.model))


def test_the_loss_of_each_text_is_the_models_own(tmp_path):
    samples = sequences(20, 1, masked=True)
    found = made(tmp_path, {"one": (samples, "1.1x")})
    for sample, (loss, _) in zip(samples, found.look(torch.arange(20)), strict=True):
        own = found.model.eval()(input_ids=sample["input_ids"][None], labels=sample["labels"][None]).loss
        assert float(loss) == pytest.approx(float(own.detach()), abs=1e-5)


def test_a_limit_holds_what_preferences_alone_take(tmp_path):
    over = []
    for options in ({"dual": "frozen"}, {"dual": "ascent:lr=5", "dual_steps": 40, "guard": 20}):
        ours = made(tmp_path, {"own": (SelfMade(200, length=7), "1.01x")}, options, max_steps=40)
        ours.train()
        over.append(ours.promises[0].now - ours.promises[0].limit)
    assert over[0] > 0
    assert over[1] < 0.7 * over[0]


def test_pairs_have_no_place_for_replay_inside(tmp_path):
    ours = made(tmp_path, {"one": (sequences(40, 1), "1.1x")}, {"dual": "frozen", "base": 1.0})
    ours._replay_size = "inside"
    with pytest.raises(UsageError, match=r"one row for each of at most 4 samples.*8 rows"):
        ours.train()
