"""Stored samples as small pictures: images as one PNG strip, signals and vectors as outlines."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SIDE = 32
BINS = 40
DARK = 64


def is_image(x: Array) -> bool:
    """Whether rows of `x` are pictures: (n, 1 or 3, height, width), or (n, height, width)."""
    return (x.ndim == 4 and x.shape[1] in (1, 3)) or (x.ndim == 3 and x.shape[1] > 3)


def strip(x: Array) -> dict[str, Any]:
    """Images side by side in one PNG, none larger than 32 pixels a side."""
    images = _pixels(x)
    count, height, width = images.shape[:3]
    row = images.transpose(1, 0, 2, 3).reshape(height, count * width, images.shape[3])
    url = "data:image/png;base64," + base64.b64encode(png(row)).decode()
    return {"url": url, "width": width, "height": height, "count": count}


def _pixels(x: Array) -> Array:
    """(n, h, w, channels) bytes; what isn't bytes, or only dark ones, is stretched between its least and largest."""
    images = x[:, None] if x.ndim == 3 else x
    step = -(-max(images.shape[2:]) // SIDE)
    if images.dtype != np.uint8 or images.max(initial=0) < DARK:
        images = np.nan_to_num(images.astype(np.float32))
        low, high = float(images.min()), float(images.max())
        images = (images - low) * (255.0 / (high - low if high > low else 1.0))
    return _reduced(images, step).astype(np.uint8).transpose(0, 2, 3, 1)


def _reduced(images: Array, step: int) -> Array:
    if step <= 1:
        return images
    count, channels, height, width = images.shape
    height, width = height // step * step, width // step * step
    cut = images[:, :, :height, :width].astype(np.float32)
    blocks: Array = cut.reshape(count, channels, height // step, step, width // step, step).mean((3, 5))
    return blocks


def png(pixels: Array) -> bytes:
    """A PNG file of (height, width, 1 or 3) bytes."""
    height, width, channels = pixels.shape
    raw = np.zeros((height, width * channels + 1), np.uint8)
    raw[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(raw.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def outlines(x: Array) -> list[list[list[int]]]:
    """The lowest and highest value in each of at most 40 stretches of every signal, between −100 and 100."""
    signals = np.nan_to_num(x.reshape(len(x), -1).astype(np.float32))
    largest = np.abs(signals).max(axis=1, keepdims=True)
    scaled = 100 * signals / np.where(largest > 0, largest, 1)
    parts = np.array_split(scaled, min(BINS, scaled.shape[1]), axis=1)
    low = np.stack([part.min(axis=1) for part in parts], axis=1).round().astype(int)
    high = np.stack([part.max(axis=1) for part in parts], axis=1).round().astype(int)
    return [[a.tolist(), b.tolist()] for a, b in zip(low, high, strict=True)]
