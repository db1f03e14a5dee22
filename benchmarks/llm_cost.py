"""What limits cost at equal tokens: a step of `ConstrainedTrainer` over one of plain Trainer, in one run.

    python benchmarks/llm_cost.py                     a Llama of 1 M parameters, 16 texts of 128 tokens a step
    python benchmarks/llm_cost.py --steps 100

Three capabilities; a sixth of each batch is old, as at the limits of 1.1x in docs/results/llm.md, whatever the losses.
Plain and limited blocks of steps take turns, so that a busy machine slows both. A look at the guards and the first
measurement, which come once in a while, are timed by themselves and shared out: 20 looks in --of steps.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from statistics import median
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from pdcl.integrations.hf import ConstrainedTrainer

LENGTH, BATCH, LOOKS = 128, 16, 20
# Λ of which Λ/(1 + Λ) is a sixth, in three parts.
WEIGHT = 0.2 / 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8, help="steps of a block")
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--of", type=int, default=1000, help="steps of a whole training")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        plain, limited = trainers(place)
        for each in (plain, limited):
            each.train()
        before, look = (timed(lambda n=n: limited.look(torch.arange(n))) for n in (256, 96))
        blocks = [(spent(plain, given.steps), spent(limited, given.steps)) for _ in range(given.blocks)]
    steps = median(ours / theirs for theirs, ours in blocks)
    each = median(theirs for theirs, _ in blocks)
    first = 3 * 2 * before / each / given.of
    looks = LOOKS * look / each / given.of
    print(f"a step: {steps:.3f} x plain (of {each * 1000:.0f} ms)")
    print(f"{LOOKS} looks in {given.of} steps: {looks:.3f} x; guards and witnesses before and after: {first:.3f} x")
    print(f"in all: {steps + looks + first:.2f} x plain at equal tokens")


def trainers(place: str) -> tuple[Trainer, ConstrainedTrainer]:
    def model() -> Any:
        torch.manual_seed(0)
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=512, hidden_size=144, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4,
                num_key_value_heads=4, max_position_embeddings=LENGTH, tie_word_embeddings=True,
            )
        )  # fmt: skip

    args = TrainingArguments(
        output_dir=place, max_steps=1, per_device_train_batch_size=BATCH, per_device_eval_batch_size=BATCH,
        learning_rate=1e-4, use_cpu=True, report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    options = {"dual": "frozen", "base": WEIGHT, "guard": 64, "witness": 0}
    old = {name: (texts(700, seed), "2x") for seed, name in enumerate(("one", "two", "three"), 1)}
    given = {"args": args, "train_dataset": texts(2000, 0)}
    return Trainer(model=model(), **given), ConstrainedTrainer(
        model=model(), **given, capabilities=old, constraints=options
    )


def texts(count: int, seed: int) -> list[dict[str, torch.Tensor]]:
    ids = torch.randint(0, 512, (count, LENGTH), generator=torch.Generator().manual_seed(seed))
    return [{"input_ids": row, "labels": row} for row in ids]


def spent(trainer: Trainer, steps: int) -> float:
    """CPU seconds of a step."""
    batches = iter(trainer.get_train_dataloader())
    trainer.model.train()
    held = [next(batches) for _ in range(steps)]
    return timed(lambda: [step(trainer, batch) for batch in held]) / steps


def step(trainer: Trainer, batch: dict[str, torch.Tensor]) -> None:
    items = trainer._get_num_items_in_batch([batch], trainer.args.device)
    trainer.training_step(trainer.model, batch, items)
    trainer.optimizer.step()
    trainer.model.zero_grad()


def timed(work: Any) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
