"""Online elastic weight consolidation: parameters that past tasks depend on are held near their old values.

    L = ℓ(f(x), y) + λ Σ_j F_j (θ_j − θ*_j)²        F ← γ F + F_t,   θ* ← θ   after task t

    F_t = mean_i Σ_y p_θ(y|x_i) (∇ log p_θ(y|x_i))²     the diagonal of the Fisher information: `fisher="exact"`
    F_t = mean_i p_θ(y_i|x_i) (∇ log p_θ(y_i|x_i))²     only the label's term of that sum: `fisher="label"`

Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", PNAS 2017; online: Schwarz et al.,
"Progress & Compress", ICML 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pdcl.errors import UsageError
from pdcl.lab.methods.parameters import Named, add_pull, anchored, named_parameters, zeros
from pdcl.lab.methods.per_sample import chunk_size, per_sample_gradients
from pdcl.lab.methods.refusals import only_classification, only_tensors
from pdcl.learning.batches import Batch, Step
from pdcl.lifelong.learner import Learner
from pdcl.networks.heads import fitted
from pdcl.streams.data import Data, everything
from pdcl.streams.task import Spec, Task


@dataclass(eq=False)
class EWC(Learner):
    """Online EWC: no memory but one importance and one anchor per parameter.

    strength: λ, the weight of the penalty
    decay: γ, how much of the importance of earlier tasks is kept
    fisher: the expectation over predicted labels (exact), or only the label's term of it, K times cheaper (label)
    """

    strength: float = 10.0
    decay: float = 1.0
    fisher: str = "exact"

    # A gradient is edited as a whole, before each update.
    unused: ClassVar[tuple[str, ...]] = ("accumulate",)
    persistent: ClassVar[tuple[str, ...]] = ("importance", "anchor")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fisher not in ("exact", "label"):
            raise UsageError(f"fisher={self.fisher!r} is unknown; choose exact or label")
        if self.strength < 0 or not 0 <= self.decay <= 1:
            raise UsageError(f"strength={self.strength} must not be negative, decay={self.decay} lie in [0, 1]")

    def prepare(self, spec: Spec) -> None:
        only_classification("ewc", spec)
        only_tensors("ewc", spec)
        super().prepare(spec)
        self.importance: Named = {}
        self.anchor: Named = {}

    def begin(self, task: Task, steps: int) -> None:
        if self.anchor:
            self.importance = fitted(self.importance, zeros(self.model))
            self.anchor = fitted(self.anchor, anchored(self.model))

    def step(self, batch: Batch) -> Step:
        losses = self.losses(self.outputs(batch.x), batch.y)
        self.backward(losses)
        if self.anchor:
            add_pull(self.model, self.importance, self.anchor, self.strength)
        self.update()
        return Step(losses.detach())

    def end(self, task: Task) -> None:
        fresh = self.fisher_diagonal(task.data)
        old = self.importance or zeros(self.model)
        self.importance = {name: self.decay * old[name] + fresh[name] for name in fresh}
        self.anchor = anchored(self.model)

    def fisher_diagonal(self, data: Data) -> Named:
        """F_t over these samples, in eval mode and unaugmented."""
        assert self.spec is not None
        names = list(named_parameters(self.model))
        total = list(zeros(self.model).values())
        for index in everything(data).split(chunk_size(self.model)):
            x, y = data.fetch(index)
            squares = self._squares(self.spec.transform(x.to(self.place)), y.to(self.place))
            total = [a + b for a, b in zip(total, squares, strict=True)]
        return {name: value / len(data) for name, value in zip(names, total, strict=True)}

    def _squares(self, x: Tensor, labels: Tensor) -> list[Tensor]:
        """Σ_i Σ_y p(y|x_i) (∇ log p(y|x_i))², over all y or the labels alone."""
        with torch.no_grad():
            self.model.eval()
            likely: Tensor = self.model(x).float().softmax(1)
            self.model.train()
        every = range(likely.shape[1]) if self.fisher == "exact" else (None,)
        sums: list[Tensor] = []
        for y in every:
            target = labels if y is None else torch.full_like(labels, y)
            weights = likely.gather(1, target[:, None]).squeeze(1)
            surprise = partial(cross_entropy, reduction="none")  # −log p(y|x) of each sample
            squares = per_sample_gradients(self.model, x, target, surprise).squares(weights)
            sums = [a + b for a, b in zip(sums, squares, strict=True)] if sums else squares
        return sums
