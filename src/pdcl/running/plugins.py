"""Methods and streams from a Python file that the user names: the only code that pdcl imports by path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from pdcl.errors import UsageError


def load_file(path: str) -> None:
    """Import a file; what it registers is known from then on."""
    place = Path(path)
    if not place.is_file():
        raise UsageError(f"--plugin {path}: there is no such file")
    name = f"pdcl_plugin_{place.stem}"
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise UsageError(f"--plugin {path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name while they are made.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        # The user's code, whatever it raises.
        reason = (str(error).strip().splitlines() or [""])[0]
        raise UsageError(f"--plugin {path} fails when it is imported: {type(error).__name__}: {reason}") from error
