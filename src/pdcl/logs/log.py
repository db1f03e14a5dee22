"""A log as items: each was asked once or several times, and has one score in [0, 1]."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
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
    """One answer to one item.

    epoch: tells several answers to one item apart. prompt: what was asked, or its hash. measure: what the score is,
    where a log can hold several. columns: what divides items into groups; a list puts an item into several.
    """

    task: str
    id: str
    score: float
    where: str
    epoch: str | None = None
    prompt: str | None = None
    measure: str = ""
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Item:
    """score: the mean over its answers, which `epochs` names. measures: what was scored."""

    score: float
    epochs: frozenset[str | None]
    prompt: str | None
    measures: frozenset[str]
    columns: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Log:
    """Items by (task, id). files: sha256 by name. unread: logs in the directory that are of another format."""

    items: dict[Key, Item]
    files: dict[str, str]
    unread: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Of what was asked and how it scored, whatever the order and the names of files."""
        content = [[*key, item.score, len(item.epochs), item.prompt] for key, item in sorted(self.items.items())]
        return digest(content)

    def incomplete(self) -> set[Key]:
        """Items that lack an answer that others of their task have: a crash, or a choice among answers."""
        by_task: dict[str, list[tuple[Key, Item]]] = {}
        for key, item in self.items.items():
            by_task.setdefault(key[0], []).append((key, item))
        found: set[Key] = set()
        for items in by_task.values():
            counts = Counter(epoch for _, item in items for epoch in item.epochs)
            # What only one item has is its own name for an answer, such as a random seed.
            usual = {epoch for epoch, count in counts.items() if count > 1}
            most = max(len(item.epochs) for _, item in items)
            found |= {key for key, item in items if usual - item.epochs or (not usual and len(item.epochs) < most)}
        return found


def as_items(answers: Iterable[Answer]) -> dict[Key, Item]:
    """Answers gathered by item. An item that comes twice without epochs to tell its answers apart is refused."""
    held: dict[Key, dict[str | None, Answer]] = {}
    for each in answers:
        mine = held.setdefault((each.task, each.id), {})
        if each.epoch in mine:
            raise LogError(
                f"{each.where}: id {each.id!r} of task {each.task!r} stands twice (first: {mine[each.epoch].where}); "
                "if these are two runs, give one of them; if they are two answers to one item, name the column that "
                "tells them apart: --columns epoch=NAME"
            )
        mine[each.epoch] = each
    return {key: _item(key, list(mine.values())) for key, mine in held.items()}


def _item(key: Key, answers: list[Answer]) -> Item:
    prompts = {each.prompt for each in answers}
    if len(prompts) > 1:
        raise LogError(f"{answers[0].where}: id {key[1]!r} of task {key[0]!r} has other prompts in other answers")
    # A column that tells answers of one item apart divides no items.
    columns = {
        name: value
        for name, value in answers[0].columns.items()
        if all(each.columns.get(name) == value for each in answers)
    }
    return Item(
        float(np.mean([each.score for each in answers])),
        frozenset(each.epoch for each in answers),
        prompts.pop(),
        frozenset(each.measure for each in answers),
        columns,
    )


WORDS = {"true": 1.0, "false": 0.0, "c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0}


def score_of(value: Any, where: str) -> float:
    """A score in [0, 1]: a number, or right and wrong."""
    read = value
    if isinstance(value, str):
        word = value.strip().lower()
        try:
            read = WORDS[word] if word in WORDS else float(word)
        except ValueError:
            raise LogError(f"{where}: the score {short(value)} is no number in [0, 1]") from None
    if not isinstance(read, int | float | np.floating | np.integer | np.bool_) or not 0 <= read <= 1:
        raise LogError(
            f"{where}: the score {short(value)} is no number in [0, 1]; choose another column, or scale it first"
        )
    return float(read)


def parsed(text: str | bytes, where: str) -> dict[str, Any]:
    """A JSON object. One that says a name twice is refused: nobody knows which value counts."""
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except LogError as error:
        raise LogError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise LogError(f"{where} is no JSON ({short(str(error))}); was the file cut?") from None
    if not isinstance(found, dict):
        raise LogError(f"{where} is {short(found)}, not an object with named values")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise LogError(f"{short(name)} stands twice in one object")
    return found


def columns_of(values: Mapping[Any, Any], leave: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """What can divide items into groups: texts, whole numbers, truth, and lists of these."""
    found = {}
    for name, value in values.items():
        parts = value if isinstance(value, list | tuple) else [value]
        if name not in leave and all(isinstance(part, str | int) for part in parts):
            found[str(name)] = tuple(dict.fromkeys(map(str, parts)))
    return found


def hashed(prompt: Any) -> str:
    """What was asked, without its content."""
    text = prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def digest(content: Any) -> str:
    """sha256 of a JSON value."""
    return hashlib.sha256(
        json.dumps(content, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")
    ).hexdigest()
