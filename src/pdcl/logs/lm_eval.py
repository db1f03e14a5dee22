"""lm-evaluation-harness: `samples_TASK_TIME.jsonl`, of `lm_eval --log_samples`, one line an item and filter."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pdcl.logs.log import Answer, LogError, columns_of, hashed, score_of
from pdcl.logs.rows import json_lines

# Where a task has several metrics, the one that says right or wrong.
USUAL = ("exact_match", "acc")
NAME = re.compile(r"samples_(.+?)(?:_\d{4}-\d{2}-\d{2}T[\d\-.:]+)?\.jsonl")


def is_samples(file: Path) -> bool:
    return NAME.fullmatch(file.name) is not None


def task_of(file: Path) -> str:
    found = NAME.fullmatch(file.name)
    assert found is not None
    return found[1]


def answers(file: Path, content: bytes, metric: str | None, prompt: str | None) -> list[Answer]:
    """metric: such as exact_match, or exact_match,strict-match with its filter, as the harness writes it.

    prompt: the field that tells items apart, such as doc_hash, where the prompt itself changed.
    """
    lines = list(json_lines(content, str(file)))
    if not lines:
        raise LogError(f"{file} is empty")
    name, _, wanted = (metric or "").partition(",")
    chosen = wanted or _only_filter(file, [row for _, row in lines])
    made = [_answer(file, place, row, name, prompt) for place, row in lines if row.get("filter", "none") == chosen]
    for measure in {each.measure for each in made}:
        _check_direction(file, measure.partition(",")[0])
    return made


def _only_filter(file: Path, rows: list[dict[str, Any]]) -> str:
    filters = list(dict.fromkeys(str(row.get("filter", "none")) for row in rows))
    if len(filters) > 1:
        named = " or ".join(f"--metric METRIC,{each}" for each in filters)
        raise LogError(f"{file} has answers of several filters; choose one: {named}")
    return filters[0]


def _answer(file: Path, place: str, row: dict[str, Any], metric: str, prompt: str | None) -> Answer:
    if "doc_id" not in row:
        raise LogError(f"{place} has no doc_id; is it a file of lm-evaluation-harness (--log_samples)?")
    name = metric or _usual(place, row)
    if name not in row:
        raise LogError(f"{place} has no metric {name!r}; there are: {_metrics(row)}")
    doc = row["doc"] if isinstance(row.get("doc"), dict) else {}
    return Answer(
        task_of(file),
        str(row["doc_id"]),
        score_of(row[name], place),
        place,
        prompt=_prompt(place, row, doc, prompt),
        measure=f"{name},{row.get('filter', 'none')}",
        columns=columns_of(doc),
    )


def _prompt(place: str, row: dict[str, Any], doc: dict[str, Any], field: str | None) -> str | None:
    if field is not None:
        if field not in row and field not in doc:
            raise LogError(f"{place} has no {field!r} to tell items apart; there are: {', '.join([*row, *doc])}")
        return hashed(row[field] if field in row else doc[field])
    asked = row.get("prompt_hash") or (hashed(row["arguments"]) if "arguments" in row else None)
    return None if asked is None else hashed([asked, row.get("target_hash", "")])


def _usual(place: str, row: dict[str, Any]) -> str:
    there = row.get("metrics") or [name for name in USUAL if name in row]
    if not isinstance(there, list):
        raise LogError(f"{place}: its list of metrics is none")
    named = [name for name in USUAL if name in there] or there
    if len(named) == 1 or named[:2] == list(USUAL):
        return str(named[0])
    raise LogError(f"{place} has the metrics {_metrics(row)}; choose one that lies in [0, 1]: --metric NAME")


def _metrics(row: dict[str, Any]) -> str:
    there = row.get("metrics")
    return ", ".join(map(str, there)) if isinstance(there, list) and there else "none"


def _check_direction(file: Path, metric: str) -> None:
    """Raise where the harness says, in the results beside the samples, that less of this metric is better."""
    for results in file.parent.glob("results_*.json"):
        try:
            higher = json.loads(results.read_bytes())["higher_is_better"][task_of(file)][metric]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            continue
        if higher is False:
            raise LogError(
                f"{file}: less {metric} is better ({results.name} says so), and scores must rise; choose another"
            )
