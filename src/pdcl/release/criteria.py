"""What is asked of a model: which limits, on which groups, under which assumptions."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pdcl.errors import UsageError
from pdcl.release.amounts import Stated, amount_of, amounts_of

CRITERIA = {
    "error": "error rate",
    "loss": "loss",
    "miss": "missed (1 − sensitivity)",
    "alarm": "false alarms (1 − specificity)",
    "drop": "drop against old",
    "since": "drop since learned",
}
# What compares with another state on the same samples.
PAIRED = ("drop", "since")
# Stated from below, and judged as what is missed.
FROM_BELOW = ("miss", "alarm")
OPTIONS = {
    "error": "--max-error",
    "loss": "--max-loss",
    "miss": "--min-sensitivity",
    "alarm": "--min-specificity",
    "drop": "--max-drop",
    "since": "--max-drop",
}


@dataclass(frozen=True)
class Criterion:
    """What may be at most `limit`; `special` has the limits of groups that have their own.

    clip: where losses are cut; None: as far from the limit as the number of samples allows (`judging.clipping`).
    """

    kind: str
    limit: float
    special: tuple[tuple[str, float], ...] = ()
    clip: float | None = None

    def __post_init__(self) -> None:
        for value in (self.limit, *(limit for _, limit in self.special)):
            if self.kind in PAIRED and value == 0:
                continue
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"a limit must be a positive number, not {value}: no data can certify 0")
            if self.kind != "loss" and value >= 1:
                raise UsageError(f"a limit of {value} is no error rate below 1; 5 % is 0.05")
            if self.clip is not None and value >= self.clip:
                raise UsageError(f"a limit of {value} must lie below the clip, {self.clip}: losses count up to it")

    def of(self, group: str) -> float:
        return dict(self.special).get(group, self.limit)

    def _stated(self, limit: float) -> float:
        """As the option has it: sensitivity instead of what is missed."""
        return round(1 - limit, 12) if self.kind in FROM_BELOW else limit

    def as_words(self) -> list[str]:
        """As options of `pdcl gate`."""
        words = [OPTIONS[self.kind], repr(self._stated(self.limit))]
        for name, value in self.special:
            words += ["--limit", f"{name}={self._stated(value)!r}"]
        return words + (["--clip", repr(self.clip)] if self.clip is not None else [])


def criteria_of(
    max_error: Stated | None = None,
    max_loss: Stated | None = None,
    min_sensitivity: Stated | None = None,
    min_specificity: Stated | None = None,
    limits: Mapping[str, Stated] | None = None,
    clip: float | None = None,
    max_drop: Stated | None = None,
    against: bool = False,
) -> tuple[Criterion, ...]:
    """What is asked, as limits from above: numbers, or as people write them (+2pt, 5%).

    A largest drop holds since each task was learned, and `against` another model where there is one.
    """
    stated = {
        "error": ("max_error", max_error), "loss": ("max_loss", max_loss), "miss": ("min_sensitivity", min_sensitivity),
        "alarm": ("min_specificity", min_specificity), "drop": ("max_drop", max_drop),
    }  # fmt: skip

    def from_above(kind: str, value: float) -> float:
        return round(1 - value, 12) if kind in FROM_BELOW else value

    chosen = {
        kind: from_above(kind, amount_of(value, name)) for kind, (name, value) in stated.items() if value is not None
    }
    clip = None if clip is None else amount_of(clip, "clip")
    if not chosen:
        raise UsageError("say what the limit is on: max_error, max_loss, min_sensitivity, min_specificity or max_drop")
    if against and "drop" not in chosen:
        raise UsageError("against has no effect without max_drop")
    if limits and len(chosen) > 1:
        raise UsageError("limits of single groups need one criterion; ask for one at a time")
    if clip is not None and "loss" not in chosen:
        raise UsageError("clip has no effect without max_loss")
    if clip is not None and clip <= 0:
        raise UsageError(f"clip={clip} must be positive: losses count up to it")
    only = next(iter(chosen))
    special = tuple(
        sorted((name, from_above(only, value)) for name, value in amounts_of(limits, stated[only][0]).items())
    )
    kinds = [(kind, limit) for kind, limit in chosen.items() if kind != "drop"]
    if "drop" in chosen:
        kinds += [("drop", chosen["drop"])] if against else []
        kinds += [("since", chosen["drop"])]
    return tuple(Criterion(kind, limit, special, clip if kind == "loss" else None) for kind, limit in kinds)


@dataclass(frozen=True)
class Asked:
    """A question, before any look. by: task, class, a column; None: all together. groups: what isn't independent."""

    criteria: tuple[Criterion, ...]
    by: str | None = None
    groups: str | None = None

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Asked:
        def criterion(each: Mapping[str, Any]) -> Criterion:
            special = tuple((name, limit) for name, limit in each["special"])
            return Criterion(each["kind"], each["limit"], special, each["clip"])

        return cls(tuple(criterion(each) for each in content["criteria"]), content["by"], content["groups"])

    def as_json(self) -> dict[str, Any]:
        return {"criteria": [asdict(each) for each in self.criteria], "by": self.by, "groups": self.groups}

    @property
    def paired(self) -> bool:
        """Whether anything is compared with another state."""
        return any(each.kind in PAIRED for each in self.criteria)

    def command(self, model: str, audit: str, against: str | None = None) -> str:
        """The command line that asks this."""
        asked = {OPTIONS[each.kind]: each.as_words() for each in self.criteria}
        words = [word for each in asked.values() for word in each]
        words += ["--against", against] if against is not None else []
        words += ["--by", self.by or "all", *(["--groups", self.groups] if self.groups else [])]
        return shlex.join(["pdcl", "gate", model, "--audit", audit, *words])

    def assumptions(self) -> list[str]:
        """What any answer rests on."""
        if self.groups is None:
            lines = ["Assumes independent samples; where several are of one patient or speaker, say so with groups."]
        else:
            text = "counts once, by the mean over its samples: the verdict is on that mean over groups"
            lines = [f"Assumes that groups ({self.groups}) are independent of each other; each {text}."]
        if self.paired:
            lines.append("Drops are of the same samples judged by both states; exact for every sample size.")
        return lines
