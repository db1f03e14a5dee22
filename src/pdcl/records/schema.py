"""What stands in a run's files, version 1.

JSON here is strict: a number that isn't finite (a loss that blew up, an interval of one seed) is written as null.
A reader refuses a version that it doesn't know; new keys alone don't make a new version.
"""

from __future__ import annotations

import json
from typing import Any, TypedDict

from pdcl.records.writing import encodable

VERSION = 1

CONFIG = "config.json"
EVENTS = "events.jsonl"
RESULT = "result.json"
# Options that say where samples lie and nothing else: what comes out is the same to the bit, with ranks to rounding.
PLACES = ("memory_in_ram",)
# Options that not every version has, with the value by which a run does what it does without them.
NOT_ALWAYS: dict[str, Any] = {"soften": 0.0, "constrain": "loss", "slack": "memory"}


def tells_runs_apart(option: str, value: Any) -> bool:
    """Whether two runs are two because of this option's value, where one of them has no such option."""
    return option not in PLACES and (option not in NOT_ALWAYS or value != NOT_ALWAYS[option])


class Option(TypedDict):
    """A value, and where it came from: method, stream, preset, study or user."""

    value: Any
    source: str


class Asked(TypedDict):
    """What every `config.json` holds."""

    schema: int
    stream: str
    stream_options: dict[str, Any]
    method: str
    preset: str
    memory: int | str | None
    seed: int
    options: dict[str, Option]
    versions: dict[str, str]
    data: dict[str, str]


class Config(Asked, total=False):
    """`config.json`: all that is needed to repeat a run. `label` is what tables call it, where it isn't the method."""

    label: str


class Accuracy(TypedDict):
    """Score on task i after learning task j as [j][i], all tasks: over all classes, and over the task's own."""

    class_il: list[list[float | None]]
    task_il: list[list[float | None]]


class Cost(TypedDict):
    """The only part of a result that two equal runs may differ in."""

    seconds: float | None
    cpu_seconds: float | None
    peak_memory_mb: float | None


class Measured(TypedDict):
    """What every `result.json` holds: every key for every method, empty lists where a method has no such thing.

    `duals[j]` are the final λ_k for k < j and then the artificial one; `partitions[j][k]` the samples of task k held
    after task j; `confusion[true][said]` counts over all test data at the end. In the file a last key,
    `sha256`, is the checksum of the rest; results of older versions have none.
    """

    schema: int
    mean_accuracy: float | None
    mean_forgetting: float | None
    accuracy: Accuracy
    duals: list[list[float | None]]
    partitions: list[list[int]]
    confusion: list[list[int]]
    cost: Cost


class Result(Measured, total=False):
    """`result.json`. `promises[j]` is the table of limits after task j (level, rows); [] where none is stated."""

    promises: list[dict[str, Any]]


# What readers sort, count and print: a value of another kind is refused where it is read.
KINDS: dict[str, tuple[type, ...]] = {
    "stream": (str,),
    "method": (str,),
    "preset": (str,),
    "label": (str, type(None)),
    "memory": (int, str, type(None)),
    "seed": (int,),
    "options": (dict,),
    "stream_options": (dict,),
    "accuracy": (dict,),
    "cost": (dict,),
    "duals": (list,),
    "partitions": (list,),
    "confusion": (list,),
    "promises": (list,),
}


def wrong_kinds(content: dict[str, Any]) -> list[str]:
    """Keys whose value has another kind than ours, or is a text that no screen can show (a lone surrogate)."""
    wrong = [key for key, kinds in KINDS.items() if key in content and not _fits(content[key], kinds)]
    if not wrong and not all(_is_option(each) for each in content.get("options", {}).values()):
        wrong = ["options"]
    return wrong or [key for key in ("options", "stream_options") if not showable(content.get(key))]


def showable(value: Any) -> bool:
    """False where half of a surrogate pair is anywhere in it, which JSON can hold and UTF-8 can't."""
    return encodable(json.dumps(value, ensure_ascii=False, default=str))


def _is_option(value: Any) -> bool:
    return isinstance(value, dict) and "value" in value and isinstance(value.get("source"), str)


def _fits(value: Any, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, str) and not value.isascii():
        return str in kinds and showable(value)
    return isinstance(value, kinds)


def missing_keys(content: dict[str, Any], kind: type) -> list[str]:
    """Keys that `kind` (a TypedDict from here) asks for and `content` lacks; the version is the writer's to add."""
    wanted: frozenset[str] = kind.__required_keys__ - {"schema"}  # type: ignore[attr-defined]
    return [key for key in kind.__annotations__ if key in wanted and key not in content]
