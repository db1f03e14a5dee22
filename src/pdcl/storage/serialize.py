"""A nested state of tensors and plain values: as named tensors and one JSON value, and as the files of a vault."""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from typing import Any, TypeAlias

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.storage.tensor_file import LARGE, BadTensors, TensorFile, can_be_written, tensors_in_place

TENSOR, TUPLE, PAIRS, NUMBER = "$tensor", "$tuple", "$pairs", "$number"
STATE, TENSORS = "state.json", "state.safetensors"
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

# A file that was read; a large one is mapped.
Part: TypeAlias = bytes | mmap.mmap


class BadState(ValueError):
    """Bytes or JSON that no state was packed into."""


def pack(state: Any) -> tuple[dict[str, Tensor], Any]:
    """The tensors in `state`, named by their path, and the rest as JSON with `{"$tensor": path}` in their place."""
    tensors: dict[str, Tensor] = {}
    return tensors, _pack(state, (), tensors)


def _pack(value: Any, path: tuple[str, ...], tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        name = "/".join(path)
        tensors[name] = value
        return {TENSOR: name}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _pack(item, (*path, key), tensors) for key, item in value.items()}
        return {PAIRS: [[key, _pack(item, (*path, str(key)), tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        items = [_pack(item, (*path, str(index)), tensors) for index, item in enumerate(value)]
        return {TUPLE: items} if isinstance(value, tuple) else items
    if isinstance(value, float) and not math.isfinite(value):
        return {NUMBER: str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    where = ".".join(path)
    raise UsageError(
        f"{where} is {type(value).__name__}, which can't be saved: a state is made of tensors, numbers, text, "
        "lists and dicts; save what it was made from instead"
    )


def unpack(tensors: Mapping[str, Tensor], value: Any) -> Any:
    """What `pack` was given. Raises BadState where the two don't belong together."""
    if isinstance(value, list):
        return [unpack(tensors, item) for item in value]
    if not isinstance(value, dict):
        return value
    marks = [key for key in value if key.startswith("$")]
    if not marks:
        return {key: unpack(tensors, item) for key, item in value.items()}
    if len(value) != 1:
        raise BadState(f"a value is marked {marks} and holds more")
    return _unmarked(tensors, marks[0], value[marks[0]])


def _unmarked(tensors: Mapping[str, Tensor], mark: str, inner: Any) -> Any:
    if mark == TENSOR and isinstance(inner, str) and inner in tensors:
        return tensors[inner]
    if mark == TUPLE and isinstance(inner, list):
        return tuple(unpack(tensors, item) for item in inner)
    if mark == NUMBER and isinstance(inner, str) and inner in _NUMBERS:
        return _NUMBERS[inner]
    if mark == PAIRS and isinstance(inner, list) and all(map(_is_pair, inner)):
        return {key: unpack(tensors, item) for key, item in inner}
    raise BadState(f"{mark} of {str(inner)[:80]!r} is nothing that was saved")


def _is_pair(value: Any) -> bool:
    plain = (str, int, float, type(None))
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], plain)


def tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors in safetensors format. Copies, since several of them may share storage, which the format can't say."""
    plain = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    return safetensors.torch.save(plain)


def tensor_content(tensors: Mapping[str, Tensor]) -> bytes | TensorFile:
    """The same, in pieces where they are large."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    return TensorFile(tensors) if size >= LARGE and can_be_written(tensors) else tensor_bytes(tensors)


def tensors_in(content: Part) -> dict[str, Tensor]:
    """The tensors of a safetensors file; its header is checked against its length before anything is made."""
    try:
        return tensors_in_place(content) if isinstance(content, mmap.mmap) else safetensors.torch.load(content)
    except BadTensors as error:
        raise BadState(str(error)) from error
    except (safetensors.SafetensorError, ValueError, TypeError, KeyError, RuntimeError, OverflowError) as error:
        raise BadState(f"not a safetensors file: {error}") from error


def json_bytes(value: Any) -> bytes:
    return (json.dumps(value, allow_nan=False, ensure_ascii=False, indent=1) + "\n").encode()


def json_in(content: Part) -> Any:
    try:
        return json.loads(content[:])
    except (ValueError, RecursionError) as error:
        raise BadState(f"not JSON: {error}") from error


def same(one: Any, other: Any) -> bool:
    """Whether two states are equal to the bit."""
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return isinstance(one, Tensor) and isinstance(other, Tensor) and _same_tensor(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other) or (one != one and other != other)


def _same_tensor(one: Tensor, other: Tensor) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return tensor_bytes({"": one}) == tensor_bytes({"": other}) if one.numel() else bool(torch.equal(one, other))


def as_parts(state: Mapping[str, Any], apart: Mapping[str, str]) -> dict[str, bytes]:
    """`apart` maps a file to the path whose tensors it holds: {"network.safetensors": "learner/network"}."""
    text, files = _files(state, apart)
    return {STATE: text, **{name: tensor_bytes(held) for name, held in files.items()}}


def as_contents(state: Mapping[str, Any], apart: Mapping[str, str]) -> dict[str, bytes | TensorFile]:
    """The same for a writer: large files in pieces."""
    text, files = _files(state, apart)
    return {STATE: text, **{name: tensor_content(held) for name, held in files.items()}}


def _files(state: Mapping[str, Any], apart: Mapping[str, str]) -> tuple[bytes, dict[str, dict[str, Tensor]]]:
    tensors, plan = pack(state)
    files: dict[str, dict[str, Tensor]] = {TENSORS: {}, **{name: {} for name in apart}}
    for path, tensor in tensors.items():
        name, inside = _place(path, apart)
        files[name][inside] = tensor
    return json_bytes({"apart": dict(apart), "state": plan}), files


def from_parts(parts: Mapping[str, Part]) -> dict[str, Any]:
    """The state that `as_parts` was given. Raises BadState where it isn't one."""
    content = json_in(_part(parts, STATE))
    if not isinstance(content, dict) or not isinstance(content.get("apart"), dict):
        raise BadState(f"{STATE} doesn't say where its tensors are")
    tensors = tensors_in(_part(parts, TENSORS))
    for name, root in content["apart"].items():
        tensors |= {f"{root}/{inside}": tensor for inside, tensor in tensors_in(_part(parts, name)).items()}
    try:
        state = unpack(tensors, content.get("state"))
    except RecursionError as error:
        raise BadState(f"{STATE} is nested too deeply") from error
    if not isinstance(state, dict):
        raise BadState(f"{STATE} holds no state")
    return state


def _place(path: str, apart: Mapping[str, str]) -> tuple[str, str]:
    for name, root in apart.items():
        if path.startswith(f"{root}/"):
            return name, path[len(root) + 1 :]
    return TENSORS, path


def _part(parts: Mapping[str, Part], name: str) -> Part:
    if name not in parts:
        raise BadState(f"{name} is missing")
    return parts[name]
