"""`speech`: ten spoken words, one second at 8 kHz, five tasks of two words; speakers are groups."""

from __future__ import annotations

import io
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.lab.benchmarks.benchmark import benchmark
from pdcl.lab.benchmarks.raw.archive import Located, WrongFile
from pdcl.lab.benchmarks.raw.preparing import Arrays, prepared
from pdcl.lab.benchmarks.raw.unpacking import members
from pdcl.streams.task import Stream
from pdcl.streams.transform import Transform

WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
SPLITS = ("train", "val", "test")
LISTS = {"validation_list.txt": "val", "testing_list.txt": "test"}
SAMPLES = 8000

Signal = npt.NDArray[np.int16]


def load(data: str | Path | None = None, classes_per_task: int = 2, order_seed: int | None = None) -> Stream:
    """Speech Commands v0.01 with its official split by speaker; signals are (1, 8000) int16."""
    arrays = prepared("speech", read, data)
    return benchmark("speech", arrays, WORDS, classes_per_task, order_seed, Transform(), {})


def read(located: Located) -> Arrays:
    """Signals, labels and speakers of the three splits, from the distributed wavs or from the reduced file."""
    return read_wavs(located.paths[0]) if located.variant == "original" else read_reduced(located.paths[0])


def read_reduced(path: Path) -> Arrays:
    """Mu-law codes at 8 kHz, expanded by the table that lies beside them."""
    with np.load(path, allow_pickle=False) as archive:
        table = archive["ulaw_table"]
        signals = {f"{split}_x": table[archive[f"{split}_ulaw"]][:, None] for split in SPLITS}
        labels = {f"{split}_y": archive[f"{split}_labels"] for split in SPLITS}
        names = {split: [name.decode() for name in archive[f"{split}_names"].tolist()] for split in SPLITS}
    return {**signals, **labels, **speakers(names)}


def read_wavs(path: Path) -> Arrays:
    """The distributed tar of `word/speaker_nohash_k.wav` at 16 kHz, divided by the two lists inside it."""
    lists: dict[str, str] = {}
    signals: dict[str, Signal] = {}
    for name, content in members(path, _wanted):
        if name in LISTS:
            lists |= dict.fromkeys(content.decode().split(), LISTS[name])
        else:
            signals[name] = at_8khz(content, name)
    if not lists or not signals:
        raise WrongFile(f"{path} holds {len(signals)} of the wanted wavs and {len(lists)} names in split lists")
    names = {split: [name for name in sorted(signals) if lists.get(name, "train") == split] for split in SPLITS}
    x = {f"{split}_x": np.stack([signals[name] for name in names[split]])[:, None] for split in SPLITS}
    return {**x, **{f"{split}_y": _words(names[split]) for split in SPLITS}, **speakers(names)}


def _wanted(name: str) -> bool:
    return name in LISTS or (name.endswith(".wav") and name.partition("/")[0] in WORDS)


def _words(names: Sequence[str]) -> npt.NDArray[np.uint8]:
    return np.array([WORDS.index(name.partition("/")[0]) for name in names], dtype=np.uint8)


def at_8khz(content: bytes, name: str = "wav") -> Signal:
    """A 16 kHz mono wav as 8,000 samples at 8 kHz: low-passed, halved, zeros after a short one."""
    from scipy.signal import resample_poly

    with wave.open(io.BytesIO(content)) as stream:
        form = (stream.getnchannels(), stream.getsampwidth(), stream.getframerate())
        if form != (1, 2, 16000):
            raise WrongFile(f"{name} has (channels, bytes a sample, rate) = {form}; 16 kHz mono of 2 bytes is wanted")
        signal = np.frombuffer(stream.readframes(stream.getnframes()), dtype="<i2")
    half = resample_poly(signal.astype(np.float64), 1, 2)[:SAMPLES]
    padded = np.zeros(SAMPLES)
    padded[: len(half)] = half
    return np.clip(np.rint(padded), -32768, 32767).astype(np.int16)


def speakers(names: dict[str, list[str]]) -> dict[str, npt.NDArray[Any]]:
    """Who speaks, as integers that mean the same in all splits: the file name before `_nohash_`."""
    who = {split: [name.rpartition("/")[2].partition("_nohash_")[0] for name in names[split]] for split in names}
    number = {speaker: index for index, speaker in enumerate(sorted({one for some in who.values() for one in some}))}
    return {f"{split}_groups": np.array([number[one] for one in who[split]], dtype=np.int64) for split in names}
