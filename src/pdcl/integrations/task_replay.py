"""The core inside somebody else's training loop: a task is entered, its steps are weighed, then it is left.

    L = (ℓ̄ + Σ_j w_j ℓ_j) / (1 + Σ μ)

ℓ̄ is the loss that the loop computed itself, a mean over its batch; ℓ_j are losses of replayed samples and w_j their
weights, so that the sum is unbiased for Σ_k (b + λ_k) L_k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, Subset

from pdcl.errors import Diverged, UsageError
from pdcl.judging.table import Promises
from pdcl.learning.batches import seeded
from pdcl.learning.end_of_task import Ended
from pdcl.learning.primal_dual import PrimalDual
from pdcl.learning.progress import Moved
from pdcl.networks import eval_mode
from pdcl.streams.data import Data
from pdcl.streams.samples import read
from pdcl.trees import Tree, call, joined, logits_of, map_leaves, padded, split

PIECE = 1000


class TaskReplay:
    """What the adapters of other loops share.

    core: a `pdcl.PrimalDual`. replay: stored samples per step (None: as many as the batch has). seed: of what is held
    back. Targets are class indices, as the network's loss takes them.
    """

    def __init__(self, core: PrimalDual, replay: int | None = None, seed: int = 0) -> None:
        if core.choices.selection.by_dual:
            raise UsageError('selection by dual needs a loss per sample, which loops hide; use selection="uniform"')
        if replay is not None and replay < 1:
            raise UsageError(f"replay={replay} must be at least 1; leave it out to replay as many as the batch has")
        self.core, self.replay, self.seed = core, replay, seed
        self.samples_seen = 0
        self.ended: Ended | None = None
        self._task: tuple[str, Data] | None = None
        self._step: tuple[Tensor, int] | None = None

    @property
    def promises(self) -> Promises | None:
        """What became of every limit after the newest task; None where none is stated."""
        return None if self.ended is None else self.ended.promises

    def enter(self, name: str, dataset: Dataset[Any], network: nn.Module) -> Dataset[Any]:
        """A new task: the part of its data to train on. The rest is held back, to steer duals and to judge limits."""
        if self._task is not None:
            raise UsageError(f"task {self._task[0]!r} has been entered and not been learned; learn it first")
        self.core.serve(self.core.goal, device_of(network))
        samples = read(dataset, where=f"task {name!r}")
        if samples.targets.dtype.kind not in "iu":
            raise UsageError(f"task {name!r}: targets are {samples.targets.dtype}; give class indices")
        data = samples.data(torch.as_tensor(samples.targets).long())
        # As many tolerances as tasks learned before: the same draw as our own loop makes.
        generator = seeded(self.seed, len(self.core.tolerances), 3)
        trained = self.core.hold_back(data, generator, forward_of(network))
        self._task = name, data
        return dataset if trained is None else Subset(dataset, trained.tolist())

    def begin(self, samples: int, steps: int) -> None:
        """Training of the entered task starts: so many samples, so many batches in all."""
        if self._task is None:
            raise UsageError("no task was entered; call enter(name, dataset, network) and train on what it returns")
        self.core.begin(samples, steps)

    def total(self, loss: Tensor, n: int, network: nn.Module) -> Tensor:
        """The loss of n current samples with replayed ones beside it: what is to be differentiated."""
        if loss.numel() != 1:
            raise UsageError(f"the loss has shape {tuple(loss.shape)}; a mean over the batch is wanted, one number")
        if not bool(loss.isfinite()):
            raise Diverged(f"the loss became {float(loss)}; lower the learning rate")
        loss, drawn = loss.reshape(()), self.core.draw(self.replay or n)
        self._step = loss.detach(), n
        weights = self.core.weights(n, drawn)
        if drawn is None or weights is None:
            return loss
        terms = self.core.replayed(_outputs(network, self.core.past.inputs(drawn.slots)), drawn)
        return weights[:n].sum() * loss + (weights[n:].to(terms) * terms).sum()

    def after(self, network: nn.Module) -> Moved | None:
        """The optimiser has made its step: count it, and step the duals where that is due."""
        if self._step is None:
            return None
        (loss, n), self._step = self._step, None
        self.core.observe(torch.zeros(0, dtype=torch.long), loss.expand(n), n)
        return self.core.measure(forward_of(network)) if self.core.due() else None

    def leave(self, network: nn.Module) -> Ended:
        """The task is learned: memory is divided anew and filled, tolerances are set, promises judged."""
        assert self._task is not None
        (name, data), self._task = self._task, None
        self.ended = self.core.end(name, data, forward_of(network), self.samples_seen)
        self.samples_seen += len(data)
        return self.ended


def forward_of(network: nn.Module) -> Callable[[Tree], Tensor]:
    """Stored inputs to outputs: in eval mode, without gradients, in pieces."""

    @torch.no_grad()
    def forward(x: Tree) -> Tensor:
        with eval_mode(network):
            return joined([_outputs(network, part) for part in split(x, PIECE)])

    return forward


def _outputs(network: nn.Module, stored: Tree) -> Tensor:
    """Logits of stored inputs, which are brought to the network's device and precision."""
    like = next((p for p in network.parameters() if p.is_floating_point()), torch.zeros(0))

    def moved(leaf: Tensor) -> Tensor:
        return leaf.to(like.device, like.dtype if leaf.dtype.is_floating_point else leaf.dtype)

    return logits_of(call(network, map_leaves(moved, padded(stored))))


def device_of(network: nn.Module) -> torch.device:
    return next((p.device for p in network.parameters()), torch.device("cpu"))
