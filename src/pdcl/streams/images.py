"""`pdcl.images`: a folder of images, one folder per class, as a Dataset that is read when a batch needs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from torch.utils.data import Dataset

from pdcl.errors import UsageError
from pdcl.given import short
from pdcl.streams.checks import BadData

ENDINGS = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
MODES = {1: "L", 3: "RGB"}


class Images(Dataset[tuple[np.ndarray, str]]):
    """Images as bytes (channels × height × width), each with its folder's name; `files` and `targets` say which."""

    def __init__(self, files: list[Path], size: tuple[int, int], channels: int) -> None:
        self.files, self.size, self.channels = files, size, channels
        self.targets = [file.parent.name for file in files]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[np.ndarray, str]:
        from PIL import Image

        file = self.files[index]
        try:
            with Image.open(file) as image:
                height, width = self.size
                pixels = np.array(image.convert(MODES[self.channels]).resize((width, height)))
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as cause:
            raise BadData(f"{file} is no image that can be read ({cause}); mend it or take it out") from cause
        return pixels.reshape(height, width, self.channels).transpose(2, 0, 1).copy(), self.targets[index]

    def __repr__(self) -> str:
        return f"<Images: {len(self)} of {len({*self.targets})} classes>"


def images(folder: str | Path, *, size: int | tuple[int, int] = 32, channels: int = 3) -> Images:
    """A folder of images, one folder per class (`photos/cat/1.png`), for `pdcl.split`, `learn` and `evaluate`.

    size: what every image is resized to, one number or (height, width). channels: 3 for colour, 1 for grey. Other files
    and hidden ones are left out. Needs Pillow: `pip install 'pdcl[images]'`.
    """
    given = (size, size) if isinstance(size, int) else size
    if not (isinstance(given, tuple) and len(given) == 2 and all(type(side) is int and side > 0 for side in given)):
        raise UsageError(f"size={short(size)} must be a number of pixels, or (height, width)")
    if channels not in MODES:
        raise UsageError(f"channels={short(channels)} must be 3 (colour) or 1 (grey)")
    try:
        import PIL  # noqa: F401
    except ImportError as cause:
        raise UsageError("reading images needs Pillow: pip install 'pdcl[images]'") from cause
    place = Path(folder)
    if not place.is_dir():
        raise BadData(f"{place} is no folder; pdcl.images needs one with a folder per class, such as {place}/cat/1.png")
    found = sorted(f for f in place.glob("*/*") if f.suffix.lower() in ENDINGS and not f.name.startswith("."))
    if not found:
        raise BadData(f"{place} has no image in a folder of its own; write them as {place}/cat/1.png")
    return Images(found, given, channels)
