"""What runs on a node of a Ray cluster: a process that carries out one run after another."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from pdcl.lab.studies.engine import Ended, Job, Returned, Work, failed
from pdcl.lab.studies.worker import Streams, carry_out, use_one_thread

# A worker whose node is lost to the cluster may go on for a while and hold its run's lock.
PATIENCE_SECONDS = 120.0


class RunCarrier:
    """The actor. Streams and plug-ins are loaded once and kept."""

    def __init__(self, environment: dict[str, str]) -> None:
        os.environ.update(environment)
        use_one_thread()
        self.streams, self.plugged = Streams(), set[str]()

    def versions(self) -> dict[str, str]:
        return versions()

    def carry_out(self, work: Work, again: bool) -> Ended | Returned:
        """again: another worker was given this before, and was lost."""
        if isinstance(work, Job) and not Path(work.out).is_dir():
            here = platform.node()
            return failed(work, f"{work.out} isn't on {here}; give --out a directory that all nodes share")
        return carry_out(work, self.streams, self.plugged, PATIENCE_SECONDS if again else 0.0)


def versions() -> dict[str, str]:
    """What results depend on, and of which machine this is said."""
    from pdcl.running.run import versions as own

    return {**own(), "host": platform.node()}
