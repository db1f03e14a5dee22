"""Ranks as processes of this machine that talk over 127.0.0.1 alone, forked by a server that has torch imported."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

SERVER = Path(__file__).parents[1] / "lifelong" / "forkserver.py"
_TRIED = itertools.count()
START = """
import os, torch
arguments = dict(args)
os.environ.update(arguments.pop("environment"))
"""


def free_port() -> int:
    """A port for a process that is yet to come: none that the system gives to others, other tests among them."""
    for count in _TRIED:
        port = 20_000 + (61 * os.getpid() + count) % 12_000
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError


class Ranks:
    """Starts groups of ranks as torchrun would."""

    def __init__(self) -> None:
        words = [sys.executable, str(SERVER)]
        self.server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.log = Path(tempfile.mkdtemp()) / "log"

    def _ask(self, **command: Any) -> Any:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(command) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def start(self, code: str, world: int, **arguments: Any) -> list[int]:
        """`code` in `world` processes; `arguments` is a dict there."""
        alone = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo"}
        found = []
        for rank in range(world):
            given = {**arguments, "environment": {**alone, "WORLD_SIZE": str(world), "RANK": str(rank)}}
            found.append(self._ask(code=START + code, args=list(given.items()), log=str(self.log)))
        return found

    def end(self, rank: int) -> int:
        """Its exit code."""
        code: int = self._ask(wait=rank)
        return code

    def finish(self, ranks: list[int]) -> None:
        codes = [self.end(rank) for rank in ranks]
        assert codes == [0] * len(ranks), self.log.read_text()[-6000:]

    def together(self, code: str, world: int, folder: Path, **arguments: Any) -> Any:
        """Run `code` in `world` processes; what rank 0 wrote with torch.save to arguments["to"]."""
        to = folder / f"found-{world}.pt"
        self.finish(self.start(code, world, to=str(to), **arguments))
        return torch.load(to)

    def close(self) -> None:
        self.server.kill()
        self.server.wait()
        if self.log.exists():
            os.unlink(self.log)
