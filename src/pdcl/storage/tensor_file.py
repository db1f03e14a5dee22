"""Files of tensors (safetensors) that are larger than RAM should hold: written in pieces, read where they lie.

https://huggingface.co/docs/safetensors: eight bytes that say how long the header is; the header, JSON; the tensors.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}
# From here on a file is written in pieces and read in place.
LARGE = 2**22
PIECE = 2**24
LONGEST_HEADER = 10**8


class BadTensors(ValueError):
    """Bytes that no file of tensors holds."""


class TensorFile:
    """The bytes of a file with these tensors, piece by piece. They must not change meanwhile."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        # Wide types first, so that each begins at a multiple of its size.
        self.tensors = dict(sorted(tensors.items(), key=lambda each: (-each[1].element_size(), each[0])))

    def __iter__(self) -> Iterator[bytes | memoryview]:
        header, at = {}, 0
        for name, tensor in self.tensors.items():
            end = at + tensor.numel() * tensor.element_size()
            header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
            at = end
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        yield len(text).to_bytes(8, "little") + text
        for tensor in self.tensors.values():
            for piece in _bytes_of(tensor).split(PIECE) if tensor.numel() else ():
                yield memoryview(piece.cpu().numpy())


def can_be_written(tensors: Mapping[str, Tensor]) -> bool:
    """Whether every dtype has a name here."""
    return all(tensor.dtype in NAMES for tensor in tensors.values())


def _bytes_of(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().view(-1).view(torch.uint8)


def tensors_in_place(content: mmap.mmap) -> dict[str, Tensor]:
    """The tensors of a mapped file, none of them copied; writing to one changes no file."""
    try:
        return _tensors_in_place(content)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, RecursionError) as error:
        raise BadTensors(f"not a safetensors file: {error}") from error


def _tensors_in_place(content: mmap.mmap) -> dict[str, Tensor]:
    length = int.from_bytes(content[:8], "little")
    start = 8 + length
    if length > LONGEST_HEADER or start > len(content):
        raise BadTensors(f"its header would have {length} bytes")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    found, at = {}, start
    for name, about in sorted(header.items(), key=lambda each: each[1]["data_offsets"]):
        dtype, shape = DTYPES[about["dtype"]], [_count(size) for size in about["shape"]]
        begin, end = (start + _count(offset) for offset in about["data_offsets"])
        count = int(torch.Size(shape).numel())
        if begin != at or end - begin != count * dtype.itemsize or end > len(content):
            raise BadTensors(f"{name!r} has other bytes than its shape needs")
        found[name] = _mapped(content, dtype, count, begin).view(shape)
        at = end
    if at != len(content):
        raise BadTensors(f"{len(content) - at} bytes belong to no tensor")
    return found


def _mapped(content: mmap.mmap, dtype: torch.dtype, count: int, begin: int) -> Tensor:
    return torch.frombuffer(content, dtype=dtype, count=count, offset=begin) if count else torch.zeros(0, dtype=dtype)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadTensors(f"{value!r} is no number of entries")
    return value
