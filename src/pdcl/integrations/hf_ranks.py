"""Several ranks in one Hugging Face training: which are refused, and how they stop together."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pdcl.errors import Diverged, UsageError
from pdcl.networks import has_batch_statistics
from pdcl.ranks import ALONE, Ranks, present


def ranks_of(trainer: Any) -> Ranks:
    """The ranks that this trainer trains with; UsageError where limits can't be pursued with them."""
    if trainer.args.n_gpu > 1:
        raise UsageError(
            f"one process with {trainer.args.n_gpu} GPUs can't pursue limits; start one for each: torchrun "
            f"--nproc-per-node {trainer.args.n_gpu}"
        )
    if trainer.args.world_size == 1:
        return ALONE
    kind = trainer.accelerator.distributed_type.name
    if not kind.startswith("MULTI_") or trainer.get_tp_size() * trainer.get_cp_size() * trainer.get_sp_size() > 1:
        raise UsageError(
            f"limits are pursued with a whole model on every rank, not with {kind} or a divided one; start plain "
            "torchrun without fsdp, deepspeed and parallelism_config"
        )
    if trainer.args.ddp_static_graph:
        raise UsageError("ddp_static_graph=True has no place here: some steps replay and others don't; leave it out")
    if has_batch_statistics(trainer.model):
        raise UsageError("the model has batch statistics, which differ from rank to rank; use GroupNorm")
    return present()


class FiniteLosses:
    """Stops training where a loss isn't finite, on all ranks together and before the optimiser steps."""

    SOURCES = ("", "what is replayed", "the new data")

    def __init__(self, ranks: Ranks) -> None:
        self.ranks, self.bad = ranks, 0

    def check(self, loss: Tensor, losses: Tensor | None, last: bool, step: int) -> None:
        """loss: of the new data; losses: of what is replayed; last: the optimiser steps after this batch."""
        for source, each in ((1, losses), (2, loss)):
            if each is not None and not bool(each.isfinite().all()):
                self.bad = source
        if not last and not self.ranks.alone:
            return
        found, self.bad = self.ranks.largest(self.bad), 0
        if found:
            raise Diverged(
                f"the loss on {self.SOURCES[found]} isn't finite after step {step}; weights are as then: lower the rate"
            )
