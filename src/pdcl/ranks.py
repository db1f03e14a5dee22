"""The processes of one data-parallel training: the one place that knows of torch.distributed.

Every rank makes the same global draws from the same generator and computes its part of them. A number that ranks hold
in parts is kept so that its *mean over ranks* is the value one process would have; that is also how
DistributedDataParallel joins gradients, and it lets a state be taken over by another number of ranks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256

import torch
from torch import Tensor, nn
from torch import distributed as dist

from pdcl.errors import RanksDisagree, UsageError


@dataclass(frozen=True)
class Ranks:
    """Rank `rank` of `world`. Alone, nothing is communicated."""

    rank: int = 0
    world: int = 1
    alone: bool = field(init=False)

    def __post_init__(self) -> None:
        # A plain attribute: every step asks for it several times.
        object.__setattr__(self, "alone", self.world == 1)

    @property
    def first(self) -> bool:
        """Whether this rank writes and speaks for all."""
        return self.rank == 0

    @property
    def own_numbers(self) -> tuple[int, ...]:
        """What to add to a seed for randomness that ranks must not share: nothing for rank 0."""
        return () if self.first else (self.rank,)

    def part(self, n: int, backwards: bool = False) -> slice:
        """This rank's part of n things. Backwards: the larger parts go to the other ranks.

        >>> [Ranks(rank, 4).part(10) for rank in range(4)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 7, None), slice(7, 10, None)]
        """
        place = self.world - 1 - self.rank if backwards else self.rank
        return slice(place * n // self.world, (place + 1) * n // self.world)

    def batch_mean(self, values: Tensor, total: int) -> Tensor:
        """This rank's term of the mean over a batch of `total`: world · Σ_local v_i / total."""
        return values.mean() if self.alone else values.sum() * (self.world / total)

    def mean(self, value: Tensor) -> Tensor:
        """The mean over ranks."""
        return value if self.alone else self._reduced(value, dist.ReduceOp.SUM) / self.world

    def sum(self, value: Tensor) -> Tensor:
        return value if self.alone else self._reduced(value, dist.ReduceOp.SUM)

    def largest(self, number: int) -> int:
        return number if self.alone else int(self._reduced(torch.tensor(number), dist.ReduceOp.MAX))

    def whole(self, values: Tensor, total: int) -> Tensor:
        """All `total` values along the last dimension, of which this rank has its `part`."""
        if self.alone:
            return values
        found = values.new_zeros(*values.shape[:-1], total)
        found[..., self.part(total)] = values
        return self.sum(found)

    def spread(self, look: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """`look` maps numbers of samples to a row each: every rank looks at its part, all get all rows."""
        if self.alone:
            return look

        def shared(numbers: Tensor) -> Tensor:
            if len(numbers) < self.world:
                return look(numbers)
            return self.whole(look(numbers[self.part(len(numbers))]).T, len(numbers)).T

        return shared

    def parallel(self, model: nn.Module) -> nn.Module:
        """The same weights in a module whose gradients are means over ranks."""
        if self.alone or not any(p.requires_grad for p in model.parameters()):
            return model
        return nn.parallel.DistributedDataParallel(model)

    def wait(self) -> None:
        """Until all ranks are here."""
        if not self.alone:
            dist.barrier()

    def check_agreement(self, what: str, *tensors: Tensor) -> None:
        """Raise RanksDisagree unless all ranks hold these very tensors."""
        if self.alone:
            return
        digest = sha256(b"".join(t.detach().cpu().contiguous().numpy().tobytes() for t in tensors)).digest()
        own = torch.tensor(list(digest[:16]), dtype=torch.int64)
        if not torch.equal(self._reduced(own.clone(), dist.ReduceOp.MAX), -self._reduced(-own, dist.ReduceOp.MAX)):
            raise RanksDisagree(
                f"ranks no longer hold the same {what}; use the same hardware, versions and data on all of them, "
                "and resume from the last checkpoint"
            )

    def _reduced(self, value: Tensor, operation: dist.ReduceOp.RedOpType) -> Tensor:
        found = _sendable(value.detach().clone())
        dist.all_reduce(found, operation)
        return found.to(value.device)


def _sendable(value: Tensor) -> Tensor:
    """The value where the ranks' backend can send it."""
    return value.cuda() if dist.get_backend() == "nccl" else value


ALONE = Ranks()


def present() -> Ranks:
    """The ranks of this process's group; alone where there is none."""
    if dist.is_available() and dist.is_initialized():
        return Ranks(dist.get_rank(), dist.get_world_size())
    return ALONE


@contextmanager
def joined() -> Iterator[Ranks]:
    """The group that `torchrun` describes in the environment, or the one that exists; left again if entered here."""
    started = int(os.environ.get("WORLD_SIZE", "1")) > 1 and present().alone
    if started:
        _enter()
    try:
        yield present()
    finally:
        if started:
            dist.destroy_process_group()


def _enter() -> None:
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise UsageError(
            f"WORLD_SIZE={os.environ['WORLD_SIZE']} without {', '.join(missing)}; start ranks with torchrun"
        )
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if cuda else "gloo")
