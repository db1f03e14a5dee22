"""The one door from the product to the lab: by name, when it is asked for, so that nothing here imports it.

The lab (`pdcl.lab`) holds what a researcher needs to compare and reproduce: other people's methods, benchmarks,
presets, studies, figures, the paper. The product works without a line of it being imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def lab(part: str) -> Any:
    """A part of the lab: methods, benchmarks, presets, cli.study, …"""
    return import_module(f"pdcl.lab.{part}")
