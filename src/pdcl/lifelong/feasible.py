"""On a broken limit go back towards the old weights, as far as it takes: θ_old + s (θ_new − θ_old) for at most five s.

The candidates are judged on guards, or on stored samples where a task has no guards. Witnesses are not looked at: they
say afterwards, in the table, what became of the one that was chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

SHARES = (1.0, 0.9, 0.75, 0.5, 0.0)
STORED, NOTHING = "stored samples", "nothing"
# Stored samples are learned by heart: a network that lost the rest of a task still gets these right.
DOUBT = "these were trained on, so they show little; guard=50, or a memory from 1,000 places on, holds some back"


@dataclass(frozen=True)
class Chosen:
    """share: s of the candidate that the network has now. kept: whether it keeps all limits on what judged it.

    over: of every candidate that was tried, by how much its worst limit was exceeded, in the unit of that limit.
    judged_on: "guards", "stored samples", or "nothing" where no past task has a limit.
    """

    share: float
    kept: bool
    over: tuple[float, ...]
    judged_on: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"over": list(self.over)}

    @property
    def sentence(self) -> str:
        """What a user should know; empty where the new weights keep all limits on guards, or there are none.

        >>> Chosen(0.75, True, (0.2, 0.1, 0.0), "guards").sentence
        'went 0.75 of the way to the new weights: the rest would break a limit on guards'
        """
        if not self.kept:
            return f"none of {len(self.over)} candidates keeps all limits on {self.judged_on}: the new weights stay"
        if self.judged_on != STORED:
            return "" if self.share == 1 else self._way
        return f"{'the new weights keep all limits on stored samples' if self.share == 1 else self._way}; {DOUBT}"

    @property
    def _way(self) -> str:
        return f"went {self.share:g} of the way to the new weights: the rest would break a limit on {self.judged_on}"


class Between:
    """The weights of a network before a task."""

    def __init__(self, model: nn.Module) -> None:
        self.old = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def settle(self, model: nn.Module, excess: Callable[[], Tensor], judged_on: str) -> Chosen:
        """Leave the network at the largest s that keeps all limits, or as it is where none does.

        excess: how far each limit is exceeded with the weights that the network has; NaN for none.
        """
        new = {name: value.detach().clone() for name, value in model.state_dict().items()}
        over: list[float] = []
        for share in SHARES:
            model.load_state_dict(mixed(self.old, new, share))
            found = excess()
            measured = found[~found.isnan()].tolist()
            over.append(max([0.0, *measured]))
            if over[-1] == 0:
                return Chosen(share, True, tuple(over), judged_on if measured else NOTHING)
        model.load_state_dict(new)
        return Chosen(1.0, False, tuple(over), judged_on)


def mixed(old: dict[str, Tensor], new: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """θ_old + s (θ_new − θ_old); what isn't a number with a fraction, such as a count of batches, is the new one."""
    if share == 1:
        return new
    return {
        name: value if not value.is_floating_point() else torch.lerp(old[name], value, share)
        for name, value in new.items()
    }
