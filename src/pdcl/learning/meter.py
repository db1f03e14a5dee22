"""The mean loss of the last steps, for events."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from pdcl.ranks import Ranks

AT_ONCE = 32


@dataclass
class Meter:
    """Averages losses on the device over several steps, so that not every step makes an event.

    Losses are collected and summed a few steps at a time, which is faster than one sum after each step.
    """

    total: Tensor | None = None
    count: int = 0
    _waiting: list[tuple[Tensor, int]] = field(default_factory=list)

    def add(self, losses: Tensor, samples: int, at_least: int, ranks: Ranks) -> float | None:
        """Take this rank's losses of a batch of so many samples; the mean since it last spoke, once that is over
        `at_least` steps."""
        self._waiting.append((losses, samples))
        self.count += 1
        if self.count < at_least:
            if len(self._waiting) == AT_ONCE:
                self.sum_up(ranks)
            return None
        total = self.sum_up(ranks)
        assert total is not None
        mean = float(ranks.mean(total)) / self.count
        self.total, self.count = None, 0
        return mean

    def sum_up(self, ranks: Ranks) -> Tensor | None:
        """The sum of all steps' means since it last spoke, as far as this rank has them; None: of no step."""
        for losses, samples in self._waiting:
            mean = ranks.batch_mean(losses, samples)
            self.total = mean if self.total is None else self.total + mean
        self._waiting.clear()
        return self.total
