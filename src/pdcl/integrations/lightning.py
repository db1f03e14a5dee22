"""Limits on forgetting in a LightningModule's training: a callback that replays what the core draws.

    replay = DualReplay(pdcl.PrimalDual(memory=500, tolerance="+2pt"))
    for month, dataset in months:
        part = replay.enter(month, dataset, module)               # what to train on; the rest judges the limits
        Trainer(max_epochs=2, callbacks=[replay]).fit(module, DataLoader(part, batch_size=32, shuffle=True))
        print(replay.promises)

`training_step` stays as it is: it returns the mean loss of its batch, and `forward` gives logits. What is replayed is
drawn inside the step, by duals as they are then, although loaders fetch batches ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.integrations.task_replay import TaskReplay
from pdcl.trees import length


class DualReplay(TaskReplay, Callback):  # type: ignore[misc]
    """A Lightning callback; one `fit` learns one task. Duals and slacks are logged as `pdcl/dual/0`, `pdcl/slack/0`."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not pl_module.automatic_optimization:
            raise UsageError("manual optimisation hides the loss from callbacks; use pdcl.PrimalDual in training_step")
        if trainer.world_size > 1:
            raise UsageError(f"{trainer.world_size} processes: limits are pursued in one; set devices=1")
        batches, epochs = trainer.num_training_batches, trainer.max_epochs
        steps = None if not epochs or epochs < 0 or batches == float("inf") else int(batches) * epochs
        if trainer.max_steps > 0:
            most = trainer.max_steps * trainer.accumulate_grad_batches
            steps = most if steps is None else min(steps, most)
        if steps is None:
            raise UsageError("duals are paced over a task of known length; give the Trainer max_epochs or max_steps")
        self.begin(len(trainer.train_dataloader.dataset), steps)
        self._plain: Callable[..., Any] = pl_module.training_step
        pl_module.training_step = self._weighed(pl_module)

    def _weighed(self, module: LightningModule) -> Callable[..., Any]:
        """The module's own `training_step`, its loss with replayed samples beside it."""
        plain = self._plain

        def training_step(batch: Any, *rest: Any, **named: Any) -> Any:
            found = plain(batch, *rest, **named)
            loss = found["loss"] if isinstance(found, dict) else found
            if not isinstance(loss, Tensor):
                raise UsageError("training_step returned no loss; return the mean loss of the batch, or {'loss': …}")
            total = self.total(loss, _size(batch), module)
            return {**found, "loss": total} if isinstance(found, dict) else total

        return training_step

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *rest: Any) -> None:
        moved = self.after(pl_module)
        if moved is not None:
            for name, values in (("dual", moved.duals), ("slack", moved.slacks)):
                pl_module.log_dict({f"pdcl/{name}/{k}": value for k, value in enumerate(values)})

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._unwrap(pl_module)
        self.leave(pl_module)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._unwrap(pl_module)

    def _unwrap(self, module: LightningModule) -> None:
        module.__dict__.pop("training_step", None)

    def state_dict(self) -> dict[str, Any]:
        """For Lightning's checkpoints: the core with its memory, between or within tasks."""
        core = self.core
        return {
            "core": core.state_dict(), "memory": core.memory.state_dict(), "generator": core.generator.get_state(),
            "samples_seen": self.samples_seen,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.core.memory.load_state_dict(state_dict["memory"])
        self.core.load_state_dict(state_dict["core"])
        self.core.generator.set_state(state_dict["generator"])
        self.samples_seen = state_dict["samples_seen"]


def _size(batch: Any) -> int:
    """How many samples a batch has: rows of its first tensor."""
    return length(tuple(batch) if isinstance(batch, list) else batch)
