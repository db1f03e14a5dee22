"""`tiny_imagenet`: 64×64 photographs, the first forty classes, ten tasks of four."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pdcl.errors import UsageError
from pdcl.lab.benchmarks.benchmark import benchmark
from pdcl.lab.benchmarks.raw.archive import Located, WrongFile
from pdcl.lab.benchmarks.raw.preparing import Arrays, prepared
from pdcl.lab.benchmarks.raw.unpacking import members
from pdcl.streams.task import Stream
from pdcl.streams.transform import Transform

CLASSES = 40
SIDE = 64
MEAN = (0.4802, 0.4480, 0.3975)
STD = (0.2770, 0.2691, 0.2821)
ROOT = "tiny-imagenet-200/"
TABLES = (ROOT + "wnids.txt", ROOT + "words.txt", ROOT + "val/val_annotations.txt")
COUNTS = {"train": 500, "test": 50}

Pixels = npt.NDArray[np.uint8]


def load(
    data: str | Path | None = None, size: int = 64, classes_per_task: int = 4, order_seed: int | None = None
) -> Stream:
    """500 training and 50 test images a class; the official `val` serves as test. `size=32` halves the images."""
    if size not in (32, SIDE):
        raise UsageError(f"tiny_imagenet comes in size 64 and 32, not {size}")
    arrays = prepared("tiny_imagenet", lambda located: read(located, size), data, size=size)
    transform = Transform(MEAN, STD, crop_padding=size // 16, flip=True)
    names = arrays.arrays["names"].tolist()
    return benchmark("tiny_imagenet", arrays, names, classes_per_task, order_seed, transform, {"size": size})


def read(located: Located, size: int = SIDE) -> Arrays:
    """The forty classes that come first by wnid, from the distributed zip or from the reduced tar."""
    path = located.paths[0]
    names, belongs = read_tables(path)
    wnids = list(names)
    images: dict[tuple[str, str], dict[int, Pixels]] = {}
    for name, content in members(path, lambda name: place_of(name, belongs)[1] in names):
        side, wnid, number = place_of(name, belongs)
        images.setdefault((side, wnid), {})[number] = decoded(content, size)
    sides = {side: [images.get((side, wnid), {}) for wnid in wnids] for side in COUNTS}
    for side, classes in sides.items():
        for wnid, found in zip(wnids, classes, strict=True):
            if len(found) != COUNTS[side]:
                raise WrongFile(f"{path} holds {len(found)} {side} images of {wnid}; there should be {COUNTS[side]}")
    x = {f"{side}_x": np.stack([one[k] for one in classes for k in sorted(one)]) for side, classes in sides.items()}
    y = {f"{side}_y": np.repeat(np.arange(CLASSES, dtype=np.uint8), COUNTS[side]) for side in sides}
    return {**x, **y, "names": np.array(list(names.values()))}


def read_tables(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The first forty wnids with a short name each, and the wnid of every validation image."""
    tables = {name: content.decode() for name, content in members(path, lambda name: name in TABLES)}
    if len(tables) < len(TABLES):
        raise WrongFile(f"{path} lacks {', '.join(sorted(set(TABLES) - set(tables)))}")
    wnids, words, annotations = (tables[name] for name in TABLES)
    first = sorted(wnids.split())[:CLASSES]
    meaning = dict(line.split("\t", 1) for line in words.splitlines() if line)
    belongs = dict(line.split("\t")[:2] for line in annotations.splitlines() if line)
    return {wnid: meaning[wnid].partition(",")[0] for wnid in first}, belongs


def place_of(name: str, belongs: dict[str, str]) -> tuple[str, str, int]:
    """Split, wnid and number of an image by its name in the archive; no wnid if the stream doesn't use that class."""
    folder, _, file = name.rpartition("/")
    if not file.endswith(".JPEG"):
        return "", "", 0
    number = int(file.removesuffix(".JPEG").rpartition("_")[2])
    if folder.startswith(ROOT + "train/"):
        return "train", folder.split("/")[2], number
    return "test", belongs.get(file, "") if folder.startswith(ROOT + "val/") else "", number


def decoded(content: bytes, size: int) -> Pixels:
    """A JPEG as (3, size, size), grey ones too; half the size is the average of 2×2 pixels."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UsageError("reading JPEGs needs Pillow: pip install 'pdcl[images]'") from error
    with Image.open(io.BytesIO(content)) as image:
        if image.size != (SIDE, SIDE):
            raise WrongFile(f"an image has {image.size} pixels; all should have {SIDE}×{SIDE}")
        pixels: Pixels = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
    return pixels if size == SIDE else halved(pixels)


def halved(pixels: Pixels) -> Pixels:
    """(C, 2h, 2w) as (C, h, w): the rounded average of every 2×2 pixels."""
    wide = pixels.astype(np.uint16)
    total = wide[:, ::2, ::2] + wide[:, 1::2, ::2] + wide[:, ::2, 1::2] + wide[:, 1::2, 1::2]
    return ((total + 2) // 4).astype(np.uint8)
