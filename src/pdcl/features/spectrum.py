"""Signals of one channel: the logarithm of a spectrogram, then patches of it, as of an image."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from pdcl.features.feature_map import FeatureMap
from pdcl.features.patches import Patches
from pdcl.trees import Tree

BANDS, FRAMES = 64, 64
FAINTEST = 1e-6


class Spectrum(FeatureMap):
    """samples: length of a signal. filters: K of the patches. The spectrogram has about 64 × 64 cells."""

    window: Tensor

    def __init__(self, samples: int, filters: int, draws: bool = False) -> None:
        hop = max(1, samples // FRAMES)
        self.size, self.hop = 2 * BANDS * max(1, round(2 * hop / (2 * BANDS))), hop
        frames = 1 + samples // hop
        super().__init__(f"spectrum:{filters}", Patches((1, BANDS, frames), filters, 2, draws).width)
        self.patches = Patches((1, BANDS, frames), filters, 2, draws)
        self.register_buffer("window", torch.hann_window(self.size))

    piece = 50

    def pictures(self, x: Tensor) -> Tensor:
        """log power, n × 1 × bands × frames."""
        signal = x.flatten(1).to(self.window.dtype)
        found = torch.stft(signal, self.size, self.hop, window=self.window, pad_mode="constant", return_complex=True)
        power = found.abs().square()[:, 1:]
        power = power.unflatten(1, (BANDS, -1)).mean(2)
        picture: Tensor = (power + FAINTEST * self.size).log()[:, None]
        return picture

    def prepare(self, x: Tree, generator: Generator) -> None:
        assert isinstance(x, Tensor)
        self.patches.prepare(self.pictures(x), generator)

    def compute(self, x: Tensor) -> Tensor:
        return self.patches.compute(self.pictures(x))
