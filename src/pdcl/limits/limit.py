"""One limit as it is judged: an absolute value, a rise above what was, or a multiple of what was."""

from __future__ import annotations

from dataclasses import dataclass

from pdcl.errors import UsageError


@dataclass(frozen=True)
class Limit:
    """What `now` may be at most. unit: "error" (an error rate in [0, 1]) or "loss". Exactly one of these:

        value alone        now ≤ value                      written 5% or 0.05
        rise               now ≤ then + rise                written +2pt: rise = 0.02; error rates only
        factor (, value)   now ≤ max(factor · then, value)  written 1.1x or 1.1x>=0.02; value is the floor

    written: the text that a user reads.
    """

    written: str
    unit: str = "error"
    value: float | None = None
    rise: float | None = None
    factor: float | None = None

    def __post_init__(self) -> None:
        if self.unit not in ("error", "loss"):
            raise UsageError(f'unit of limit {self.written} must be "error" or "loss", not {self.unit!r}')
        kinds = (self.value is not None and self.factor is None) + (self.rise is not None) + (self.factor is not None)
        if kinds != 1:
            raise UsageError(f"limit {self.written} must be one of: a value, a rise, a factor (with a floor as value)")
        if self.rise is not None and self.unit != "error":
            raise UsageError(f"limit {self.written} is a rise in points, which error rates have; unit is {self.unit!r}")

    @property
    def compares(self) -> bool:
        """Whether it needs what the same samples gave at the reference."""
        return self.value is None or self.factor is not None

    def of(self, then: float | None) -> float | None:
        """The limit as a number, None while the reference isn't known."""
        if not self.compares:
            return self.value
        if then is None:
            return None
        if self.rise is not None:
            return min(1.0, then + self.rise)
        assert self.factor is not None
        limit = max(self.factor * then, self.value or 0.0)
        return min(limit, 1.0) if self.unit == "error" else limit
