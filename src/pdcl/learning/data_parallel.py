"""What a learner does to train with several ranks: see `pdcl.ranks` for what they share."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from pdcl.errors import UsageError
from pdcl.learning.batches import seeded
from pdcl.past.store import Memory
from pdcl.ranks import ALONE, Ranks
from pdcl.streams.task import Spec


class Spread:
    """The part of a learner that deals with several ranks."""

    model: nn.Module
    generator: torch.Generator
    store: Memory | None
    spec: Spec | None
    batch_statistics: bool

    # Whether `step` computes its rank's part alone. A subclass with another step must say so for itself.
    data_parallel: ClassVar[bool] = False

    def stay_alone(self) -> None:
        """Train in this process only, until `spread_over`."""
        self.peers = ALONE
        self._parallel: nn.Module | None = None

    def final_duals(self) -> list[float]:
        """λ_k of every past task at the end of a task, then the artificial one; [] where a method has none."""
        return []

    def spread_over(self, ranks: Ranks) -> None:
        """Train with these ranks from now on; call it after `prepare`."""
        if not ranks.alone:
            if not type(self).__dict__.get("data_parallel", False):
                raise UsageError(f"{type(self).__name__} doesn't train with several ranks; pdcl, er and finetune do")
            if self.batch_statistics:
                raise UsageError("the network has batch statistics, which differ from rank to rank; use GroupNorm")
        self.peers, self._parallel = ranks, None

    def replicated(self) -> list[Tensor]:
        """What is the same on every rank."""
        held = [] if self.store is None or not len(self.store) else [self.store["id"]]
        return [*self.model.state_dict().values(), torch.tensor(self.final_duals(), dtype=torch.float64), *held]

    def synchronise(self) -> None:
        """Let every rank hold what one process would, where ranks hold parts of a number."""

    def _augmenting(self) -> torch.Generator:
        """What augmentation draws from: of several ranks each has its own, since their parts may differ in size."""
        if self.peers.alone or self.spec is None or not self.spec.transform.augments:
            return self.generator
        return seeded(int(torch.randint(2**62, (), generator=self.generator)), self.peers.rank)

    def _trained_model(self) -> nn.Module:
        """The network, with gradients that are means over ranks."""
        if self.peers.alone:
            return self.model
        if getattr(self._parallel, "module", self._parallel) is not self.model:
            self._parallel = self.peers.parallel(self.model)
        assert self._parallel is not None
        return self._parallel

    def even_weights(self, losses: Tensor, total: int) -> Tensor | None:
        """The weights of a mean over `total` samples of all ranks, these among them."""
        return None if self.peers.alone else torch.full_like(losses, self.peers.world / total)
