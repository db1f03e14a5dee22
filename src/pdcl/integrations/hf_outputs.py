"""Loss and error of samples of the capabilities, from a trainer's model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.integrations.hf_capabilities import Rows
from pdcl.integrations.hf_own_loss import find_reading
from pdcl.integrations.hf_readings import LABELS, Reading
from pdcl.limits.limits import judged
from pdcl.objective import Objective, no_error_rate
from pdcl.ranks import ALONE, Ranks

# Samples that tell how losses are read; more than one, so that a collator that joins them is seen.
FEW = 8


class Reader:
    """Runs a trainer's model on samples of the capabilities, and says by what its outputs are judged."""

    def __init__(self, trainer: Any, rows: Rows, ranks: Ranks = ALONE) -> None:
        self.trainer, self.rows, self.args, self.ranks = trainer, rows, trainer.args, ranks
        self.reading: Reading | None = None

    def __call__(self, model: Any, numbers: Tensor) -> tuple[Objective, Any, Tensor]:
        """The objective, and the outputs and targets to give it."""
        assert self.reading is not None
        return (self.reading.objective, *self.reading(model, self._inputs(numbers)))

    def _inputs(self, numbers: Tensor) -> dict[str, Any]:
        inputs = dict(self.trainer._prepare_inputs(self.rows.batch(numbers)))
        if inputs.get(LABELS) is None:
            found = ", ".join(inputs) or "nothing"
            raise UsageError(f"a capability's batch has no {LABELS!r}, only {found}; let dataset or collator add them")
        return inputs

    def settle(self, model: Any) -> None:
        """Find out how losses are read, unless it is known: on a batch of each capability, before anything is measured.

        It depends on the model and on the samples alone, so that a resumed training finds the same.
        """
        if self.reading is not None:
            return
        capabilities = self.trainer.constraints.capabilities
        with self._undisturbed(model):
            found = {each.name: self._found(model, k, each.name) for k, each in enumerate(capabilities)}
        if len(set(found.values())) > 1:
            ways = ", ".join(f"{name!r} as {reading}" for name, reading in found.items())
            raise UsageError(f"capabilities are read in different ways, {ways}: give all of them labels of one kind")
        reading = next(iter(found.values()))
        for k, each in enumerate(capabilities):
            if reading.objective.error is no_error_rate and judged(each.limit, k).unit == "error":
                raise UsageError(
                    f"capability {each.name!r} has no error rate, but a squared error; write a limit in loss"
                )
        self.reading = reading

    def _found(self, model: Any, k: int, name: str) -> Reading:
        """From the first batch that has a label which isn't masked."""
        places = torch.arange(len(self.rows.datasets[k])) + self.rows.first[k]
        for part in places.split(max(2, min(FEW, self.args.eval_batch_size))):
            torch.manual_seed(self.args.seed)
            found = find_reading(self.trainer, model, self._inputs(part), len(part), name)
            if found is not None:
                return found
        raise UsageError(
            f"capability {name!r}: no sample has a finite loss; give labels other than -100 and finite weights"
        )

    def look(self, model: Any, numbers: Tensor) -> Tensor:
        """Loss and error of each sample in eval mode, [n, 2]; an error of NaN where there is none.

        A collator may mask at random: it starts from the same seed at every look, so that changes are the model's.
        Batches are those of one process, dealt out to the ranks; every rank gets all values, so every rank must look.
        """
        self.settle(model)
        found = torch.zeros(len(numbers), 2, dtype=torch.float64)
        owners = self.rows.owners(numbers)
        with self._undisturbed(model):
            for part in self._batches(owners)[self.ranks.rank :: self.ranks.world]:
                torch.manual_seed(self.args.seed)
                goal, outputs, targets = self(model, numbers[part])
                loss = goal.loss(outputs, targets)
                rated = goal.error is not no_error_rate
                error = goal.error(outputs, targets) if rated else torch.full_like(loss, torch.nan)
                found[part] = torch.stack([loss, error], 1).double().cpu()
        return self.ranks.sum(found)

    @contextmanager
    def _undisturbed(self, model: Any) -> Iterator[None]:
        """Eval mode without gradients; training goes on as if nobody had looked."""
        was = model.training
        model.eval()
        try:
            with torch.no_grad(), torch.random.fork_rng([self.args.device] if self.args.device.type == "cuda" else []):
                yield
        finally:
            model.train(was)

    def _batches(self, owners: Tensor) -> list[Tensor]:
        """Places in `owners`, each batch of one capability."""
        places = [(owners == k).nonzero().flatten() for k in owners.unique()]
        return [part for each in places for part in each.split(self.args.eval_batch_size)]
