"""Texts and the model of the study `llm.py`: windows of bytes, and a small Llama that knows three corpora."""

from __future__ import annotations

import json
import os
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from pdcl.lab.benchmarks.banking77 import read_questions
from pdcl.lab.benchmarks.raw.archive import locate

OLD = ("code", "shakespeare", "manual")
LENGTH, BATCH, TEST = 32, 32, 800
FIRST_STEPS = 1500


class Texts:
    """Windows of bytes, [n, 32], to train on and to test on. Whole documents are on one side."""

    def __init__(self) -> None:
        held = Path(os.environ["PDCL_DATA"]) / "tinyshakespeare" / "input.txt"
        speeches = held.read_text(encoding="utf-8").split("\n\n")
        documents = {
            "code": [path.read_text(encoding="utf-8") for path in sorted(Path(os.__file__).parent.glob("*.py"))],
            "shakespeare": ["\n\n".join(speeches[i : i + 200]) for i in range(0, len(speeches), 200)],
            "manual": [topics[name] for name in sorted(topics)],
        }
        self.train = {name: windows([d for i, d in enumerate(each) if i % 5]) for name, each in documents.items()}
        self.test = {name: windows(each[::5])[:TEST] for name, each in documents.items()}
        train, test, listed = locate("banking77").paths
        names = json.loads(listed.read_text(encoding="utf-8"))
        asked = [read_questions(path, names)[0] for path in (train, test)]
        self.train["new"], self.test["new"] = windows(hundreds(asked[0])), windows(hundreds(asked[1]))[:TEST]


def hundreds(questions: list[str]) -> list[str]:
    """Documents of a hundred questions each."""
    return ["\n".join(questions[i : i + 100]) for i in range(0, len(questions), 100)]


def windows(documents: list[str]) -> Tensor:
    """Windows of all documents, in an order that mixes them."""
    found = []
    for document in documents:
        codes = np.frombuffer(document.encode("ascii", "replace"), dtype=np.uint8)[:60_000].astype(np.int64) % 128
        found.append(torch.from_numpy(codes[: len(codes) // LENGTH * LENGTH].reshape(-1, LENGTH)))
    whole = torch.cat(found)
    return whole[torch.randperm(len(whole), generator=torch.Generator().manual_seed(0))]


class Rows:
    """Windows as a dataset of a trainer."""

    def __init__(self, ids: Tensor) -> None:
        self.ids = ids

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        return {"input_ids": self.ids[place], "labels": self.ids[place]}

    def __len__(self) -> int:
        return len(self.ids)


def blank() -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=128, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, max_position_embeddings=LENGTH, tie_word_embeddings=True,
        )
    )  # fmt: skip


def pretrained(out: Path, texts: Texts) -> Any:
    """The model that all runs start from, made once on the three old corpora."""
    model, place = blank(), out / "pretrained.pt"
    if not place.exists():
        generator = torch.Generator().manual_seed(1)
        optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=FIRST_STEPS)
        for _ in range(FIRST_STEPS):
            parts = [texts.train[name] for name in OLD]
            ids = torch.cat([p[torch.randint(len(p), (BATCH // 3 + 1,), generator=generator)] for p in parts])
            optimiser.zero_grad()
            model(input_ids=ids, labels=ids).loss.backward()
            optimiser.step()
            schedule.step()
        torch.save(model.state_dict(), place)
    model.load_state_dict(torch.load(place, weights_only=True))
    return model


@torch.no_grad()
def losses(model: Any, ids: Tensor) -> Tensor:
    """The mean loss of each window, [n]."""
    model.eval()
    found = []
    for part in ids.split(200):
        logits = model(input_ids=part).logits[:, :-1]
        each = torch.nn.functional.cross_entropy(logits.transpose(1, 2), part[:, 1:], reduction="none")
        found.append(each.mean(1))
    model.train()
    return torch.cat(found)
