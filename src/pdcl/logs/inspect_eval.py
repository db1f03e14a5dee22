"""Inspect: `.eval` (a zip of samples) and `.json`. Epochs are several answers to one item."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pdcl.given import short
from pdcl.logs.log import Answer, LogError, score_of
from pdcl.logs.rows import hashed

# A sample that unpacks to more than this is no log of a run.
LARGEST = 2**28
# How zip files name the compression that Inspect writes; Python reads it from 3.14 on.
ZSTD = 93


def is_log(file: Path) -> bool:
    return file.suffix in (".eval", ".json")


def answers(file: Path, content: bytes, metric: str | None) -> list[Answer]:
    """metric: the scorer, where there are several; SCORER.KEY where its value has named parts."""
    header, samples = _eval(file, content) if file.suffix == ".eval" else _json(file, content)
    about = header.get("eval")
    if not isinstance(about, dict) or not isinstance(about.get("task"), str):
        raise LogError(f"{file} names no task; is it a log of Inspect?")
    if header.get("status") != "success":
        raise LogError(f"{file}: the run's status is {short(header.get('status'))}, not success; finish it first")
    return [_answer(about["task"], place, sample, metric) for place, sample in samples]


Samples = Iterator[tuple[str, dict[str, Any]]]


def _json(file: Path, content: bytes) -> tuple[dict[str, Any], Samples]:
    whole = _parsed(content, str(file))
    samples = whole.get("samples")
    if not isinstance(samples, list) or not samples:
        raise LogError(f"{file} holds no samples; write the log with them (log_samples)")
    return whole, ((f"{file}, sample {n}", _object(each, f"{file}, sample {n}")) for n, each in enumerate(samples, 1))


def _eval(file: Path, content: bytes) -> tuple[dict[str, Any], Samples]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise LogError(f"{file} is no .eval archive ({short(str(error))}); was it cut?") from None
    names = archive.namelist()
    if "header.json" not in names:
        raise LogError(f"{file} has no header.json: the run was not finished, or it is no log of Inspect")
    inside = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
    if not inside:
        raise LogError(f"{file} holds no samples; write the log with them (log_samples)")
    if len(set(inside)) < len(inside):
        raise LogError(f"{file} holds a sample twice under one name")
    header = _parsed(_member(archive, "header.json", file), f"{file}, header.json")
    places = ((f"{file}, {name}", name) for name in inside)
    return header, ((place, _parsed(_member(archive, name, file), place)) for place, name in places)


def _member(archive: zipfile.ZipFile, name: str, file: Path) -> bytes:
    try:
        if archive.getinfo(name).file_size > LARGEST:
            raise LogError(f"{file}, {name} unpacks to more than {LARGEST:,} bytes")
        return _unpacked(archive, name)
    except (NotImplementedError, ImportError):
        text = "packed with zstd: pip install zstandard, or `inspect log convert --to json`"
        raise LogError(f"{file}: {name} is {text}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, LogError):
            raise
        raise LogError(f"{file}, {name} is damaged: {short(str(error))}") from None


def _unpacked(archive: zipfile.ZipFile, name: str) -> bytes:
    about = archive.getinfo(name)
    if about.compress_type != ZSTD:
        return archive.read(name)
    import zstandard

    file = archive.fp
    assert file is not None
    file.seek(about.header_offset + 26)
    # After the header of 30 bytes stand the name and an extra field, whose lengths are here.
    lengths = file.read(4)
    file.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little"), io.SEEK_CUR)
    packed = file.read(about.compress_size)
    try:
        content: bytes = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if zlib.crc32(content) != about.CRC:
        raise ValueError("its checksum is another")
    return content


def _parsed(content: bytes, place: str) -> dict[str, Any]:
    try:
        return _object(json.loads(content), place)
    except LogError:
        raise
    except (ValueError, RecursionError) as error:
        raise LogError(f"{place} is no JSON ({short(str(error))}); was the file cut?") from None


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise LogError(f"{place} is {short(value)}, not an object with named values")
    return value


def _answer(task: str, place: str, sample: dict[str, Any], metric: str | None) -> Answer:
    if sample.get("id") is None:
        raise LogError(f"{place} has no id")
    if sample.get("error"):
        raise LogError(f"{place} ended in an error and has no score; run it again, or take it out of both logs")
    meta = sample.get("metadata")
    columns = {str(k): str(v) for k, v in meta.items() if isinstance(v, str | int)} if isinstance(meta, dict) else {}
    prompt = None if "input" not in sample else hashed([_said(sample["input"]), sample.get("target")])
    epoch = str(sample.get("epoch", 1))
    return Answer(task, str(sample["id"]), _score(sample, place, metric), place, epoch, prompt, columns)


def _said(asked: Any) -> Any:
    """The text of an input; ids of messages differ from run to run."""
    if not isinstance(asked, list):
        return asked
    return [[each.get("role"), each.get("content")] if isinstance(each, dict) else each for each in asked]


def _score(sample: dict[str, Any], place: str, metric: str | None) -> float:
    scores = sample.get("scores")
    if not isinstance(scores, dict) or not scores:
        raise LogError(f"{place} has no score; was the run scored?")
    scorer, _, part = (metric or "").partition(".")
    if not scorer and len(scores) > 1:
        raise LogError(f"{place} has several scorers ({', '.join(scores)}); choose one: --metric NAME")
    found = scores.get(scorer or next(iter(scores)))
    if not isinstance(found, dict) or "value" not in found:
        raise LogError(f"{place} has no value of scorer {scorer!r}; there are: {', '.join(scores)}")
    value = found["value"]
    if isinstance(value, dict):
        if part not in value:
            named = " or ".join(f"{next(iter(scores))}.{key}" for key in value) or "none"
            raise LogError(f"{place}: the score has parts; choose one: --metric {named}")
        value = value[part]
    return score_of(value, place)
