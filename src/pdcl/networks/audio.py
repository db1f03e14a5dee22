"""A 1-D convolutional network for raw waveforms of about a second."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.functional import pad

from pdcl.errors import UsageError
from pdcl.networks.cnn import by_pixel
from pdcl.networks.network import Network

SHORTEST = 1600
WINDOW, FRAME = 80, 16


class AudioCNN(Network):
    """Kernels 80 (stride 16), 3, 3, 3, each with BN, ReLU and max-pool 4; then the average over time.

    The first layer reads 10 ms windows at 8 kHz. Inputs are (n, channels, samples) or (n, samples).

    A window is five frames of 16 samples, so the first layer is a convolution over frames, with the 16 samples of a
    frame as its channels: the same numbers, in half the time. Maps are images of height 1 for the same reason.
    """

    def __init__(self, outputs: int, channels: int = 1, width: int = 32) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_block(FRAME * channels, width, WINDOW // FRAME, padding=0),
            *_block(width, width, 3, padding=1),
            *_block(width, width, 3, padding=1),
            *_block(width, width, 3, padding=1),
        )
        self.head = nn.Linear(width, outputs)

    def features(self, x: Tensor) -> Tensor:
        maps: Tensor = self.body(by_pixel(frames(x[:, None] if x.dim() == 2 else x)))
        return maps.mean((2, 3))


def frames(signals: Tensor) -> Tensor:
    """Signals (n, channels, samples) as images (n, 16 · channels, 1, frames), half a window of zeros at both ends."""
    length = signals.shape[-1] // FRAME * FRAME + WINDOW
    padded = pad(signals, (WINDOW // 2, length - WINDOW // 2 - signals.shape[-1]))
    framed: Tensor = padded.unflatten(-1, (-1, FRAME))
    return framed.transpose(2, 3).flatten(1, 2)[:, :, None]


def _block(inputs: int, outputs: int, kernel: int, padding: int) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(inputs, outputs, (1, kernel), padding=(0, padding), bias=False)
    return convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d((1, 4), ceil_mode=True)


def build_audio(shape: Sequence[int], outputs: int, width: int = 32) -> AudioCNN:
    """An audio CNN for signals of this shape."""
    if len(shape) not in (1, 2) or shape[-1] < SHORTEST:
        raise UsageError(f"inputs of shape {tuple(shape)} are no signals; (channels, samples ≥ {SHORTEST}) are wanted")
    return AudioCNN(outputs, 1 if len(shape) == 1 else shape[0], width)
