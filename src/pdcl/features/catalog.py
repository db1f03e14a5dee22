"""Feature maps by name (`random:2000`, `patches:50`, `spectrum:100`, `ngrams:2048`, `raw`), or by the input's shape."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import torch
from torch import nn

from pdcl.errors import UsageError
from pdcl.features.feature_map import FeatureMap
from pdcl.features.frozen import Frozen
from pdcl.features.ngrams import NGrams
from pdcl.features.patches import GRID, Patches
from pdcl.features.spectrum import Spectrum
from pdcl.features.vectors import RandomReLU, Raw
from pdcl.networks import LONG_SIGNAL
from pdcl.streams.task import Spec

NAMES = ("auto", "raw", "random", "patches", "spectrum", "ngrams")
USUAL = {"patches": 50, "spectrum": 100, "ngrams": 2048}
SMALLEST_IMAGE = 16
# Random features for each input, and how many at least and at most.
EACH, FEWEST, MOST = 10, 200, 2000


@dataclass(frozen=True)
class Chosen:
    """A kind of features and its size: width of random and ngrams, filters of patches and spectrum. stated: by a user,
    so that no bound may change it."""

    kind: str
    size: int
    stated: bool

    def width(self, spec: Spec) -> int:
        if self.kind in ("patches", "spectrum"):
            return 2 * GRID * GRID * self.size
        return math.prod(spec.shape) if self.kind == "raw" else self.size

    def within(self, width: int) -> Chosen:
        """The same with at most so many features."""
        each = 2 * GRID * GRID if self.kind in ("patches", "spectrum") else 1
        return self if self.kind == "raw" else Chosen(self.kind, max(1, min(self.size, width // each)), self.stated)


def chosen(text: str, spec: Spec) -> Chosen:
    """What this name means for such inputs."""
    match = re.fullmatch(r"([a-z]+)(?::(\d+))?", text)
    if match is None or match[1] not in NAMES or match[2] == "0" or (match[1] in ("raw", "auto") and match[2]):
        known = "raw, random:2000, patches:50, spectrum:100, ngrams:2048"
        raise UsageError(f"features={text!r} is none of {known}; in Python also a module that gives features")
    kind = by_shape(spec) if match[1] == "auto" else match[1]
    _check_shape(kind, text, spec)
    usual = USUAL.get(kind, min(MOST, max(FEWEST, EACH * math.prod(spec.shape))))
    return Chosen(kind, int(match[2] or usual), match[2] is not None or kind == "raw")


def by_shape(spec: Spec) -> str:
    """The kind that suits the input."""
    if spec.leaves:
        return "ngrams"
    shape = spec.shape
    if len(shape) <= 2 and shape and shape[-1] >= LONG_SIGNAL and (len(shape) == 1 or shape[0] == 1):
        return "spectrum"
    return "patches" if len(shape) in (2, 3) and min(shape[-2:]) >= SMALLEST_IMAGE else "random"


def _check_shape(kind: str, text: str, spec: Spec) -> None:
    words = any(leaf.name == "input_ids" and leaf.ragged for leaf in spec.leaves)
    image = len(spec.shape) in (2, 3) and min(spec.shape[-2:]) >= SMALLEST_IMAGE
    fits = {
        "ngrams": words,
        "patches": image and not spec.leaves,
        "spectrum": not spec.leaves and math.prod(spec.shape) >= LONG_SIGNAL and math.prod(spec.shape[:-1]) == 1,
    }
    if not fits.get(kind, not spec.leaves):
        raise UsageError(
            f"features={text!r} don't fit inputs {spec.inputs()}; give a module that makes features of them"
        )


def build(which: Chosen, spec: Spec, draws: bool) -> FeatureMap:
    """The map, not fitted yet. draws: keep nothing of single samples."""
    shape = spec.shape
    if which.kind == "patches":
        image = shape if len(shape) == 3 else (1, *shape)
        return Patches((image[0], image[1], image[2]), which.size, 1 if image[0] > 1 else 2, draws)
    if which.kind == "spectrum":
        return Spectrum(shape[-1], which.size, draws)
    if which.kind == "ngrams":
        return NGrams(which.size)
    inputs = math.prod(shape)
    one_unit = len(shape) > 1
    return Raw(inputs, one_unit) if which.kind == "raw" else RandomReLU(inputs, which.size, one_unit)


def of_module(module: nn.Module, spec: Spec) -> FeatureMap:
    """A user's module, or a map of ours that was fitted elsewhere."""
    if isinstance(module, FeatureMap):
        return module
    blank = spec.blank(1)
    seen = spec.transform(blank) if isinstance(blank, torch.Tensor) else blank
    try:
        return Frozen(module, seen)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(f"the module of features can't take inputs {spec.inputs()}: {reason}") from error
