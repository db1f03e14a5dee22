"""A run is repeatable to the bit, explains its options, and refuses what makes no sense before anything is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import pdcl
from pdcl.errors import Diverged, PdclError, RecordError, RunFinished, UsageError
from pdcl.lab.presets import layers, stream_options, tables
from pdcl.methods.catalog import method
from pdcl.records import read_config, read_events, read_result
from pdcl.running.options import resolve
from pdcl.running.run import versions

QUICK = {"epochs": 1, "memory": 30}


def without_cost(path):
    result = json.loads((path / "result.json").read_text())
    del result["cost"], result["sha256"]
    return result


@pytest.mark.parametrize("name", ["er", "er-ring", "pdcl", "pdcl-s"])
def test_the_same_seed_gives_the_same_result_here_and_in_another_process(name, tmp_path):
    stream = pdcl.stream("digits")
    first = pdcl.run(stream, name, seed=3, out=tmp_path / "a", **QUICK)
    torch.manual_seed(99)
    second = pdcl.run(stream, name, seed=3, out=tmp_path / "b", **QUICK)
    assert without_cost(first.path) == without_cost(second.path)
    command = [sys.executable, "-m", "pdcl", "run", "digits", name, "--seed", "3", "--epochs", "1", "--memory", "30"]
    subprocess.run([*command, "--out", str(tmp_path / "c")], check=True, capture_output=True)
    assert without_cost(tmp_path / "c" / first.path.name) == without_cost(first.path)


def test_another_seed_gives_another_result():
    stream = pdcl.stream("digits")
    found = [pdcl.run(stream, "er", seed=seed, **QUICK).accuracy for seed in (0, 1)]
    assert found[0] != found[1]


def test_a_run_leaves_torchs_own_randomness_and_threads_as_they_were():
    torch.manual_seed(7)
    expected = torch.rand(3)
    threads = torch.get_num_threads()
    torch.manual_seed(7)
    pdcl.run("digits", "er", **QUICK)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads


def test_a_record_holds_what_architecture_promises(tmp_path):
    result = pdcl.run("digits", "pdcl", preset="tuned", seed=1, out=tmp_path, **QUICK)
    assert result.path == tmp_path / result.path.name
    assert result.path.name.startswith("digits-pdcl-m30-s1-")
    config = read_config(result.path)
    assert config["options"]["memory"] == {"value": 30, "source": "user"}
    assert config["options"]["batch"]["source"] == "preset tuned"
    assert config["options"]["lr"]["source"] == "preset tuned, pdcl"
    assert config["options"]["alpha"] == {"value": 0.5, "source": "method"}
    kinds = [event["event"] for event in read_events(result.path)]
    assert kinds[0] == "run_began"
    assert kinds[-1] == "run_ended"
    assert kinds.count("task_ended") == kinds.count("evaluated") == kinds.count("partitioned") == 5
    held = read_result(result.path)
    assert [sum(row) for row in held["partitions"]] == [30] * 5
    assert [len(row) for row in held["duals"]] == [1, 2, 3, 4, 5]
    assert np.array(held["accuracy"]["class_il"]).shape == np.array(held["accuracy"]["task_il"]).shape == (5, 5)
    stream = pdcl.stream("digits")
    assert np.sum(held["confusion"]) == sum(len(task.test) for task in stream.tasks)
    assert held["mean_accuracy"] == pytest.approx(np.mean(held["accuracy"]["class_il"][-1]))


def test_a_record_names_the_commit_of_a_checkout(tmp_path):
    root = Path(pdcl.__file__).parents[2]
    if not (root / ".git").exists():
        pytest.skip("not a checkout")
    head = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    assert versions()["commit"][:12] == head[:12]


def test_every_key_of_a_result_is_there_for_every_method(tmp_path):
    for name in ("finetune", "joint"):
        result = read_result(pdcl.run("digits", name, epochs=1, out=tmp_path).path)
        assert result["duals"] == [[]] * 5
        assert result["partitions"] == [[]] * 5


def test_a_finished_run_is_not_run_again(tmp_path):
    pdcl.run("digits", "finetune", epochs=1, out=tmp_path)
    with pytest.raises(RunFinished):
        pdcl.run("digits", "finetune", epochs=1, out=tmp_path)


def test_task_incremental_accuracy_never_falls_below_class_incremental():
    found = pdcl.run("digits", "er", **QUICK).accuracy
    assert (np.array(found["task_il"]) >= np.array(found["class_il"]) - 1e-12).all()


def test_the_sources_of_options_go_from_method_to_user():
    stream, entry = pdcl.stream("digits"), method("pdcl")
    found = resolve(entry, stream, "tuned", {"lr": 0.5}, {"dual_lr": 0.7})
    assert (found.values["lr"], found.sources["lr"]) == (0.5, "user")
    assert (found.values["dual_lr"], found.sources["dual_lr"]) == (0.7, "study")
    assert found.sources["epochs"] == "preset tuned"
    assert found.sources["level"] == "method"


@pytest.mark.parametrize(
    ("memory", "rate"), [(200, 0.01), (349, 0.01), (351, 0.1), (500, 0.1), (5000, 0.1), (None, 0.1)]
)
def test_the_nearest_tabulated_memory_decides(memory, rate):
    values = {}
    for _, table in layers("mnist", "tuned", method("er"), memory):
        values |= table
    assert values["lr"] == rate


@pytest.mark.parametrize("stream", ["digits", "mnist", "organa", "speech", "tiny_imagenet", "banking77"])
def test_every_benchmark_has_its_presets_and_they_name_real_options(stream):
    from pdcl.methods.catalog import methods
    from pdcl.running.options import names

    known = {name: set(names(entry.load())) for name, entry in methods().items() if not isinstance(entry.target, type)}
    anywhere = set().union(*known.values())
    papers = set() if stream == "banking77" else {"paper", "equal"}
    assert {"tuned", *papers} <= tables(stream).keys()
    for preset, table in tables(stream).items():
        for key, value in table.items():
            if isinstance(value, dict) and key != "stream":
                plain = {k for k, v in value.items() if not isinstance(v, dict)}
                sized = {k for v in value.values() if isinstance(v, dict) for k in v}
                assert plain | sized <= known[key], f"{stream} {preset} {key}"
            elif key not in ("extends", "stream"):
                assert key in anywhere, f"{stream} {preset} {key}"


def test_the_small_preset_of_tiny_imagenet_asks_for_small_images():
    assert stream_options("tiny_imagenet", "small") == {"size": 32}
    assert stream_options("tiny_imagenet", None) == {}


def test_equal_gives_all_methods_the_same_training():
    stream = pdcl.stream("digits")
    shared = ("network", "optimizer", "lr", "batch", "replay", "epochs")
    found = [
        tuple(resolve(method(name), stream, "equal", {}).values.get(key) for key in shared)
        for name in ("er", "er-ring", "pdcl0", "pdcl", "pdcl-s")
    ]
    assert len(set(found)) == 1


def test_a_stream_without_presets_gets_auto_and_says_so():
    x = np.random.default_rng(0).normal(size=(80, 6)).astype("float32")
    stream = pdcl.split(x, np.arange(80) % 4, classes_per_task=2)
    found = resolve(method("pdcl"), stream, None, {})
    assert found.preset == "auto"
    assert found.sources["epochs"] == "auto"
    with pytest.raises(UsageError, match="has no presets"):
        resolve(method("pdcl"), stream, "paper", {})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pdcl.run("digits", "pdlc"), "Did you mean 'pdcl'"),
        (lambda: pdcl.run("digit", "pdcl"), "digits"),
        (lambda: pdcl.run("digits", "pdcl", dual_rl=1), "Did you mean 'dual_lr'"),
        (lambda: pdcl.run("digits", "finetune", memory=10), "'finetune' has no option 'memory'"),
        (lambda: pdcl.run("digits", "pdcl", preset="papr"), "it has: auto, tuned"),
        (lambda: pdcl.run("digits", "er", memory=3), "memory=3 is smaller than the 5 tasks"),
        (lambda: pdcl.run("digits", "er", batch=0), "batch=0"),
        (lambda: pdcl.run("digits", "er", precision="float8"), "precision='float8'"),
        (lambda: pdcl.run("digits", "er", network="mpl:10"), "mlp"),
        (lambda: pdcl.run("digits", "er", network="mlp:0"), "positive sizes"),
        (lambda: pdcl.run("digits", "pdcl", tolerance=-0.5), "-0.5"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(call, words):
    with pytest.raises((PdclError, ValueError), match=words):
        call()


def test_labels_outside_a_fixed_head_are_refused_before_training():
    stream = pdcl.stream("digits")
    with pytest.raises(PdclError, match="outputs"):
        pdcl.run(
            stream, pdcl.PDCL(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 4)), memory=20), epochs=1
        )


def test_a_loss_that_becomes_infinite_names_task_step_and_cause_and_keeps_the_last_good_state(tmp_path):
    with pytest.raises(Diverged, match=r"task \d .*epoch \d+, step \d+: the loss became (nan|inf).*lower lr"):
        pdcl.run("digits", "finetune", lr=1e9, epochs=2, out=tmp_path)
    (run,) = tmp_path.iterdir()
    assert list(read_events(run))[-1]["event"] == "run_failed"
    assert not (run / "result.json").exists()


def test_an_output_directory_that_holds_something_else_is_left_alone(tmp_path):
    place = tmp_path / "digits-finetune-m0-s0"
    place.mkdir()
    (place / "thesis.txt").write_text("years of work")
    with pytest.raises(RecordError, match="holds something else"):
        pdcl.run("digits", "finetune", out=tmp_path)
    assert (place / "thesis.txt").read_text() == "years of work"


def test_an_output_directory_that_cannot_be_written_is_named_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="can't write"):
        pdcl.run("digits", "finetune", out=tmp_path / "file" / "runs")


def test_plugins_are_known_after_they_are_loaded(tmp_path):
    from pdcl.running.plugins import load_file

    (tmp_path / "own.py").write_text(
        "import pdcl\nfrom dataclasses import dataclass\nfrom pdcl.methods.plain import Finetune\n"
        "@pdcl.register('own-plain', summary='plain')\n@dataclass(eq=False)\nclass Own(Finetune):\n    '''Plain.'''\n"
    )
    load_file(str(tmp_path / "own.py"))
    assert pdcl.run("digits", "own-plain", epochs=1).mean_accuracy > 0.1
    with pytest.raises(UsageError, match="no such file"):
        load_file(str(tmp_path / "absent.py"))


def test_a_name_of_ours_cannot_be_taken():
    with pytest.raises(UsageError, match="belongs to"):
        pdcl.register("er")(type("Other", (), {}))


def test_import_is_light():
    code = "import sys, pdcl.cli, pdcl.cli.list; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "False"


def test_the_front_door_lists_what_it_has():
    assert {"run", "stream", "split", "PDCL", "Lagrangian", "register"} <= set(dir(pdcl))
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        _ = pdcl.runn
    for name in dir(pdcl):
        assert getattr(pdcl, name) is not None
