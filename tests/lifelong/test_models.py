"""A saved learner: what no file can hold is handed in again, what isn't good isn't kept, other runtimes agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import pdcl
from pdcl.errors import Diverged, StateError, UsageError
from pdcl.lab.methods.er import ER
from pdcl.lifelong.save import APART
from pdcl.storage import vault
from pdcl.storage.serialize import as_parts, from_parts, same
from pdcl.storage.vault import Vault
from pdcl.streams.transform import Transform

PdclErrors = (UsageError, StateError)


def _own(outputs: int = 2, hidden: int = 9) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def test_a_module_of_ones_own_is_handed_in_again(tmp_path: Path, blobs: Any) -> None:
    learner = pdcl.PDCL(_own(), memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    learner.learn(*blobs(["c", "d"]), epochs=1)
    learner.save(tmp_path / "model")
    with pytest.raises(PdclErrors, match="network="):
        pdcl.load(tmp_path / "model")
    found = pdcl.load(tmp_path / "model", network=_own())
    assert same(found.state_dict(), learner.state_dict())
    with pytest.raises(PdclErrors, match=r"0\.weight is \(8, 5\) here, \(9, 5\) in the saved state"):
        pdcl.load(tmp_path / "model", network=_own(4, hidden=8))


class _Squared(Transform):
    def normalised(self, raw: torch.Tensor) -> torch.Tensor:
        return raw.square()


def test_a_transform_of_ones_own_is_handed_in_again(tmp_path: Path, blobs: Any) -> None:
    x, y = blobs(["a", "b"])
    learner = pdcl.PDCL("mlp:7", memory=10)
    learner.learn(x, y, epochs=1, transform=_Squared())
    learner.save(tmp_path / "model")
    with pytest.raises(PdclErrors, match="transform="):
        pdcl.load(tmp_path / "model")
    found = pdcl.load(tmp_path / "model", transform=_Squared())
    raw = torch.as_tensor(x)
    assert torch.equal(found.evaluated(raw), learner.evaluated(raw))
    assert torch.equal(found.evaluated(raw), found.evaluated(-raw))


def test_weights_that_are_no_longer_finite_are_not_saved_over_good_ones(tmp_path: Path, blobs: Any) -> None:
    learner = ER("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    learner.save(tmp_path / "model")
    good = learner.predict(blobs(["a", "b"])[0]).tolist()
    with torch.no_grad():
        next(learner.model.parameters())[0] = torch.inf
    with pytest.raises(Diverged, match="no longer finite"):
        learner.save(tmp_path / "model")
    assert pdcl.load(tmp_path / "model").predict(blobs(["a", "b"])[0]).tolist() == good


def test_a_model_of_the_format_before_goes_on_and_a_run_says_why_it_cannot(
    tmp_path: Path, blobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = ER("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    learner.save(tmp_path / "model")
    held = Vault(tmp_path / "model", "model").read()
    state = from_parts(held.parts)
    memory = state["learner"]["memory"]
    memory["seen"] = memory.pop("reservoir")["seen"]
    monkeypatch.setattr(vault, "FORMAT", 1)
    for kind in ("model", "checkpoint"):
        Vault(tmp_path / "old" / kind, kind).write(as_parts(state, APART), held.about)
    monkeypatch.undo()
    found = pdcl.load(tmp_path / "old" / "model")
    assert found.held.seen == learner.held.seen
    found.learn(*blobs(["c", "d"]), epochs=1)
    assert len(found.held) == 10
    with pytest.raises(StateError, match=r"has format 1.*wouldn't go on to the same result.*wrote it"):
        Vault(tmp_path / "old" / "checkpoint", "checkpoint").read()


def test_a_class_that_is_not_registered_is_handed_in(tmp_path: Path, blobs: Any) -> None:
    from dataclasses import dataclass

    @dataclass(eq=False)
    class Mine(pdcl.PDCL):
        pass

    learner = Mine("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    learner.save(tmp_path / "model")
    with pytest.raises(PdclErrors, match="Mine"):
        pdcl.load(tmp_path / "model")
    assert isinstance(pdcl.load(tmp_path / "model", learner=Mine), Mine)


def test_nothing_learned_is_nothing_to_save(tmp_path: Path) -> None:
    learner = pdcl.PDCL("linear", memory=10)
    with pytest.raises(UsageError, match="learned nothing"):
        learner.save(tmp_path / "model")
    with pytest.raises(UsageError, match="learned nothing"):
        learner.predict(np.zeros((1, 5), np.float32))
    assert not (tmp_path / "model").exists()


def test_export_gives_the_same_outputs_and_its_labels(tmp_path: Path, blobs: Any) -> None:
    learner = pdcl.PDCL("mlp:7", memory=10)
    x, y = blobs(["a", "b"])
    learner.learn(x, y, epochs=1)
    path = learner.export(tmp_path / "m.pt2")
    program = torch.export.load(path).module()
    with torch.no_grad():
        found = program(torch.as_tensor(x))
    assert torch.allclose(found, learner.evaluated(torch.as_tensor(x)), atol=1e-5)
    assert json.loads((tmp_path / "m.pt2.labels.json").read_text())["labels"] == ["a", "b"]
    with pytest.raises(UsageError, match="onnx or"):
        learner.export(tmp_path / "m.zip")


def test_an_onnx_file_gives_the_same_outputs_for_any_number_of_images(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (30, 1, 12, 12), dtype=np.uint8)
    learner = pdcl.PDCL("cnn", memory=10)
    learner.learn(x, np.array(["a", "b", "c"] * 10), epochs=1, transform=Transform(mean=(0.4,), std=(0.2,)))
    session = runtime.InferenceSession(str(learner.export(tmp_path / "m.onnx")), providers=["CPUExecutionProvider"])
    for count in (1, 7):
        (found,) = session.run(None, {session.get_inputs()[0].name: x[:count]})
        assert np.allclose(found, learner.evaluated(torch.as_tensor(x[:count])).numpy(), atol=1e-4)


class _Adapted(nn.Module):
    """A frozen layer, a small one that learns beside it, and a head."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.base = nn.Linear(6, 64).requires_grad_(False)
            torch.manual_seed(7)
            self.adapter, self.head = nn.Linear(6, 64), nn.Linear(64, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((self.base(x) + self.adapter(x)).relu())  # type: ignore[no-any-return]


def test_frozen_parameters_can_be_left_out_and_come_back_with_the_network(tmp_path: Path) -> None:
    import safetensors.torch

    x = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    learner = pdcl.learner("er", _Adapted(), memory=10)
    learner.learn(x, ["a", "b"] * 20, epochs=1)
    learner.learn(x, ["c", "b"] * 20, epochs=1)
    learner.save(tmp_path / "small", frozen=False)
    held = safetensors.torch.load_file(tmp_path / "small" / "network.safetensors")
    assert set(held) == {"adapter.weight", "adapter.bias", "head.weight", "head.bias"}
    found = pdcl.load(tmp_path / "small", network=_Adapted())
    assert found.predict(x).tolist() == learner.predict(x).tolist()
    assert not found.model.base.weight.requires_grad
    with pytest.raises(StateError, match="pretrained network that it was made with"):
        pdcl.load(tmp_path / "small", network=_Adapted(seed=1))
    whole = pdcl.load(learner.save(tmp_path / "whole"), network=_Adapted(seed=1))
    assert whole.predict(x).tolist() == learner.predict(x).tolist()


def test_leaving_out_what_isn_t_frozen_is_refused(tmp_path: Path) -> None:
    learner = pdcl.learner("er", "mlp:8", memory=10)
    learner.learn(torch.zeros(8, 6), [0, 1] * 4, epochs=1)
    with pytest.raises(UsageError, match="frozen=False has no effect"):
        learner.save(tmp_path / "model", frozen=False)
