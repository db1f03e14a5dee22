"""A log as items: each was asked once or several times, and has one score in [0, 1]."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdcl.errors import UsageError
from pdcl.given import short

Key = tuple[str, str]


class LogError(UsageError):
    """A log that can't be read as it is; the message names the file, the place and the way out."""


@dataclass(frozen=True)
class Answer:
    """One answer to one item. epoch: tells several answers to one item apart. prompt: what was asked, or its hash."""

    task: str
    id: str
    score: float
    where: str
    epoch: str | None = None
    prompt: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Item:
    """score: the mean over its answers."""

    score: float
    answers: int
    prompt: str | None
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Log:
    """Items by (task, id). files: sha256 by name."""

    items: dict[Key, Item]
    files: dict[str, str]

    @property
    def hash(self) -> str:
        """Of what was asked and how it scored, whatever the order and the names of files."""
        content = [[*key, item.score, item.answers, item.prompt] for key, item in sorted(self.items.items())]
        return digest(content)


def as_items(answers: Iterable[Answer]) -> dict[Key, Item]:
    """Answers gathered by item. An item that comes twice without epochs to tell its answers apart is refused."""
    held: dict[Key, dict[str | None, Answer]] = {}
    for each in answers:
        mine = held.setdefault((each.task, each.id), {})
        if each.epoch in mine:
            raise LogError(
                f"{each.where}: id {each.id!r} of task {each.task!r} stands twice (first: {mine[each.epoch].where}); "
                "several answers to an item need a column that tells them apart: --columns epoch=NAME"
            )
        mine[each.epoch] = each
    return {key: _item(key, list(mine.values())) for key, mine in held.items()}


def _item(key: Key, answers: list[Answer]) -> Item:
    prompts = {each.prompt for each in answers}
    if len(prompts) > 1:
        raise LogError(f"{answers[0].where}: id {key[1]!r} of task {key[0]!r} has other prompts in other answers")
    return Item(float(np.mean([a.score for a in answers])), len(answers), prompts.pop(), answers[0].columns)


def score_of(value: Any, where: str) -> float:
    """A score in [0, 1]: a number, or right and wrong."""
    if isinstance(value, str):
        words = {"true": 1.0, "false": 0.0, "c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0}
        try:
            value = words[value.strip().lower()] if value.strip().lower() in words else float(value)
        except ValueError:
            raise LogError(f"{where}: the score {short(value)} is no number in [0, 1]") from None
    if not isinstance(value, int | float | np.number | np.bool_) or not math.isfinite(value) or not 0 <= value <= 1:
        raise LogError(
            f"{where}: the score {short(value)} is no number in [0, 1]; choose another column, or scale it first"
        )
    return float(value)


def digest(content: Any) -> str:
    """sha256 of a JSON value."""
    return hashlib.sha256(
        json.dumps(content, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")
    ).hexdigest()
