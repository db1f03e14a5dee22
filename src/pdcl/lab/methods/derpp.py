"""DER++: dark experience replay that also replays labels.

    L = ℓ(f(x), y) + α ‖f(x′) − z′‖² / K + β ℓ(f(x″), y″)

(x′, z′) and (x″, y″) are independent draws from a reservoir; each term is a mean over its batch.

Buzzega, Boschini, Porrello, Abati, Calderara, "Dark Experience for General Continual Learning", NeurIPS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lab.methods.der import DER


@dataclass(eq=False)
class DERpp(DER):
    """DER++: a second draw is replayed with its labels.

    beta: β, the weight of the replayed labels
    """

    beta: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta < 0:
            raise UsageError(f"beta={self.beta} must not be negative")

    def draws(self, m: int) -> list[Tensor]:
        return [self.held.draw(m, self.generator) for _ in range(2)]

    def rehearsed(self, draws: list[Tensor], outputs: list[Tensor]) -> Tensor:
        labelled = self.losses(outputs[1], self.held["y"][draws[1]]).mean()
        return super().rehearsed(draws, outputs) + self.beta * labelled
