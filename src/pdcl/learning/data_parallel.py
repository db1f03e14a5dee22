"""What a learner does to train with several ranks: see `pdcl.ranks` for what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from pdcl.errors import UsageError
from pdcl.learning.batches import seeded
from pdcl.ranks import Ranks

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def check_ranks(learner: Learner, ranks: Ranks) -> None:
    """Refuse several ranks where `step` doesn't compute its rank's part alone, or batches are normalised as one."""
    if ranks.alone:
        return
    if not type(learner).__dict__.get("data_parallel", False):
        raise UsageError(f"{type(learner).__name__} doesn't train with several ranks; pdcl, er and finetune do")
    if learner.batch_statistics:
        raise UsageError("the network has batch statistics, which differ from rank to rank; use GroupNorm")


def replicated(learner: Learner) -> list[Tensor]:
    """What is the same on every rank."""
    held = [] if learner.store is None or not len(learner.store) else [learner.store["id"]]
    return [*learner.model.state_dict().values(), torch.tensor(learner.final_duals(), dtype=torch.float64), *held]


def own_generator(learner: Learner) -> torch.Generator:
    """What augmentation draws from: of several ranks each has its own, since their parts may differ in size."""
    if learner.spec is None or not learner.spec.transform.augments:
        return learner.generator
    return seeded(int(torch.randint(2**62, (), generator=learner.generator)), learner.peers.rank)


class Averaged:
    """The network that is trained, with gradients that are means over ranks; wrapped when it is first asked for."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self.of: nn.Module | None = None
        self.wrapped: nn.Module | None = None

    def network(self, model: nn.Module) -> nn.Module:
        if self.wrapped is None or self.of is not model:
            self.of, self.wrapped = model, self.ranks.parallel(model)
        return self.wrapped
