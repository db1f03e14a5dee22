"""A 1-D convolutional network for raw waveforms of about a second."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from pdcl.errors import UsageError
from pdcl.networks.network import Network

SHORTEST = 1600


class AudioCNN(Network):
    """Kernels 80 (stride 16), 3, 3, 3, each with BN, ReLU and max-pool 4; then the average over time.

    The first layer reads 10 ms windows at 8 kHz. Inputs are (n, channels, samples) or (n, samples).
    """

    def __init__(self, outputs: int, channels: int = 1, width: int = 32) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_block(channels, width, 80, stride=16),
            *_block(width, width, 3),
            *_block(width, width, 3),
            *_block(width, width, 3),
        )
        self.head = nn.Linear(width, outputs)

    def features(self, x: Tensor) -> Tensor:
        signals = x[:, None] if x.dim() == 2 else x
        maps: Tensor = self.body(signals)
        return maps.mean(-1)


def _block(inputs: int, outputs: int, kernel: int, stride: int = 1) -> tuple[nn.Module, ...]:
    convolution = nn.Conv1d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    return convolution, nn.BatchNorm1d(outputs), nn.ReLU(), nn.MaxPool1d(4, ceil_mode=True)


def build_audio(shape: Sequence[int], outputs: int, width: int = 32) -> AudioCNN:
    """An audio CNN for signals of this shape."""
    if len(shape) not in (1, 2) or shape[-1] < SHORTEST:
        raise UsageError(f"inputs of shape {tuple(shape)} are no signals; (channels, samples ≥ {SHORTEST}) are wanted")
    return AudioCNN(outputs, 1 if len(shape) == 1 else shape[0], width)
