"""A learner as a directory that can be copied, versioned and loaded elsewhere."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pdcl.errors import StateError, UsageError
from pdcl.given import path_of
from pdcl.lifelong.backbone import tensors_hash
from pdcl.lifelong.card import card
from pdcl.limits.tolerance import Tolerance, describe
from pdcl.storage.disk import reason, reported, write_whole
from pdcl.storage.locking import NAME as LOCK
from pdcl.storage.locking import Lock
from pdcl.storage.serialize import as_contents
from pdcl.storage.vault import PREVIOUS, Vault
from pdcl.streams.task import Spec
from pdcl.streams.transform import Transform
from pdcl.trees import LeafSpec

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

KIND, CARD = "model", "MODEL.md"
APART = {
    "network.safetensors": "learner/network",
    "memory.safetensors": "learner/memory/columns",
    "seen.safetensors": "lineage",
}
DTYPES = {str(d).removeprefix("torch."): d for d in (
    torch.float32, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.bool,
)}  # fmt: skip


def save_to(self: Learner, path: str | Path, *, frozen: bool = True) -> Path:
    """Save everything to a directory, for `pdcl.load`. Another learner's state there is never overwritten.

    frozen=False leaves out parameters that don't learn, such as a large model under LoRA: `pdcl.load` then takes
    them from the network that is handed in, which must have the same ones.
    """
    return save(self, path_of(path, "path"), frozen=frozen)


def save(learner: Learner, path: Path, state_id: str | None = None, amend: bool = False, frozen: bool = True) -> Path:
    """Write the directory, whole; the state before it stays in `previous/`.

    amend: only the lineage says something new, so the state takes the place of the one before it. state_id: how this
    state is known, where that has to be known beforehand. frozen: also what doesn't learn.
    """
    if learner.spec is None:
        raise UsageError("this learner has learned nothing yet, so there is nothing to save; call learn(x, y) first")
    _check_frozen(learner, frozen)
    learner.check_finite()
    with reported(path):
        path.mkdir(parents=True, exist_ok=True)
    with Lock(path):
        vault = Vault(path, KIND)
        _check_own(learner, vault)
        state_id = state_id or new_state_id()
        # It stays there if writing fails: the state may be in place already, and must be known as this learner's own.
        learner.lineage.settle().states.append(state_id)
        about = {"state": state_id, "tasks": learner.tasks_learned}
        vault.write(as_contents(_state(learner, frozen), APART), about, amend)
        _write_card(learner, path)
    learner.home = learner.home or path
    return path


def new_state_id() -> str:
    return secrets.token_hex(8)


def _write_card(learner: Learner, path: Path) -> None:
    try:
        write_whole(path / CARD, card(learner).encode())
    except OSError as error:
        text = f"{path} is saved, but its {CARD} can't be written: {reason(error)}; save again to have it"
        raise StateError(text, path / CARD) from error


def _check_own(learner: Learner, vault: Vault) -> None:
    """Refuse to overwrite what this learner didn't grow from."""
    if vault.exists():
        found = vault.read().about.get("state")
        if found not in learner.lineage.states:
            text = f"{vault.path} holds another state, which this learner didn't come from; save to another directory"
            raise StateError(text, vault.path)
    elif any(item.name not in (LOCK, PREVIOUS) for item in vault.path.iterdir()):
        raise StateError(f"{vault.path} holds something else than a model; save to another directory", vault.path)


def _check_frozen(learner: Learner, frozen: bool) -> None:
    if not frozen and (isinstance(learner.network, str) or not frozen_parameters(learner.model)):
        raise UsageError("frozen=False has no effect: every parameter of this network learns; leave it out")


def _state(learner: Learner, frozen: bool) -> dict[str, Any]:
    own = {f.name: getattr(learner, f.name) for f in fields(learner) if f.init}
    written = {name: _written(value) for name, value in own.items() if _writable(value)}
    assert learner.spec is not None
    state, left_out = learner.state_dict(), {} if frozen else frozen_parameters(learner.model)
    state["network"] = {name: value for name, value in state["network"].items() if name not in left_out}
    return {
        "model": {
            "learner": type(learner).__name__,
            "options": written,
            "handed": sorted([*(own.keys() - written.keys()), *_own_transform(learner)]),
            "spec": spec_as_json(learner.spec),
            "reading": transform_as_json(learner.reading),
            "frozen": [name for name, p in learner.model.named_parameters() if not p.requires_grad],
            "backbone": learner.backbone_hash,
            **({} if learner.table is None else {"table": learner.table.as_json()}),
            **({"left_out": tensors_hash(left_out)} if left_out else {}),
        },
        "learner": state,
        "lineage": learner.lineage.state_dict(),
    }


def frozen_parameters(model: nn.Module) -> dict[str, Tensor]:
    """The parameters that don't learn, by name."""
    return {name: p.detach() for name, p in model.named_parameters() if not p.requires_grad}


def _own_transform(learner: Learner) -> list[str]:
    assert learner.spec is not None
    ours = type(learner.spec.transform) is type(learner.reading) is Transform
    return [] if ours else ["transform"]


def _writable(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_writable, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_writable, value))
    return value is None or isinstance(value, bool | int | float | str | Tolerance)


def _written(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _written(each) for key, each in value.items()}
    return describe(value) if isinstance(value, Tolerance) else value


def spec_as_json(spec: Spec) -> dict[str, Any]:
    return {
        "shape": list(spec.shape),
        "dtype": str(spec.dtype).removeprefix("torch."),
        "outputs": spec.outputs,
        "kind": spec.kind,
        "labels": list(spec.labels),
        "heads": None if spec.heads is None else [list(head) for head in spec.heads],
        "transform": transform_as_json(spec.transform),
        **({"leaves": [_leaf_as_json(leaf) for leaf in spec.leaves]} if spec.leaves else {}),
    }


def _leaf_as_json(leaf: LeafSpec) -> list[Any]:
    return [leaf.name, list(leaf.shape), str(leaf.dtype).removeprefix("torch."), leaf.ragged]


def _leaf_from_json(saved: list[Any]) -> LeafSpec:
    name, shape, dtype, ragged = saved
    return LeafSpec(str(name), tuple(map(int, shape)), DTYPES[dtype], bool(ragged))


def spec_from_json(saved: dict[str, Any], transform: Transform | None = None) -> Spec:
    heads = saved["heads"]
    return Spec(
        tuple(map(int, saved["shape"])),
        DTYPES[saved["dtype"]],
        int(saved["outputs"]),
        str(saved["kind"]),
        tuple(saved["labels"]),
        None if heads is None else tuple(tuple(map(int, head)) for head in heads),
        transform_from_json(saved["transform"], transform),
        tuple(_leaf_from_json(leaf) for leaf in saved.get("leaves", ())),
    )


def transform_as_json(transform: Transform) -> dict[str, Any] | None:
    """None for one of a class of the user's own, which is handed in again."""
    return asdict(transform) if type(transform) is Transform else None


def transform_from_json(saved: dict[str, Any] | None, handed: Transform | None) -> Transform:
    if saved is None:
        assert handed is not None
        return handed
    return Transform(**{**saved, "mean": tuple(saved["mean"]), "std": tuple(saved["std"])})
