"""A nested state as the files of a vault: `state.json`, `state.safetensors`, and tensors with a file of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from pdcl.storage.nested import BadState, json_bytes, json_in, pack, tensor_bytes, tensors_in, unpack

STATE, TENSORS = "state.json", "state.safetensors"


def as_parts(state: Mapping[str, Any], apart: Mapping[str, str]) -> dict[str, bytes]:
    """`apart` maps a file to the path whose tensors it holds: {"network.safetensors": "learner/network"}."""
    tensors, plan = pack(state)
    files: dict[str, dict[str, Tensor]] = {TENSORS: {}, **{name: {} for name in apart}}
    for path, tensor in tensors.items():
        name, inside = _place(path, apart)
        files[name][inside] = tensor
    text = json_bytes({"apart": dict(apart), "state": plan})
    return {STATE: text, **{name: tensor_bytes(held) for name, held in files.items()}}


def from_parts(parts: Mapping[str, bytes]) -> dict[str, Any]:
    """The state that `as_parts` was given. Raises BadState where it isn't one."""
    content = json_in(_part(parts, STATE))
    if not isinstance(content, dict) or not isinstance(content.get("apart"), dict):
        raise BadState(f"{STATE} doesn't say where its tensors are")
    tensors = tensors_in(_part(parts, TENSORS))
    for name, root in content["apart"].items():
        tensors |= {f"{root}/{inside}": tensor for inside, tensor in tensors_in(_part(parts, name)).items()}
    state = unpack(tensors, content.get("state"))
    if not isinstance(state, dict):
        raise BadState(f"{STATE} holds no state")
    return state


def _place(path: str, apart: Mapping[str, str]) -> tuple[str, str]:
    for name, root in apart.items():
        if path.startswith(f"{root}/"):
            return name, path[len(root) + 1 :]
    return TENSORS, path


def _part(parts: Mapping[str, bytes], name: str) -> bytes:
    if name not in parts:
        raise BadState(f"{name} is missing")
    return parts[name]
