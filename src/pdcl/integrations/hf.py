"""`ConstrainedTrainer`: fine-tune with Hugging Face's Trainer, and state what every other capability may lose.

    trainer = ConstrainedTrainer(
        model=model, args=args, train_dataset=new, data_collator=collator,
        capabilities={"code": (code, "1.05x"), "chat": (chat, "+2pt")},
    )
    trainer.train()
    print(trainer.promises)

Any other Trainer likewise: `class ConstrainedSFTTrainer(Constrained, SFTTrainer)`. Without a limit in danger a step is
the plain Trainer's. Trainer fetches batches ahead, so what is replayed is drawn inside the step, by duals as they are.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import Trainer, TrainerCallback

from pdcl.integrations.hf_capabilities import Rows, prepared, read_capabilities
from pdcl.integrations.hf_checkpoints import last_whole, read_state, write_state
from pdcl.integrations.hf_constraints import Constraints, Replay
from pdcl.integrations.hf_inside import INSIDE, can_be_cut, checked_replay, without_last
from pdcl.integrations.hf_joined import joins, starts, without_last_joined
from pdcl.integrations.hf_outputs import Reader
from pdcl.integrations.hf_promises import judge
from pdcl.integrations.hf_ranks import FiniteLosses, ranks_of
from pdcl.judging.table import Promises

if TYPE_CHECKING:
    from transformers import Trainer as Base
else:
    Base = object


class Constrained(Base):  # type: ignore[misc]
    """Put before a Trainer class. capabilities: name → (dataset, limit); samples are held back, the rest is replayed.

    replay: "inside", as it is if nothing is said: old samples take the place of new ones in the batch, as many as their
    weight says. A number: so many are replayed beside a batch of all ranks; as many as it has where samples of a batch
    can't be told apart. constraints: options of `pdcl.PrimalDual`, such as {"base": 1, "dual_steps": 60, "guard": 200}.
    capability_collator: joins samples of capabilities, tokenised and with labels, where the trainer's own joins
    something else (pairs to prefer, as DPO's). All other arguments are the Trainer's.
    Limits in points are shares of wrong unmasked tokens, others are in loss: the mean over a sample's unmasked tokens.
    Before the first step that loss is compared with the model's own, or with compute_loss_func's, on one batch.
    """

    def __init__(
        self, *args: Any, capabilities: Any, replay: int | str | None = None, constraints: dict[str, Any] | None = None,
        capability_collator: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        stated = read_capabilities(capabilities)
        super().__init__(*args, **kwargs)
        self._ranks = ranks_of(self)
        batch, options = self.args.per_device_train_batch_size, constraints or {}
        # Several samples may be joined in one row.
        batch = max(2, batch) if joins(self.data_collator) else batch
        self._replay_size = checked_replay(replay, options, batch, self._ranks.world)
        self._chosen = replay is not None
        ready = stated if capability_collator is not None else [prepared(each, self) for each in stated]
        self.constraints = Constraints(ready, self.args.seed, options, self._ranks)
        tests = [each.test for each in ready if each.test is not None]
        datasets = [*(each.dataset for each in ready), *tests]
        given = [capability_collator] * len(datasets)
        rows = Rows.as_trained(datasets, self) if capability_collator is None else Rows(datasets, given)
        self._reader, self._finite = Reader(self, rows, self._ranks), FiniteLosses(self._ranks)
        self._share, self._resumed = 1.0, False
        self.add_callback(_Borders(self))

    @property
    def promises(self) -> Promises | None:
        """What became of the limits, on samples that training never saw; None before the end of `train`."""
        return self.constraints.promises

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        if resume_from_checkpoint is True:
            resume_from_checkpoint = last_whole(self.args.output_dir) or True
        found = super().train(resume_from_checkpoint, *args, **kwargs)
        if self.promises is not None and self._ranks.first:
            self.promises.warn(stacklevel=2)
        return found

    def _write_own(self) -> None:
        """Let the model write samples of self-made capabilities, unless a checkpoint or a training before has them."""
        for name, each in self.constraints.self_made.items():
            if not each.written:
                each.write(self.accelerator.unwrap_model(self.model), getattr(self, "processing_class", None))
            self._ranks.check_agreement(f"samples of {name!r}", torch.tensor(list(bytes.fromhex(each.digest))))

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        replay, inputs, num_items_in_batch = self._drawn(inputs, num_items_in_batch)
        self._share = 1.0 if replay is None else replay.share
        try:
            # Gradients are summed over ranks once, after the last pass of a step.
            with nullcontext() if replay is None else self.accelerator.no_sync(model):
                loss = super().training_step(model, inputs, num_items_in_batch) / self._share
        finally:
            self._share = 1.0
        losses = None if replay is None else self._replay(model, replay)
        self._finite.check(loss, losses, self.accelerator.sync_gradients, self.state.global_step)
        self.constraints.note(loss)
        return loss  # type: ignore[no-any-return]

    def _drawn(self, inputs: Any, items: Any) -> tuple[Replay | None, Any, Any]:
        """What is replayed in this step; what is left of the batch, and of the labels that its loss is divided by."""
        size, joined = self.args.per_device_train_batch_size, len(starts(inputs))
        if self._replay_size != INSIDE:
            return self.constraints.draw(int(self._replay_size)), inputs, items
        if joined < 2 and not self._chosen and not can_be_cut(size, inputs):
            return self.constraints.draw(size * self._ranks.world), inputs, items
        # Ranks draw together, and their batches may hold more or fewer joined samples.
        replay = self.constraints.draw_inside(joined if joined > 1 and self._ranks.world == 1 else size)
        if replay is None:
            return None, inputs, items
        few = len(replay.numbers)
        left = without_last_joined(few, inputs) if joined > 1 else without_last(few, size, inputs)
        if items is not None:
            was, now = (self._get_num_items_in_batch([each], self.args.device) for each in (inputs, left))
            items = items * now / was
        return replay, left, items

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
        found = super().compute_loss(model, inputs, return_outputs=return_outputs, **kwargs)
        if self._share == 1:
            return found
        return (self._share * found[0], found[1]) if return_outputs else self._share * found

    def _replay(self, model: Any, replay: Replay) -> Tensor:
        """Add the gradient of Σ_j w_j ℓ_j to that of the new loss. A pass of its own: no more memory than before."""
        with self.compute_loss_context_manager():
            goal, outputs, targets = self._reader(model, replay.numbers)
            losses = goal.loss(outputs, targets)
        total = (replay.weights.to(losses) * losses).sum()
        self.accelerator.backward(total / self.current_gradient_accumulation_steps)
        return losses.detach()

    def look(self, numbers: Tensor) -> Tensor:
        """Loss and error now of samples of the capabilities, numbered through: [n, 2]. Every rank must look."""
        return self._reader.look(self.model, numbers)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        super().log({**logs, **self.constraints.logs()} if "loss" in logs else logs, *args, **kwargs)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        state = self.constraints.state_dict()
        if self.args.should_save:
            write_state(output_dir, state)

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        # Every rank writes a file. The one that says that a checkpoint is whole comes after all of them.
        self._ranks.wait()

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        self.constraints.load_state_dict(read_state(checkpoint), checkpoint)
        self._resumed = True


class _Borders(TrainerCallback):  # type: ignore[misc]
    """Where training begins and ends, and where a step of the optimiser does."""

    def __init__(self, trainer: Constrained) -> None:
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trainer._write_own()
        # A resumed training may replay before it looks.
        self.trainer._reader.settle(self.trainer.model)
        if not self.trainer._resumed:
            self.trainer.constraints.begin(self.trainer.look, state.max_steps)
        self.trainer._resumed = False

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trainer.constraints.after_step(self.trainer.look)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        judge(self.trainer.constraints, self.trainer.look, self.trainer.model)


class ConstrainedTrainer(Constrained, Trainer):  # type: ignore[misc]
    """Hugging Face's Trainer with limits on what other capabilities may lose."""
