"""What `test_hf_ranks` starts with torchrun: small trainings at a global batch of 8, each rank's end in a file.

torchrun --nproc-per-node 2 hf_on_ranks.py FOLDER NAME [NAME …]
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

sys.path.insert(0, str(Path(__file__).parent))
from hf_models import arguments, llama, sequences, weights

from pdcl.errors import PdclError
from pdcl.integrations.hf import ConstrainedTrainer

WORLD, RANK, BATCH = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]), 8
ALL = {"guard": 0, "witness": 0, "estimator": "whole", "normalise": False, "base": 1.0}
LIMITS = {
    "one": (sequences(60, 1, 5, masked=True), "0.7x"),
    "other": (sequences(45, 1, 6), "0.5x"),
    "points": (sequences(45, 1, 7), "+1pt"),
}
SAVING = {"save_strategy": "steps", "save_steps": 3}
# Options of the limits, the Trainer's arguments, and arguments of its own; under each name one training.
TRAININGS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "drawn": ({}, SAVING, {}),
    # 5 batches an epoch: the last step of an epoch has one batch where others have two.
    "accumulated": ({}, {"gradient_accumulation_steps": 2}, {}),
    "whole": (ALL, {"gradient_accumulation_steps": 3}, {}),
    "few": ({"base": 1.0}, {}, {"replay": 1}),
    "lora": ({"base": 1.0}, {}, {}),
    "dropout": ({}, {"optim": "adamw_torch", **SAVING}, {}),
}


def kill_while_saving(trainer: Any) -> None:
    """SIGKILL for the second rank once it should write its part of checkpoint-9."""
    usual = trainer._save_rng_state

    def save(place: str) -> None:
        if RANK == 1 and trainer.state.global_step == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        usual(place)

    trainer._save_rng_state = save


class Poison(transformers.TrainerCallback):
    """The second rank's new samples give NaN after step 3, the first rank's don't."""

    def __init__(self, trainer: Any) -> None:
        self.trainer, self.usual = trainer, trainer.compute_loss

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 3 and RANK == 1:
            self.trainer.compute_loss = lambda *given, **more: torch.nan * self.usual(*given, **more)


DUAL = {"dual": "ascent:lr=0.5", "dual_steps": None, "primal_steps": 2}
USUAL = {"optim": "sgd", "learning_rate": 0.3, "max_grad_norm": 1.0, "max_steps": 12}


def made(name: str, place: Path) -> Any:
    if name == "sft":
        return sft(place)
    options, more, own = TRAININGS[name]
    args = arguments(place, **{**USUAL, "per_device_train_batch_size": BATCH // WORLD, **more})
    model = llama(dropout=0.2 if name == "dropout" else 0.0).double()
    if name == "lora":
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"])).double()
    data = sequences(40, 2, 1, masked=True)
    return ConstrainedTrainer(
        model=model, args=args, train_dataset=data, capabilities=LIMITS, constraints={**DUAL, **options},
        **{"replay": BATCH, **own},
    )  # fmt: skip


def sft(place: Path) -> Any:
    """TRL's SFTTrainer on texts of unequal length."""
    import trl
    from test_hf_sft import ConstrainedSFTTrainer, texts, tokenizer

    args = trl.SFTConfig(
        output_dir=str(place), per_device_train_batch_size=BATCH // WORLD, gradient_accumulation_steps=2, use_cpu=True,
        bf16=False, report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=1, **USUAL,
    )  # fmt: skip
    return ConstrainedSFTTrainer(
        model=llama().double(), args=args, train_dataset=texts(40, 2), processing_class=tokenizer(),
        capabilities={"alphabet": (texts(60, 1), "0.7x"), "other": (texts(40, 3), "0.5x")}, constraints=DUAL,
        replay=BATCH,
    )  # fmt: skip


def trained(word: str, folder: Path) -> dict[str, Any]:
    """word: a name, or `name@folder` to go on from that folder's newest checkpoint."""
    name, _, source = word.partition("@")
    name, _, ending = name.partition(":")
    trainer = made(name, Path(source) if source else folder / name)
    if ending == "kill":
        kill_while_saving(trainer)
    elif ending == "poison":
        trainer.add_callback(Poison(trainer))
    error = ""
    try:
        trainer.train(resume_from_checkpoint=True if source else None)
    except PdclError as raised:
        error = str(raised)
    core = trainer.constraints.core
    return {
        "weights": weights(trainer.model),
        "duals": torch.stack([*core.progress.history, core.algorithm.duals.values]),
        "slacks": torch.stack(core.progress.slacks) if core.progress.slacks else torch.zeros(0),
        "losses": torch.tensor([entry["loss"] for entry in trainer.state.log_history if "loss" in entry]),
        "promises": str(trainer.promises),
        "error": error,
        "step": trainer.state.global_step,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    for word in sys.argv[2:]:
        name, resumed, _ = word.partition("@")
        torch.save(trained(word, folder), folder / f"{name}{'-resumed' if resumed else ''}-{RANK}.pt")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
