"""The network alone, for other runtimes: exported, checked against torch, its labels beside it."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pdcl.errors import StateError, UsageError
from pdcl.given import path_of
from pdcl.storage.disk import reported, write_whole

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner
    from pdcl.streams.transform import Transform

TOLERANCE = 1e-4


class Deployed(nn.Module):
    """Raw inputs to outputs: the transform and the network in one."""

    def __init__(self, transform: Transform, network: nn.Module) -> None:
        super().__init__()
        self.transform, self.network = transform, network

    def forward(self, raw: Tensor) -> Tensor:
        outputs: Tensor = self.network(self.transform(raw))
        return outputs


def export(learner: Learner, path: str | Path) -> Path:
    """Write the network alone, as `m.onnx` or `m.pt2`, checked against torch, with `m.onnx.labels.json` beside it."""
    path = path_of(path, "path")
    if learner.spec is None:
        raise UsageError("this learner has learned nothing yet; call learn(x, y) first")
    if path.suffix not in (".onnx", ".pt2"):
        raise UsageError(f"export to {path.name!r}: the name must end in .onnx or .pt2")
    if learner.spec.leaves:
        raise UsageError(
            f"export takes networks of one tensor, and inputs are {learner.spec.inputs()}; use torch.export"
        )
    example = _example(learner)
    training = learner.model.training
    deployed = Deployed(learner.spec.transform, learner.model).cpu().eval()
    try:
        with reported(path), TemporaryDirectory(prefix=".export-", dir=path.parent) as own, torch.no_grad():
            fresh = Path(own) / path.name
            found = (_onnx if path.suffix == ".onnx" else _pt2)(deployed, example, fresh)
            _compare(deployed(example), found, path)
            fresh.replace(path)
            about = {"labels": list(learner.spec.labels), "shape": list(learner.spec.shape), "kind": learner.spec.kind}
            write_whole(path.with_name(f"{path.name}.labels.json"), (json.dumps(about, indent=1) + "\n").encode())
    finally:
        learner.model.to(learner.place).train(training)
    return path


def _example(learner: Learner) -> Tensor:
    spec, store = learner.spec, learner.store
    assert spec is not None
    if store is not None and len(store) > 1:
        stored: Tensor = store["x"][:8].cpu().clone()
        return stored
    return torch.zeros(2, *spec.shape, dtype=spec.dtype)


def _pt2(network: nn.Module, example: Tensor, path: Path) -> Tensor:
    batch = torch.export.Dim("batch", min=1)
    torch.export.save(torch.export.export(network, (example,), dynamic_shapes=({0: batch},)), path)
    outputs: Tensor = torch.export.load(path).module()(example)
    return outputs


def _onnx(network: nn.Module, example: Tensor, path: Path) -> Tensor:
    try:
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UsageError(f"export to ONNX needs {error.name}: pip install 'pdcl[onnx]'") from error
    batch = torch.export.Dim("batch", min=1)
    program: Any = torch.onnx.export(network, (example,), dynamo=True, dynamic_shapes=({0: batch},), verbose=False)
    program.save(str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    outputs = session.run(None, {session.get_inputs()[0].name: example.numpy()})
    return torch.as_tensor(outputs[0])


def _compare(expected: Tensor, found: Tensor, path: Path) -> None:
    if expected.shape != found.shape or not torch.allclose(expected, found, rtol=TOLERANCE, atol=TOLERANCE):
        raise StateError(f"{path}: the exported network gives other outputs than torch; it was not written", path)
