"""A reservoir (Vitter's Algorithm R, 1985): every sample ever offered is held with the same probability.

Late in a stream nearly every sample is dropped. So the samples to keep are drawn for a block of coming samples at once,
and a batch of which none is kept costs one lookup in a short list.
"""

from bisect import bisect_left
from typing import Any

import torch
from torch import Generator, Tensor

BLOCK = 1024


def reservoir_writes(seen: int, count: int, capacity: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Of the next `count` samples after `seen`: the numbers of those that are kept, and the slot each goes to.

    Sample number i (from 0) takes slot i while there is room, then slot j ~ U{0, …, i} if j < capacity.
    """
    number = torch.arange(seen, seen + count, device=generator.device)
    u = torch.rand(count, dtype=torch.float64, generator=generator, device=generator.device)
    slots = torch.where(number < capacity, number, (u * (number + 1)).long())
    kept = slots < capacity
    return number[kept], slots[kept]


class Reservoir:
    """How many samples were offered, and which of the coming ones go where, as far as that is decided."""

    def __init__(self) -> None:
        self.seen = 0
        self.decided = 0
        self.numbers: list[int] = []
        self.slots: list[int] = []

    def pass_by(self, count: int) -> bool:
        """Count the next `count` samples as offered, if it is decided already that none of them is kept."""
        after = self.seen + count
        if after > self.decided or (self.numbers and self.numbers[0] < after):
            return False
        self.seen = after
        return True

    def offer(self, count: int, capacity: int, generator: Generator) -> tuple[Tensor, Tensor] | None:
        """The next `count` samples: (positions among them, slots they go to), or None where none is kept.

        Of several writes to one slot only the last is returned, which is what writing one by one leaves behind.
        """
        start, self.seen = self.seen, self.seen + count
        if self.seen > self.decided:
            self._decide(max(BLOCK, self.seen - self.decided), capacity, generator)
        now = bisect_left(self.numbers, self.seen)
        if not now:
            return None
        last = dict(zip(self.slots[:now], self.numbers[:now], strict=True))
        del self.slots[:now], self.numbers[:now]
        return torch.tensor([number - start for number in last.values()]), torch.tensor([*last])

    def _decide(self, count: int, capacity: int, generator: Generator) -> None:
        numbers, slots = reservoir_writes(self.decided, count, capacity, generator)
        self.decided += count
        self.numbers += numbers.tolist()
        self.slots += slots.tolist()

    def forget_decisions(self) -> None:
        """The capacity has changed: what was decided ahead for the old one is decided anew."""
        self.decided, self.numbers, self.slots = self.seen, [], []

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen, "decided": self.decided, "numbers": self.numbers[:], "slots": self.slots[:]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """A state that has only `seen` is one that has decided nothing ahead."""
        self.seen = state["seen"]
        self.decided = state.get("decided", self.seen)
        self.numbers, self.slots = list(state.get("numbers", [])), list(state.get("slots", []))
