"""The live page on a socket, until it is interrupted."""

from __future__ import annotations

import socket
from pathlib import Path

import uvicorn

from pdcl.errors import UsageError
from pdcl.reports.live.app import make_app


def serve(directory: Path, host: str, port: int, token: str | None) -> None:
    """Serve `directory`; says where once it listens."""
    listening = _socket(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/" + (f"?token={token}" if token else "")
    config = uvicorn.Config(
        make_app(directory, token),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    print(f"watching {directory} at {address} (stop with Ctrl-C)", flush=True)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()


def _socket(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise UsageError(f"can't listen at {host}:{port}: {error}; choose another with --port, or --port 0") from error
