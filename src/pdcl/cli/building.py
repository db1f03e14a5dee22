"""`--network PACKAGE.MODULE:FUNCTION`: a network of the user's, built because the user says so, never a file."""

from __future__ import annotations

import os
import sys
from typing import Any

from pdcl.errors import UsageError


def own_network(text: str | None, seed: int = 0) -> Any:
    """The module that the function builds, its weights drawn with `seed`; other names stay as they are.

    The current directory is looked in first, as `python -m` does.
    """
    from pdcl.networks.named import is_name

    if text is None or is_name(text):
        return text
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        built = _called(text)
    if not isinstance(built, torch.nn.Module):
        raise UsageError(f"--network {text!r} built a {type(built).__name__}; it must build a torch.nn.Module")
    built.pdcl_reference = text  # type: ignore[assignment]
    return built


def _called(text: str) -> Any:
    from importlib import import_module

    module, _, function = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        build = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"--network {text!r} must be PACKAGE.MODULE:FUNCTION: {error}") from error
    return build()
