"""Tests against Avalanche, which has an environment of its own: `make test-integrations` makes it.

Avalanche imports torchvision, whose compiled operators exist for few builds of torch. None of them is called here, so
their names are enough.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "integrations"))

OPERATORS = (
    "nms", "qnms", "roi_align", "_roi_align_backward", "qroi_align", "ps_roi_align", "_ps_roi_align_backward",
    "roi_pool", "_roi_pool_backward", "ps_roi_pool", "_ps_roi_pool_backward", "deform_conv2d",
    "_deform_conv2d_backward", "box_iou_rotated",
)  # fmt: skip
# A definition lives as long as its library.
SHIM = torch.library.Library("torchvision", "FRAGMENT")


def define_operators() -> None:
    for name in OPERATORS:
        try:
            SHIM.define(f"{name}(Tensor x) -> Tensor")
        except RuntimeError:
            continue  # torchvision's own are here


define_operators()
if os.environ.get("PDCL_INTEGRATIONS", "") not in ("", "0"):
    import avalanche  # noqa: F401  Missing here, it is an error and no skip.
