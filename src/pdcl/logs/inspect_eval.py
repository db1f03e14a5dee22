"""Inspect: `.eval` (a zip of samples) and `.json`. Epochs are several answers to one item."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pdcl.given import short
from pdcl.logs.log import Answer, LogError, columns_of, hashed, parsed, score_of

# A sample that unpacks to more than this is no log of a run.
LARGEST = 2**28
# How zip files name the compression that Inspect writes; Python reads it from 3.14 on.
ZSTD = 93


def is_log(file: Path) -> bool:
    return file.suffix in (".eval", ".json")


def answers(file: Path, content: bytes, metric: str | None, prompt: str | None) -> list[Answer]:
    """metric: the scorer, where there are several; SCORER.KEY where its value has named parts.

    prompt: the field of samples, or of their metadata, that tells items apart, where the input itself doesn't.
    """
    header, samples = _eval(file, content) if file.suffix == ".eval" else _json(file, content)
    about = header.get("eval")
    if not isinstance(about, dict) or not isinstance(about.get("task"), str):
        raise LogError(f"{file} names no task; is it a log of Inspect?")
    if header.get("status") != "success":
        raise LogError(f"{file}: the run's status is {short(header.get('status'))}, not success; finish it first")
    return [_answer(about["task"], place, sample, metric, prompt) for place, sample in samples]


Samples = Iterator[tuple[str, dict[str, Any]]]


def _json(file: Path, content: bytes) -> tuple[dict[str, Any], Samples]:
    whole = parsed(content, str(file))
    samples = whole.get("samples")
    if not isinstance(samples, list) or not samples:
        raise LogError(f"{file} holds no samples; write the log with them (log_samples)")
    places = [f"{file}, sample {number}" for number in range(1, len(samples) + 1)]
    for place, each in zip(places, samples, strict=True):
        if not isinstance(each, dict):
            raise LogError(f"{place} is {short(each)}, not an object with named values")
    return whole, zip(places, samples, strict=True)


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
    header = parsed(_member(archive, "header.json", file), f"{file}, header.json")
    places = ((f"{file}, {name}", name) for name in inside)
    return header, ((place, parsed(_member(archive, name, file), place)) for place, name in places)


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
    try:
        return archive.read(name)
    except NotImplementedError:
        if about.compress_type != ZSTD:
            raise
    import zstandard

    file = archive.fp
    assert file is not None
    file.seek(about.header_offset + 26)
    # After the header of 30 bytes stand the name and an extra field, whose lengths are here.
    lengths = file.read(4)
    file.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little"), io.SEEK_CUR)
    packed = io.BytesIO(file.read(about.compress_size))
    try:
        # No more than the archive says, whatever the packed bytes would give.
        content: bytes = zstandard.ZstdDecompressor().stream_reader(packed).read(about.file_size)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if zlib.crc32(content) != about.CRC:
        raise ValueError("its checksum is another")
    return content


def _answer(task: str, place: str, sample: dict[str, Any], metric: str | None, field: str | None) -> Answer:
    if sample.get("id") is None:
        raise LogError(f"{place} has no id")
    if sample.get("error"):
        raise LogError(f"{place} ended in an error and has no score; run it again, or take it out of both logs")
    meta = sample["metadata"] if isinstance(sample.get("metadata"), dict) else {}
    scorer, part, value = _score(sample, place, metric)
    return Answer(
        task,
        str(sample["id"]),
        score_of(value, place),
        place,
        str(sample.get("epoch", 1)),
        _prompt(place, sample, meta, field),
        f"{scorer}.{part}" if part else scorer,
        columns_of(meta),
    )


def _prompt(place: str, sample: dict[str, Any], meta: dict[str, Any], field: str | None) -> str | None:
    if field is None:
        return None if "input" not in sample else hashed([_said(sample["input"]), sample.get("target")])
    if field not in sample and field not in meta:
        raise LogError(f"{place} has no {field!r} to tell items apart; there are: {', '.join([*sample, *meta])}")
    return hashed(sample[field] if field in sample else meta[field])


def _said(asked: Any) -> Any:
    """The text of an input; ids of messages differ from run to run."""
    if not isinstance(asked, list):
        return asked
    return [[each.get("role"), each.get("content")] if isinstance(each, dict) else each for each in asked]


def _score(sample: dict[str, Any], place: str, metric: str | None) -> tuple[str, str, Any]:
    """The scorer, the part of its value, and the score."""
    scores = sample.get("scores")
    if not isinstance(scores, dict) or not scores:
        raise LogError(f"{place} has no score; was the run scored?")
    scorer, _, part = (metric or "").partition(".")
    if not scorer and len(scores) > 1:
        raise LogError(f"{place} has several scorers ({', '.join(scores)}); choose one: --metric NAME")
    scorer = scorer or next(iter(scores))
    found = scores.get(scorer)
    if not isinstance(found, dict) or "value" not in found:
        raise LogError(f"{place} has no value of scorer {scorer!r}; there are: {', '.join(scores)}")
    value = found["value"]
    if isinstance(value, dict):
        if part not in value:
            named = " or ".join(f"{scorer}.{key}" for key in value) or "none"
            raise LogError(f"{place}: the score has parts; choose one: --metric {named}")
        return scorer, part, value[part]
    if part:
        raise LogError(f"{place}: the score of {scorer!r} has no parts; say --metric {scorer}")
    return scorer, "", value
