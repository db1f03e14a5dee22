"""Intents again, with the sentence encoder fine-tuned end to end: banking77 as 7 tasks of 11 intents.

    python benchmarks/evidence/intents_tuned.py --out runs/tuned --rates   the check that chose the learning rate
    python benchmarks/evidence/intents_tuned.py --out runs/tuned           carry out what is missing
    python benchmarks/evidence/intents_tuned.py --out runs/tuned --table   the table so far, as Markdown

Sized for a CPU: 15 training and 15 test questions of every intent, cut after 16 tokens; 2 epochs; memory 231. Reference
r_k: the error of `even` on other training questions, 15 of every intent. Limits and lines of results.jsonl are
those of intents.py. "frozen" methods get the features of the encoder as it comes, of the same questions.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import warnings
from collections import defaultdict
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from intents import Results, scenarios, table
from torch import Tensor, nn

import pdcl
from pdcl.errors import LimitBroken
from pdcl.lab.benchmarks.banking77 import read_questions
from pdcl.lab.benchmarks.raw.archive import locate
from pdcl.lab.benchmarks.raw.text_features import encoder
from pdcl.streams.transform import Transform

KIND = "tuned"
TRAIN, TEST, TOKENS = 15, 15, 16
RATES = (3e-5, 1e-4, 3e-4)
RATE = 1e-4
SCHEDULE = {"epochs": 2, "batch": 10}
MEMORY = 231
TUNED = ("er", "derpp", "even")
FROZEN = ("ncm", "slda", "even")
FREE = (*TUNED, *(f"frozen {name}" for name in FROZEN))
Questions = tuple[list[str], list[str]]


class Network(nn.Module):
    """The mean over a text's tokens of the encoder's last layer, at length √384, and a linear head."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.encoder = encoder()[1]
        self.head = nn.Linear(self.encoder.config.hidden_size, classes)

    def features(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        last = self.encoder(input_ids=input_ids, attention_mask=attention_mask.long()).last_hidden_state
        mask = attention_mask[:, :, None]
        mean = (last * mask).sum(1) / mask.sum(1)
        return nn.functional.normalize(mean, dim=1) * mean.shape[1] ** 0.5

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.head(self.features(input_ids, attention_mask))


@cache
def questions() -> tuple[list[str], dict[str, Questions]]:
    """The intents, and texts with their intents: trained on, test, and others of the training file."""
    train, test, listed = locate("banking77").paths
    names = json.loads(listed.read_text(encoding="utf-8"))
    own = _by_intent(train, names)
    parts = {
        "train": [texts[:TRAIN] for texts in own],
        "other": [texts[TRAIN : TRAIN + TEST] for texts in own],
        "test": [texts[:TEST] for texts in _by_intent(test, names)],
    }
    return names, {part: _flat(names, texts) for part, texts in parts.items()}


def _by_intent(path: Path, names: list[str]) -> list[list[str]]:
    """The texts of every intent, in an order that is drawn once."""
    found = defaultdict(list)
    for text, intent in zip(*read_questions(path, names), strict=True):
        found[intent].append(text)
    return [random.Random(intent).sample(found[intent], len(found[intent])) for intent in range(len(names))]


def _flat(names: list[str], texts: list[list[str]]) -> Questions:
    return [text for each in texts for text in each], [
        name for name, each in zip(names, texts, strict=True) for _ in each
    ]


def tokenizer() -> Any:
    return partial(encoder()[0], truncation=True, max_length=TOKENS, return_token_type_ids=False)


@cache
def stream(held_out: bool, frozen: bool) -> Any:
    names, parts = questions()
    train, test = parts["train"], parts["other" if held_out else "test"]
    tasks = [names[first : first + 11] for first in range(0, len(names), 11)]
    if not frozen:
        return pdcl.split(*train, test=test, tasks=tasks, tokenizer=tokenizer(), name="banking77")
    train, test = ((_features(texts), intents) for texts, intents in (train, test))
    return pdcl.split(*train, test=test, tasks=tasks, transform=Transform(), name="banking77")


def _features(texts: list[str]) -> Any:
    network, read = Network(1).eval(), tokenizer()
    with torch.inference_mode():
        parts = [read(texts[k : k + 50], padding=True, return_tensors="pt") for k in range(0, len(texts), 50)]
        return torch.cat([network.features(**part) for part in parts]).numpy()


def optimizer(network: nn.Module, rate: float = RATE) -> torch.optim.Optimizer:
    """The encoder learns with the rate that the check chose, the head with the stream's preset."""
    groups = [{"params": network.encoder.parameters(), "lr": rate}, {"params": network.head.parameters()}]
    return torch.optim.Adam(groups, lr=0.001, fused=True)


def tuned(seed: int, rate: float = RATE) -> dict[str, Any]:
    torch.manual_seed(seed)
    return {"network": Network(77), "optimizer": partial(optimizer, rate=rate)}


class Tuned(Results):
    calibration = (100, 101)

    @staticmethod
    def _run(features: str, name: str, seed: int, held_out: bool, limits: Any) -> Any:
        frozen, title = name.startswith("frozen "), name.removeprefix("frozen ")
        found = stream(held_out, frozen)
        options: dict[str, Any] = {} if title in ("ncm", "slda") else {"memory": MEMORY, **SCHEDULE}
        if title == "even" and frozen:
            options |= {"network": "mlp:100-100", "epochs": 4}
        if not frozen:
            options |= tuned(seed)
        if title == "pdcl":
            # A look at all of memory costs as much as many steps: fewer looks, each at fewer samples.
            said = [f"{100 * min(1.0, limit):.2f}%" for limit in limits]
            options["tolerance"] = {task.name: each for task, each in zip(found.tasks, said, strict=True)}
            options |= {"dual_steps": 12, "slack_samples": 128}
        return pdcl.run(found, title, seed=seed, **options)


def rates() -> None:
    """Two tasks learned by er with each learning rate; accuracy on training questions that it has not seen."""
    found = stream(True, False)
    first = replace(found, tasks=found.tasks[:2])
    for rate in RATES:
        result = pdcl.run(first, "er", seed=100, memory=MEMORY, **SCHEDULE, **tuned(100, rate))
        print(f"{rate:g}: {100 * statistics.mean(result.accuracy['class_il'][-1]):.1f} %", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/tuned"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", LimitBroken)
    results = Tuned(asked.out)
    if asked.rates:
        rates()
    elif asked.table:
        print(table(results, KIND, range(asked.seeds), FREE))
    else:
        carry_out(results, asked.seeds)


def carry_out(results: Tuned, seeds: int) -> None:
    limits = scenarios(results.references(KIND))
    for seed in range(seeds):
        for name in FREE:
            results.measure(KIND, name, seed)
        for scenario, each in limits.items():
            results.measure(KIND, "pdcl", seed, scenario, each)


if __name__ == "__main__":
    main()
