"""Nearest class mean on frozen features: a sample belongs to the class whose mean feature is nearest.

    ŷ(x) = argmin_c ‖φ(x) − μ_c‖²,     μ_c = (1/n_c) Σ_{y_i = c} φ(x_i)

No sample is stored and nothing is trained: the means are exact whatever the order of tasks, so nothing is forgotten.
How good it is depends on the features φ alone.

Mensink, Verbeek, Perronnin, Csurka, "Distance-Based Image Classification", TPAMI 2013.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pdcl.errors import UsageError
from pdcl.lab.methods.refusals import only_classification
from pdcl.learning.batches import EVALUATION_BATCH, Batch, Step, batches
from pdcl.lifelong.learner import Learner
from pdcl.networks import eval_mode
from pdcl.streams.task import Spec, Task
from pdcl.trees import Tree

INPUTS = ("linear", "auto")
# The score of a class without samples: below all others, and finite.
UNSEEN = -1e30


@dataclass(eq=False)
class NCM(Learner):
    """Nearest class mean: features are the inputs themselves, or those of a trained network that stays as it is.

    network: a trained module, whose `features` (or outputs) are used; linear: the inputs themselves
    """

    network: nn.Module | str = "linear"

    persistent: ClassVar[tuple[str, ...]] = ("counts", "means", "fresh")
    unused: ClassVar[tuple[str, ...]] = (
        "lr", "optimizer", "weight_decay", "keep_optimizer", "scheduler", "clip_norm", "accumulate", "class_weights",
        "precision", "epochs",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, reason in self.without_effect({"network": self.network}).items():
            raise UsageError(f"{name}={self.network!r} has no effect {reason}")
        self.network = "linear" if isinstance(self.network, str) else self.network

    @classmethod
    def without_effect(cls, options: Mapping[str, Any]) -> dict[str, str]:
        """A network by name has weights that nobody trained: its features say nothing."""
        network = options.get("network", "linear")
        if isinstance(network, str) and network not in INPUTS:
            return {"network": f"on {cls.__name__}: it would stay untrained; give a trained module, or leave it out"}
        return {}

    def prepare(self, spec: Spec) -> None:
        only_classification(type(self).__name__.lower(), spec)
        super().prepare(spec)
        with torch.no_grad(), eval_mode(self.model):
            width = self.represent(spec.blank(1)).shape[1]
        self.begin_statistics(spec.outputs, width)
        self.fresh = torch.zeros(0, dtype=torch.bool)

    def begin_statistics(self, classes: int, width: int) -> None:
        """No sample seen: n_c = 0."""
        self.counts = torch.zeros(classes, dtype=torch.float64)
        self.means = torch.zeros(classes, width, dtype=torch.float64)
        self._head: tuple[Tensor, Tensor] | None = None

    def represent(self, raw: Tree) -> Tensor:
        """φ(x), (n, d) in float64 on the CPU: sums over a whole life lose nothing, and mps has no float64."""
        return self.penultimate(raw).detach().flatten(1).double().cpu()

    def begin(self, task: Task, steps: int) -> None:
        self.fresh = torch.ones(len(task.data), dtype=torch.bool)

    @torch.no_grad()
    def step(self, batch: Batch) -> Step:
        """Count the samples that this task didn't show before. The loss is ½‖φ − μ_y‖², which the means minimise."""
        with eval_mode(self.model):
            features = self.represent(batch.x)
        index, y = batch.index.cpu(), batch.y.cpu()
        new = self.fresh[index]
        if bool(new.any()):
            self.include(features[new], y[new])
            self.fresh[index] = False
            self._head = None
        return Step((features - self.means[y]).square().sum(1).div(2).float())

    def include(self, features: Tensor, y: Tensor) -> None:
        """μ_c ← μ_c + (n′_c / (n_c + n′_c)) (μ′_c − μ_c), for the n′_c samples of class c in this batch."""
        counts, means = class_means(features, y, len(self.counts))
        self.counts = self.counts + counts
        self.means = self.means + (counts / self.counts.clamp(min=1))[:, None] * (means - self.means)

    def absorb(self, task: Task) -> None:
        self.begin(task, 1)
        for batch in batches(task.data, task.index, EVALUATION_BATCH, torch.arange(len(task.data)), self.place):
            self.step(batch)
        self.end(task)

    def end(self, task: Task) -> None:
        self.fresh = torch.zeros(0, dtype=torch.bool)

    def grown(self, before: int) -> None:
        super().grown(before)
        assert self.spec is not None
        more = self.spec.outputs - len(self.counts)
        self.counts = torch.cat([self.counts, self.counts.new_zeros(more)])
        self.means = torch.cat([self.means, self.means.new_zeros(more, self.means.shape[1])])
        self._head = None

    def scores(self, raw: Tree) -> Tensor:
        """w_c·φ + b_c: largest for the predicted class, UNSEEN for one without samples."""
        if self._head is None:
            self._head = self.linear()
        weights, bias = self._head
        found = self.represent(raw) @ weights.T + bias
        return found.masked_fill(self.counts == 0, UNSEEN).float().to(self.place)

    def linear(self) -> tuple[Tensor, Tensor]:
        """w_c = μ_c and b_c = −½‖μ_c‖²: −½‖φ − μ_c‖² without what is the same for all classes."""
        return self.means, -self.means.square().sum(1) / 2

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._head = None

    def export(self, path: str | Path) -> Path:
        raise UsageError(
            f"export: {type(self).__name__} predicts by statistics of features, which the network alone doesn't have; "
            "save the learner instead"
        )


def class_means(features: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """n_c and μ_c of these samples; 0 for classes without any."""
    counts = torch.bincount(y, minlength=classes).double()
    sums = torch.zeros(classes, features.shape[1], dtype=torch.float64).index_add_(0, y, features)
    return counts, sums / counts.clamp(min=1)[:, None]
