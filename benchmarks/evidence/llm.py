"""Limits of a language model at equal tokens: stated against reached, beside fixed mixing, frozen duals and an anchor.

    python benchmarks/evidence/llm.py --out runs/llm            every run that is missing, seed 0 of all before seed 1
    python benchmarks/evidence/llm.py --out runs/llm --table    what is there, as tables

PDCL_DATA names the directory that holds tinyshakespeare/input.txt and banking77/.

A byte-level model of 0.3 M parameters is pretrained on Python's library (code), Shakespeare and Python's manual, then
learns bank customers' questions. Each run is a line of results.jsonl. Whole documents are on one side: test texts come
from other modules, acts and chapters. A batch has 32 windows of 64 bytes in every method, so that tokens are equal.
Limits were fixed before the first run: five sets each of one, two and three limits.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from pdcl.integrations.hf import ConstrainedTrainer
from pdcl.lab.benchmarks.raw.archive import locate

OLD = ("code", "shakespeare", "manual")
# What code, Shakespeare and the manual may have, as a factor of what they had; None: no limit, and no replay.
LIMITS: tuple[tuple[float | None, ...], ...] = (
    (1.02, None, None), (1.05, None, None), (None, 1.05, None), (None, None, 1.1), (None, 1.2, None),
    (1.05, 1.05, None), (1.02, 1.1, None), (None, 1.05, 1.05), (1.1, None, 1.02), (None, 1.2, 1.05),
    (1.1, 1.1, 1.1), (1.05, 1.05, 1.05), (1.02, 1.02, 1.02), (1.02, 1.2, 1.1), (1.2, 1.02, 1.1),
)  # fmt: skip
MIXES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75)
ANCHORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LENGTH, BATCH, STEPS, GUARDS = 64, 32, 300, 128
STEERED = {"dual_steps": 30, "guard": GUARDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/llm"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="methods: limits, beside, mix, frozen, mean, again, anchor")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    place = given.out / "results.jsonl"
    held = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()] if place.exists() else []
    if given.table:
        print(tables(held))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    texts, done = Texts(), {json.dumps(row["run"]): row for row in held}
    for run in runs(given.seeds):
        key = json.dumps(run)
        if key in done or (given.only and run["method"] not in given.only):
            continue
        done[key] = Run(run, texts, pretrained(given.out, texts), done).finish()
        with place.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(done[key]) + "\n")
        print(key, {name: round(value, 3) for name, value in done[key]["reached"].items()}, flush=True)


def runs(seeds: int) -> Iterator[dict[str, Any]]:
    for seed in range(seeds):
        # Three limits at once and all mixes first: the question that matters most.
        for stated in reversed(LIMITS):
            yield {"method": "limits", "stated": stated, "seed": seed}
        for share in MIXES:
            yield {"method": "mix", "share": share, "seed": seed}
        for method in ("frozen", "mean", "again", "beside"):
            for stated in LIMITS[-5:]:
                yield {"method": method, "stated": stated, "seed": seed}
        for weight in ANCHORS:
            yield {"method": "anchor", "weight": weight, "seed": seed}


class Texts:
    """Windows of bytes, [n, 64], to train on and to test on."""

    def __init__(self) -> None:
        held = Path(os.environ["PDCL_DATA"]) / "tinyshakespeare" / "input.txt"
        shakespeare = held.read_text(encoding="utf-8").split("\n\n")
        acts = ["\n\n".join(shakespeare[i : i + 200]) for i in range(0, len(shakespeare), 200)]
        documents = {
            "code": [path.read_text(encoding="utf-8") for path in sorted(Path(os.__file__).parent.glob("*.py"))],
            "shakespeare": acts,
            "manual": [topics[name] for name in sorted(topics)],
        }
        self.train = {name: windows([d for i, d in enumerate(each) if i % 5]) for name, each in documents.items()}
        self.test = {name: windows(each[::5])[:1000] for name, each in documents.items()}
        train, test = (path.read_text(encoding="utf-8").split("\n") for path in locate("banking77").paths[:2])
        self.train["new"], self.test["new"] = windows(["\n".join(train)]), windows(["\n".join(test)])[:1000]


def windows(documents: list[str]) -> Tensor:
    """Windows of all documents, in an order that mixes them."""
    found = []
    for document in documents:
        codes = np.frombuffer(document.encode("ascii", "replace"), dtype=np.uint8)[:60_000].astype(np.int64) % 128
        found.append(torch.from_numpy(codes[: len(codes) // LENGTH * LENGTH].reshape(-1, LENGTH)))
    whole = torch.cat(found)
    return whole[torch.randperm(len(whole), generator=torch.Generator().manual_seed(0))]


def blank() -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=128, hidden_size=96, intermediate_size=256, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=4, max_position_embeddings=LENGTH, tie_word_embeddings=True,
        )
    )  # fmt: skip


def pretrained(out: Path, texts: Texts) -> Any:
    """The model that all runs start from, made once: 2,000 steps on the three old corpora."""
    model, place = blank(), out / "pretrained.pt"
    if not place.exists():
        generator = torch.Generator().manual_seed(1)
        optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=2000)
        for _ in range(2000):
            parts = [texts.train[name] for name in OLD]
            rows = [p[torch.randint(len(p), (BATCH // 3 + 1,), generator=generator)] for p in parts]
            ids = torch.cat(rows)
            optimiser.zero_grad()
            model(input_ids=ids, labels=ids).loss.backward()
            optimiser.step()
            schedule.step()
        torch.save(model.state_dict(), place)
    model.load_state_dict(torch.load(place, weights_only=True))
    return model


class Run:
    """One fine-tuning; `finish` trains and measures on fresh text."""

    def __init__(self, run: dict[str, Any], texts: Texts, model: Any, done: dict[str, Any]) -> None:
        self.run, self.texts, self.model, self.done = run, texts, model, done
        self.before = {name: loss(model, each) for name, each in texts.test.items()}

    def finish(self) -> dict[str, Any]:
        started = time.process_time()
        with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer = self.trainer(place)
            trainer.train()
        spent = time.process_time() - started
        after = {name: loss(self.model, each) for name, each in self.texts.test.items()}
        found = {"run": self.run, "before": self.before, "after": after, "cpu": round(spent, 1)}
        found["reached"] = {name: after[name] / self.before[name] for name in OLD} | {"new": after["new"]}
        if isinstance(trainer, ConstrainedTrainer):
            steps = trainer.constraints.core.progress.history
            history = torch.stack(steps) if steps else trainer.constraints.core.task_duals()[None]
            found["duals"] = {"last": history[-1].tolist(), "mean": history.mean(0).tolist()}
        return found

    def trainer(self, place: str) -> Any:
        run, new = self.run, self.texts.train["new"]
        seed = run["seed"] + (100 if run["method"] == "again" else 0)
        args = TrainingArguments(
            output_dir=place, max_steps=STEPS, per_device_train_batch_size=BATCH, per_device_eval_batch_size=64,
            learning_rate=1e-3, warmup_steps=20, seed=seed, use_cpu=True, report_to=[], save_strategy="no",
            logging_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        given: dict[str, Any] = {"model": self.model, "args": args, "train_dataset": Rows(new)}
        if run["method"] == "mix":
            return Trainer(**{**given, "train_dataset": Rows(self.mixed(run["share"], seed))})
        if run["method"] == "anchor":
            return Anchored(run["weight"], **given)
        stated = {name: factor for name, factor in zip(OLD, run["stated"], strict=True) if factor is not None}
        capabilities = {name: (Rows(self.texts.train[name][:4000]), f"{factor}x") for name, factor in stated.items()}
        replay, options = "inside", dict(STEERED)
        if run["method"] == "beside":
            replay, args.per_device_train_batch_size = BATCH // 2, BATCH // 2
        if run["method"] in ("frozen", "mean"):
            other = self.done[json.dumps({**run, "method": "limits"})]
            held = other["duals"]["last" if run["method"] == "frozen" else "mean"]
            options |= {"dual": "frozen"}
            given["callbacks"] = [Held(held)]
        trainer = ConstrainedTrainer(**given, capabilities=capabilities, constraints=options, replay=replay)
        for each in given.get("callbacks", []):
            each.trainer = trainer
        return trainer

    def mixed(self, share: float, seed: int) -> Tensor:
        """As many windows as are trained on, this share of them old, a third from each corpus."""
        generator, total = torch.Generator().manual_seed(seed), STEPS * BATCH
        counts = {name: round(total * share / 3) for name in OLD}
        counts["new"] = total - sum(counts.values())
        parts = [self.texts.train[name] for name in counts]
        return torch.cat(
            [p[torch.randint(len(p), (n,), generator=generator)] for p, n in zip(parts, counts.values(), strict=True)]
        )


class Held(TrainerCallback):  # type: ignore[misc]
    """Duals that are given once, and stay."""

    trainer: Any

    def __init__(self, duals: list[float]) -> None:
        self.duals = duals

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 0:
            algorithm = self.trainer.constraints.core.algorithm
            algorithm.duals.values[:] = torch.tensor(self.duals)
            algorithm.weigh()


class Rows:
    def __init__(self, ids: Tensor) -> None:
        self.ids = ids

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        return {"input_ids": self.ids[place], "labels": self.ids[place]}

    def __len__(self) -> int:
        return len(self.ids)


class Anchored(Trainer):  # type: ignore[misc]
    """Adds weight × KL(before ‖ now) on the new text."""

    def __init__(self, weight: float, **given: Any) -> None:
        super().__init__(**given)
        self.weight, self.former = weight, blank()
        self.former.load_state_dict(given["model"].state_dict())

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
        found, outputs = super().compute_loss(model, inputs, return_outputs=True, **kwargs)
        with torch.no_grad():
            before = functional.log_softmax(self.former(input_ids=inputs["input_ids"]).logits.flatten(0, 1), -1)
        now = functional.log_softmax(outputs.logits.flatten(0, 1), -1)
        found = found + self.weight * functional.kl_div(now, before, reduction="batchmean", log_target=True)
        return (found, outputs) if return_outputs else found


@torch.no_grad()
def loss(model: Any, ids: Tensor) -> float:
    model.eval()
    found = [float(model(input_ids=part, labels=part).loss) * len(part) for part in ids.split(200)]
    model.train()
    return sum(found) / len(ids)


def tables(rows: list[dict[str, Any]]) -> str:
    """One line a setting: means over seeds of what was reached, and of the new text's loss."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        named = {key: value for key, value in row["run"].items() if key != "seed"}
        groups.setdefault(json.dumps(named), []).append(row)
    lines = ["| run | code | Shakespeare | manual | new text's loss | CPU s | seeds |", "|---|---|---|---|---|---|---|"]
    for named, found in groups.items():
        run = json.loads(named)
        label = " ".join("·".join(str(x or "–") for x in v) if isinstance(v, list) else str(v) for v in run.values())
        reached = [statistics.fmean(row["reached"][name] for row in found) for name in (*OLD, "new")]
        cost = statistics.fmean(row["cpu"] for row in found)
        lines.append(f"| {label} | " + " | ".join(f"{x:.3f}" for x in reached) + f" | {cost:.0f} | {len(found)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
