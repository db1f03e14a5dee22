"""`--network PACKAGE.MODULE:FUNCTION`: a network of the user's, built because the user says so, never a file."""

from __future__ import annotations

import os
import sys
import traceback
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
    except (ImportError, AttributeError, ValueError, SyntaxError, TypeError) as error:
        raise UsageError(f"--network {text!r} must be PACKAGE.MODULE:FUNCTION: {error}") from error
    if not callable(build):
        raise UsageError(f"--network {text!r} names a {type(build).__name__}; it must be a function that builds one")
    try:
        return build()
    except (Exception, SystemExit) as error:
        # The user's code, whatever it raises; a SystemExit would end `pdcl gate` with one of its answers.
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise UsageError(
            f"--network {text!r} failed to build a network, called without arguments: "
            f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
        ) from error
