"""Whatever stands in the files of a run or a model: our own errors, no code executed, nothing touched outside."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pdcl
from pdcl.errors import PdclError, StateError, UsageError
from pdcl.records import checkpoint
from pdcl.records.naming import safe
from pdcl.running.resume import resume
from pdcl.storage.serialize import pack, same, unpack
from pdcl.storage.vault import Vault

ODD_NUMBERS = [b"-1", b"1e400", b"99999999999", b"null", b"[]"]
ONE_BY_ONE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(0)
    learner = pdcl.PDCL("linear", memory=6)
    for labels in (["a", "b"], ["c"]):
        learner.learn(random.normal(size=(12, 3)).astype(np.float32), labels * (12 // len(labels)), epochs=1)
        learner.save(tmp_path_factory.getbasetemp() / "fuzzed-model")
    return tmp_path_factory.getbasetemp() / "fuzzed-model"


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    class Enough(Exception):
        pass

    def listener(event: Any) -> None:
        if event.kind == "evaluated" and event.task == 1:
            raise Enough

    out = tmp_path_factory.mktemp("fuzzed-run")
    stream = pdcl.stream("synthetic", tasks=2, size=20, test_size=6, dim=3)
    with pytest.raises(Enough):
        pdcl.run(stream, "pdcl", memory=6, network="linear", epochs=1, out=out, listeners=[listener])
    return next(out.iterdir())


def _mutate(content: bytes, data: st.DataObject) -> bytes:
    kind = data.draw(st.sampled_from(["cut", "flip", "replace", "insert", "number", "empty"]))
    place = data.draw(st.integers(0, max(0, len(content) - 1)))
    if kind == "cut":
        return content[:place]
    if kind == "flip":
        return content[:place] + bytes([content[place] ^ (1 << data.draw(st.integers(0, 7)))]) + content[place + 1 :]
    if kind == "replace":
        return data.draw(st.binary(max_size=200))
    if kind == "number":
        digits = [i for i in range(len(content)) if content[i : i + 1].isdigit()]
        at = data.draw(st.sampled_from(digits)) if digits else 0
        return (
            content[:at]
            + data.draw(st.sampled_from([b"-1", b"1e400", b"99999999999", b"null", b"[]"]))
            + content[at + 1 :]
        )
    return b"" if kind == "empty" else content[:place] + data.draw(st.binary(max_size=20)) + content[place:]


def _resigned(directory: Path) -> None:
    """Make the manifest agree with changed parts again, as someone who means harm would."""
    path = directory / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
        for name, about in manifest["parts"].items():
            content = (directory / name).read_bytes()
            about |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        path.write_text(json.dumps(manifest))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return


def _surroundings(directory: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in directory.rglob("*") if p.is_file() and "victim" not in p.parts}


@given(data=st.data())
@settings(max_examples=40, suppress_health_check=ONE_BY_ONE)
def test_a_mutated_model_loads_or_is_refused(model: Path, tmp_path: Path, data: st.DataObject) -> None:
    _check_model(model, tmp_path, data)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=3000, suppress_health_check=ONE_BY_ONE)
def test_a_mutated_model_loads_or_is_refused_at_length(model: Path, tmp_path: Path, data: st.DataObject) -> None:
    _check_model(model, tmp_path, data)


def _check_model(model: Path, tmp_path: Path, data: st.DataObject) -> None:
    victim = tmp_path / "victim"
    shutil.rmtree(victim, ignore_errors=True)
    shutil.copytree(model, victim)
    name = data.draw(st.sampled_from(sorted(p.name for p in model.iterdir() if p.is_file())))
    (victim / name).write_bytes(_mutate((model / name).read_bytes(), data))
    if data.draw(st.booleans()):
        _resigned(victim)
    before = _surroundings(tmp_path)
    with contextlib.suppress(PdclError):
        pdcl.load(victim).predict(np.zeros((1, 3), np.float32))
    assert _surroundings(tmp_path) == before


@given(data=st.data())
@settings(max_examples=25, suppress_health_check=ONE_BY_ONE)
def test_a_mutated_run_resumes_or_is_refused(interrupted: Path, tmp_path: Path, data: st.DataObject) -> None:
    victim = tmp_path / "victim"
    shutil.rmtree(victim, ignore_errors=True)
    shutil.copytree(interrupted, victim)
    files = sorted(str(p.relative_to(interrupted)) for p in interrupted.rglob("*") if p.is_file())
    name = data.draw(st.sampled_from(files))
    (victim / name).write_bytes(_mutate((interrupted / name).read_bytes(), data))
    if data.draw(st.booleans()):
        _resigned(victim / "checkpoint")
    before = _surroundings(tmp_path)
    try:
        checkpoint.read(victim)
        if name != "config.json":
            resume(victim)
    except PdclError:
        pass
    assert _surroundings(tmp_path) == before


CONFIG_VALUES = st.one_of(st.none(), st.integers(-3, 3), st.text(max_size=8), st.just([]), st.just({"a": 1}))


@given(data=st.data())
@settings(max_examples=30, suppress_health_check=ONE_BY_ONE)
def test_a_config_that_describes_no_run_is_refused(interrupted: Path, tmp_path: Path, data: st.DataObject) -> None:
    victim = tmp_path / "victim"
    shutil.rmtree(victim, ignore_errors=True)
    shutil.copytree(interrupted, victim)
    config = json.loads((victim / "config.json").read_text())
    place = data.draw(st.sampled_from(["stream", "method", "stream_options", "options", "data", "schema", "network"]))
    if place == "network":
        config["options"]["network"]["value"] = data.draw(CONFIG_VALUES)
    else:
        config[place] = data.draw(CONFIG_VALUES)
    (victim / "config.json").write_text(json.dumps(config))
    with contextlib.suppress(PdclError):
        resume(victim)


@given(name=st.text(max_size=30) | st.sampled_from(["..", "../x", "a/b", "a\\b", "/etc", "C:", ".", "", "a" * 300]))
def test_a_run_name_never_leaves_its_directory(name: str) -> None:
    try:
        found = safe(name)
    except UsageError:
        return
    assert (Path("/parent") / found).resolve().parent == Path("/parent").resolve()


def test_a_header_bomb_and_a_huge_tensor_are_refused(model: Path, tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1 << 40, 1 << 20], "data_offsets": [0, 1 << 62]}}).encode()
    bombs = [
        struct.pack("<Q", 1 << 62) + b"{}",
        struct.pack("<Q", len(header)) + header,
        struct.pack("<Q", 100) + b"{",
        b"",
    ]
    for number, bomb in enumerate(bombs):
        victim = tmp_path / f"{number}"
        shutil.copytree(model, victim)
        (victim / "network.safetensors").write_bytes(bomb)
        _resigned(victim)
        with pytest.raises(StateError, match="damaged"):
            pdcl.load(victim)


def test_a_memory_larger_than_its_bound_is_refused(model: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    shutil.copytree(model, victim)
    text = (victim / "state.json").read_text()
    assert '"samples": 6' in text
    (victim / "state.json").write_text(text.replace('"samples": 6', '"samples": 60000000000'))
    _resigned(victim)
    with pytest.raises(StateError, match="60000000000"):
        pdcl.load(victim)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_and_links_are_not_read(model: Path, tmp_path: Path) -> None:
    for number, make in enumerate((os.mkfifo, lambda path: os.symlink("/dev/zero", path))):
        victim = tmp_path / f"{number}"
        shutil.copytree(model, victim)
        (victim / "state.json").unlink()
        make(victim / "state.json")
        with pytest.raises(StateError, match="ordinary"):
            pdcl.load(victim)


@pytest.mark.parametrize("part", ["../outside.json", "/etc/passwd", "a/b.json", "..", ""])
def test_a_manifest_cannot_name_files_outside(part: str, model: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    shutil.copytree(model, victim)
    manifest = json.loads((victim / "manifest.json").read_text())
    manifest["parts"][part] = {"sha256": "", "bytes": 1}
    (victim / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StateError, match="damaged"):
        pdcl.load(victim)


def test_another_format_says_which(model: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    shutil.copytree(model, victim)
    manifest = json.loads((victim / "manifest.json").read_text())
    (victim / "manifest.json").write_text(json.dumps({**manifest, "format": 3}))
    with pytest.raises(StateError, match="format 3; this pdcl continues a model of format 2"):
        pdcl.load(victim)


def test_a_checkpoint_is_no_model(interrupted: Path) -> None:
    with pytest.raises(StateError, match="doesn't describe a model"):
        pdcl.load(interrupted / "checkpoint")


def test_a_directory_cannot_name_code(model: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    shutil.copytree(model, victim)
    text = (victim / "state.json").read_text()
    (victim / "state.json").write_text(text.replace('"learner": "PDCL"', '"learner": "os:system"'))
    _resigned(victim)
    with pytest.raises(StateError, match="os:system"):
        pdcl.load(victim)


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
KEYS = st.text(max_size=4) | st.integers(-5, 5)


@given(st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)))
def test_any_nested_state_comes_back(state: Any) -> None:
    import torch

    whole = {"state": state, "tensors": [torch.arange(3), (torch.tensor(2.5), None)]}
    tensors, plan = pack(whole)
    assert same(unpack(tensors, json.loads(json.dumps(plan, allow_nan=False))), whole)


def test_a_vault_without_a_state_says_so(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="missing"):
        Vault(tmp_path, "model").read()
