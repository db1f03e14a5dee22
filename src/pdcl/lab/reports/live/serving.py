"""The live page on a socket, until it is interrupted."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import uvicorn

from pdcl.errors import UsageError
from pdcl.lab.reports.live.app import make_app


def serve(directory: Path, host: str, port: int, token: str | None) -> None:
    """Serve `directory`; says where once it listens."""
    listening = _socket(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/" + (f"?token={token}" if token else "")
    guard = make_app(directory, token)
    config = uvicorn.Config(
        guard,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    print(f"watching {directory} at {address} (stop with Ctrl-C)", flush=True)
    try:
        _Server(config, guard.app).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()


class _Server(uvicorn.Server):
    """Ends the streams of news when it is told to stop: they would go on for ever."""

    def __init__(self, config: uvicorn.Config, app: Any) -> None:
        super().__init__(config)
        self.app = app

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.app.state.closing = True
        super().handle_exit(sig, frame)


def _socket(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise UsageError(f"can't listen at {host}:{port}: {error}; choose another with --port, or --port 0") from error
