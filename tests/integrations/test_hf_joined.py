"""Samples joined in one row without padding: the same losses, duals and weights as padded."""

import sys
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
sys.path.insert(0, str(Path(__file__).parent))

from hf_models import arguments, llama, sequences, weights  # noqa: E402

from pdcl.integrations.hf import ConstrainedTrainer  # noqa: E402
from pdcl.integrations.hf_joined import padded, starts, without_last_joined  # noqa: E402


def texts(count, step, seed):
    """Of 4 to 8 tokens."""
    rows = sequences(count, step, seed, masked=True)
    return [{name: each[i % 5 :].tolist() for name, each in row.items()} for i, row in enumerate(rows)]


def joined(**more):
    return transformers.DataCollatorWithFlattening(**more)


def trained(place, collator, constraints, **more):
    past = {"one": (texts(60, 1, 5), "0.9x"), "points": (texts(60, 1, 6), "20%")}
    made = ConstrainedTrainer(
        model=llama(), args=arguments(place, **more), data_collator=collator, train_dataset=texts(80, 2, 1),
        capabilities=past, constraints=constraints,
    )  # fmt: skip
    made.train()
    return made


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("constraints", [{"base": 0.3, "dual_steps": 6}, {"base": 4.0, "dual_steps": 6}])
def test_joined_and_padded_batches_end_alike(kernels, constraints, tmp_path):
    more = {"max_steps": 12, "gradient_accumulation_steps": 2}
    collator = joined(return_flash_attn_kwargs=kernels, return_seq_idx=kernels)
    ours, plain = (trained(tmp_path, each, constraints, **more) for each in (collator, padded))
    torch.testing.assert_close(weights(ours.model), weights(plain.model), rtol=0, atol=1e-5)
    duals = [torch.stack(each.constraints.core.progress.history) for each in (ours, plain)]
    torch.testing.assert_close(*duals, rtol=0, atol=1e-6)
    assert float(duals[0].max()) > 0
    torch.testing.assert_close(ours.look(torch.arange(120)), plain.look(torch.arange(120)), rtol=0, atol=1e-5)


def test_each_old_sample_has_the_loss_that_it_has_alone(tmp_path):
    made = trained(tmp_path, joined(), {"dual": "frozen"}, max_steps=1)
    rows = made.constraints.capabilities[0].dataset
    for row, (loss, _) in zip(rows, made.look(torch.arange(60)), strict=False):
        alone = {name: torch.tensor([each]) for name, each in row.items()}
        assert float(loss) == pytest.approx(float(made.model.eval()(**alone).loss.detach()), abs=1e-6)


@pytest.mark.parametrize("few", [0, 1, 3, 4, 9])
def test_a_batch_gives_up_its_last_samples(few):
    rows = texts(4, 2, 1)
    how = {"return_flash_attn_kwargs": True, "return_seq_idx": True}
    left, expected = without_last_joined(few, joined(**how)(rows)), joined(**how)(rows[: max(1, 4 - few)])
    assert left.keys() == expected.keys()
    for name, each in expected.items():
        assert torch.equal(torch.as_tensor(left[name]), torch.as_tensor(each)), name


def test_padding_at_the_end_is_no_sample():
    batch = joined()(texts(3, 2, 1))
    whole = {name: torch.cat([each, torch.full((1, 3), -100 if name == "labels" else 0)], 1)
             for name, each in batch.items()}  # fmt: skip
    assert starts(whole) == starts(batch)
    assert len(starts(batch)) == 3
    assert starts({"input_ids": batch["input_ids"], "labels": batch["labels"]}) == []
