"""A process with everything imported that forks on demand: real processes, without their start-up time.

It never trains itself, since torch's autograd doesn't survive a fork. One JSON command a line, one answer a line.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import sklearn.datasets  # noqa: F401
import torch

import pdcl.cli.update
import pdcl.release.updating  # noqa: F401
from pdcl.cli import main
from pdcl.records import Record

torch.set_num_threads(1)
# The first optimiser imports a compiler, seconds that every fork would spend again.
for kind in (torch.optim.SGD, torch.optim.Adam):
    optimiser = kind([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    optimiser.zero_grad()
    optimiser.step()
    optimiser.load_state_dict(optimiser.state_dict())
# A killed process leaves all that it wrote with the system; only a power cut would need the wait for the disk.
os.fsync = lambda handle: None


def wait_at(most: int, until: str) -> None:
    """A run whose record has `most` events waits with its next step until there is this file."""
    listener = Record.listener

    def waiting(self: Record, event: object) -> None:
        listener(self, event)  # type: ignore[arg-type]
        while (self.path / "events.jsonl").read_bytes().count(b"\n") >= most and not Path(until).exists():
            time.sleep(0.002)

    Record.listener = waiting  # type: ignore[method-assign]


def work(command: dict[str, object], log: str) -> None:
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    try:
        if "most" in command:
            wait_at(command["most"], command["until"])  # type: ignore[arg-type]
        if "words" in command:
            os._exit(main(list(command["words"])))  # type: ignore[call-overload]
        exec(str(command["code"]), {"args": command["args"]})
        os._exit(0)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(99)


for line in sys.stdin:
    command = json.loads(line)
    if "wait" in command:
        found, status = os.waitpid(command["wait"], os.WNOHANG if command.get("poll") else 0)
        print(json.dumps(os.waitstatus_to_exitcode(status) if found else None), flush=True)
        continue
    child = os.fork()
    if not child:
        work(command, command["log"])
    print(child, flush=True)
