"""iCaRL: exemplars by herding, distillation of past outputs, prediction by the nearest class mean.

    L = mean over samples and outputs c of BCE(f_c(x), t_c)     t_c = σ(f_old,c(x)) for past classes, [y = c] for others

Exemplars are mixed into the training data. A sample belongs to the class whose exemplars' mean feature is nearest, all
features being of unit length.

Rebuffi, Kolesnikov, Sperl, Lampert, "iCaRL: Incremental Classifier and Representation Learning", CVPR 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, normalize, one_hot

from pdcl.algorithm.partition import uniform_partition
from pdcl.algorithm.selection import herding
from pdcl.lab.methods.even_shares import task_rows
from pdcl.lab.methods.refusals import only_classification, only_tensors
from pdcl.learning.batches import EVALUATION_BATCH, Batch, Step
from pdcl.methods.replay import Remembering
from pdcl.streams.data import Data, TensorData
from pdcl.streams.task import Spec, Task

# Squared distances of unit vectors are at most 4.
BEYOND_ALL = -5.0


@dataclass(eq=False)
class ICaRL(Remembering):
    """iCaRL: memory holds exemplars, the same number per class, which also define the classes when predicting."""

    # Its loss is its own, without a weight for each sample.
    unused: ClassVar[tuple[str, ...]] = ("class_weights",)
    persistent: ClassVar[tuple[str, ...]] = ("samples_seen", "past", "seen", "old")

    def prepare(self, spec: Spec) -> None:
        only_classification("icarl", spec)
        only_tensors("icarl", spec)
        super().prepare(spec)
        self.past: list[int] = []
        self.seen: list[int] = []
        self.old: dict[str, Tensor] = {}
        self._means: Tensor | None = None

    def mix(self, task: Task) -> Data | None:
        return TensorData(self.held["x"].cpu(), self.held["y"].cpu()) if len(self.held) else None

    def begin(self, task: Task, steps: int) -> None:
        self.past = sorted({*self.seen} - {*task.classes})
        self.seen = sorted({*self.seen, *task.classes})
        if self.past:
            self.old = {name: value.clone() for name, value in self.model.state_dict().items()}

    def step(self, batch: Batch) -> Step:
        assert self.spec is not None
        x = self.spec.transform(batch.x, self.generator)
        outputs: Tensor = self.model(x).float()
        targets = one_hot(batch.y, outputs.shape[1]).float()
        if self.past:
            targets[:, self.past] = self.old_outputs(x)[:, self.past].sigmoid()
        losses = binary_cross_entropy_with_logits(outputs, targets, reduction="none").mean(1)
        self.descend(losses)
        self._means = None
        return Step(losses.detach())

    @torch.no_grad()
    def old_outputs(self, x: Tensor) -> Tensor:
        """What the network before this task makes of these inputs."""
        self.model.eval()
        outputs: Tensor = torch.func.functional_call(self.model, self.old, (x,))
        self.model.train()
        return outputs.float()

    def end(self, task: Task) -> None:
        self.model.eval()
        self.fill(task)
        self.model.train()
        self._means = None
        super().end(task)

    @torch.no_grad()
    def fill(self, task: Task) -> None:
        """Equal shares for all classes of all tasks: old ones keep their first exemplars, new ones are herded."""
        held = self.held
        held.allocate(**task_rows(self, task, torch.zeros(1, dtype=torch.long)))
        groups, group_of = torch.stack([held["task"], held["y"]]).unique(dim=1, return_inverse=True)
        old = [(group_of == g).nonzero().flatten() for g in range(groups.shape[1])]
        new = [(task.data.targets == c).nonzero().flatten() for c in task.data.targets.unique()]
        available = [len(each) for each in (*old, *new)]
        shares = uniform_partition(len(available), held.capacity, available)
        kept = [slots[:share] for slots, share in zip(old, shares, strict=False)]
        chosen = [self._herded(task.data, each, share) for each, share in zip(new, shares[len(old) :], strict=True)]
        none = torch.zeros(0, dtype=torch.long)
        held.replace(torch.cat([none, *kept]), **task_rows(self, task, torch.cat([none, *chosen])))

    def _herded(self, data: Data, members: Tensor, share: int) -> Tensor:
        features = [self._unit(data.fetch(index)[0].to(self.place)) for index in members.split(EVALUATION_BATCH)]
        return members[herding(torch.cat(features), share).cpu()]

    def _unit(self, raw: Tensor) -> Tensor:
        return normalize(self.penultimate(raw).flatten(1))

    def scores(self, raw: Tensor) -> Tensor:
        """−‖φ(x) − μ_c‖², and less than any distance for classes without exemplars; outputs before there are any."""
        if not len(self.held):
            return super().scores(raw)
        if self._means is None:
            self._means = self.class_means()
        distances = torch.cdist(self._unit(raw), self._means).square()
        return (-distances).masked_fill(self._means.isnan().any(1), BEYOND_ALL)

    def class_means(self) -> Tensor:
        """μ_c, classes × features; NaN for a class without exemplars. Mirror images count where they train too."""
        assert self.spec is not None
        x, y = self.held["x"], self.held["y"]
        features = torch.cat([self._unit(part) for part in x.split(EVALUATION_BATCH)])
        if self.spec.transform.flip:
            features = features + torch.cat([self._unit(part.flip(-1)) for part in x.split(EVALUATION_BATCH)])
        sums = torch.zeros(self.spec.outputs, features.shape[1], device=features.device).index_add_(0, y, features)
        counts = torch.bincount(y, minlength=self.spec.outputs)
        return normalize(sums / counts.clamp(min=1)[:, None]).masked_fill(counts[:, None] == 0, torch.nan)
