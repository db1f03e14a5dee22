"""Texts as features: `banking77` from its raw files, with the encoder stood in for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pdcl.errors import UsageError
from pdcl.lab.benchmarks import banking77
from pdcl.lab.benchmarks.raw import text_features
from pdcl.lab.benchmarks.raw.archive import Located, WrongFile
from pdcl.lab.benchmarks.raw.sources import BANKING77
from pdcl.lab.benchmarks.raw.text_features import hashed, minilm
from pdcl.streams.catalog import load

NAMES = [f"intent_{k}" for k in range(banking77.CLASSES)]


def located(folder: Path, rows: list[str], names: list[str] = NAMES) -> Located:
    paths = tuple(folder / name for name in ("train.csv", "test.csv", "categories.json"))
    for path in paths[:2]:
        path.write_text("\n".join(["text,category", *rows]) + "\n", encoding="utf-8")
    paths[2].write_text(json.dumps(names))
    return Located(BANKING77, "original", paths)


def test_a_question_with_commas_quotes_and_line_breaks_is_one_question(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    rows = ['"Where, ""exactly"",\nis my card?",intent_3', "¿Dónde?,intent_0"]
    arrays = banking77.read(located(tmp_path, rows), lambda texts: (seen.append(list(texts)), hashed(texts))[1])
    assert seen[0] == ['Where, "exactly",\nis my card?', "¿Dónde?"]
    assert arrays["train_y"].tolist() == [3, 0]
    assert arrays["names"].tolist() == NAMES


def test_files_that_disagree_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongFile, match=r"intents that aren't listed: \['other'\]"):
        banking77.read(located(tmp_path, ["Hello?,other"]), hashed)
    with pytest.raises(WrongFile, match="0 questions"):
        banking77.read(located(tmp_path, []), hashed)
    with pytest.raises(WrongFile, match="names 3 intents"):
        banking77.read(located(tmp_path, ["Hello?,intent_0"], NAMES[:3]), hashed)


def test_features_of_a_text_depend_on_no_other_text() -> None:
    texts = ["How do I top up?", "My card was stolen!", "What is the fee?"]
    together = hashed(texts)
    assert np.array_equal(together, np.concatenate([hashed([text]) for text in texts]))
    assert np.linalg.norm(together, axis=1) == pytest.approx(1)


def test_unknown_features_and_a_missing_encoder_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="hashed and minilm, not 'bert'"):
        load("banking77", features="bert")
    monkeypatch.setattr(text_features, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'pdcl\[text\]'"):
        minilm(["Hello?"])


def test_another_encoder_in_its_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"another")
    monkeypatch.setattr(text_features, "_directory", lambda: tmp_path)
    with pytest.raises(WrongFile, match="is another encoder: sha256:"):
        minilm(["Hello?"])
