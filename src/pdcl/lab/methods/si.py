"""Synaptic intelligence: a parameter's importance is how much its movement lowered the loss.

    L = ℓ(f(x), y) + c Σ_j Ω_j (θ_j − θ*_j)²

    every step      ω_j += −g_j Δθ_j                            g = ∇ℓ; Σ_j ω_j tends to the decrease of ℓ
    after a task    Ω_j += ω_j / ((θ_j − θ*_j)² + ξ),  θ* ← θ,  ω ← 0

Zenke, Poole, Ganguli, "Continual Learning Through Synaptic Intelligence", ICML 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from pdcl.errors import UsageError
from pdcl.lab.methods.parameters import add_pull, anchored, named_parameters, zeros
from pdcl.learning.batches import Batch, Step
from pdcl.lifelong.learner import Learner
from pdcl.networks.heads import fitted
from pdcl.streams.task import Spec, Task


@dataclass(eq=False)
class SI(Learner):
    """SI: no memory but an importance, an anchor and a running account per parameter.

    strength: c, the weight of the penalty
    damping: ξ, which bounds the importance of parameters that hardly moved
    clip: each entry of the gradient, penalty included, is cut to ± this much (0: not at all)
    """

    strength: float = 0.5
    damping: float = 1.0
    clip: float = 1.0

    # A gradient is edited as a whole, before each update.
    unused: ClassVar[tuple[str, ...]] = ("accumulate",)
    persistent: ClassVar[tuple[str, ...]] = ("importance", "anchor", "path")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.strength < 0 or not self.damping > 0 or self.clip < 0:
            raise UsageError(
                f"strength={self.strength} and clip={self.clip} must not be negative, damping={self.damping} positive"
            )

    def prepare(self, spec: Spec) -> None:
        super().prepare(spec)
        self.importance, self.path = zeros(self.model), zeros(self.model)
        self.anchor = anchored(self.model)

    def begin(self, task: Task, steps: int) -> None:
        self.importance, self.path = fitted(self.importance, zeros(self.model)), fitted(self.path, zeros(self.model))
        self.anchor = fitted(self.anchor, anchored(self.model))

    def step(self, batch: Batch) -> Step:
        losses = self.losses(self.outputs(batch.x), batch.y)
        self.backward(losses)
        parameters = named_parameters(self.model)
        gradient = {name: p.grad.clone() for name, p in parameters.items() if p.grad is not None}
        before = {name: p.detach().clone() for name, p in parameters.items()}
        add_pull(self.model, self.importance, self.anchor, self.strength)
        if self.clip:
            torch.nn.utils.clip_grad_value_(parameters.values(), self.clip)
        self.update()
        for name, g in gradient.items():
            self.path[name].addcmul_(g, before[name] - parameters[name].detach())
        return Step(losses.detach())

    def end(self, task: Task) -> None:
        now = anchored(self.model)
        self.importance = {
            name: self.importance[name] + self.path[name] / ((now[name] - self.anchor[name]).square() + self.damping)
            for name in now
        }
        self.anchor, self.path = now, zeros(self.model)
