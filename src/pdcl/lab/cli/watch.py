"""`pdcl watch DIR`: a local page that follows runs while they happen."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pdcl.cli.form import plain
from pdcl.errors import UsageError
from pdcl.printable import say


@dataclass
class Watch:
    """Serve a page that follows the runs in a directory live. For this machine alone, unless --host says otherwise."""

    directory: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Directory that runs are, or will be, written to."""

    host: str = "127.0.0.1"
    """Address to listen at. Anything but this machine asks for a token, which is printed ($PDCL_TOKEN sets it)."""

    port: int = 8265
    """Port to listen at; 0 takes a free one."""


def main(argv: Sequence[str] | None = None) -> int:
    options = tyro.cli(plain(Watch), args=argv, prog="pdcl watch", config=(tyro.conf.PositionalRequiredArgs,))
    if not options.directory.is_dir():
        raise UsageError(f"{options.directory} is not a directory; give one that runs are written to, such as runs")
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UsageError(f"the live page needs {error.name}: pip install 'pdcl[live]'") from error
    from pdcl.lab.reports.live.access import is_loopback
    from pdcl.lab.reports.live.serving import serve

    token = None if is_loopback(options.host) else os.environ.get("PDCL_TOKEN") or secrets.token_urlsafe(24)
    serve(options.directory, options.host, options.port, token)
    say(f"next: pdcl report {options.directory}")
    return 0
