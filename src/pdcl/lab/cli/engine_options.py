"""Options of commands whose work an engine carries: which engine, and how much each run may take of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pdcl.errors import UsageError

if TYPE_CHECKING:
    from pdcl.lab.studies import LocalProcesses
    from pdcl.lab.studies.ray_cluster import RayCluster

OF_RAY = ("address", "cpus_per_run", "gpus_per_run")


@dataclass(kw_only=True)
class EngineOptions:
    """What carries the work: processes of this machine, or a Ray cluster."""

    workers: int | None = None
    """Processes, each with one thread; as many as there are cores by default."""

    engine: Literal["processes", "ray"] = "processes"
    """What carries the runs: processes here, or a Ray cluster (pip install 'pdcl[ray]')."""

    address: str | None = None
    """Of the Ray cluster; 'auto' is the one that this machine belongs to. By default RAY_ADDRESS, or a new one here."""

    cpus_per_run: float | None = None
    """CPUs of the cluster that a run takes; 1 by default."""

    gpus_per_run: float | None = None
    """GPUs of the cluster that a run takes, or a part of one; none by default."""

    def new_engine(self) -> LocalProcesses | RayCluster:
        """The engine asked for; an option that it doesn't use is an error."""
        if self.engine == "processes":
            from pdcl.lab.studies import LocalProcesses

            self._refuse(OF_RAY, "with --engine processes; say --engine ray")
            return LocalProcesses(self.processes)
        from pdcl.lab.studies.ray_cluster import RayCluster

        self._refuse(("workers",), "with --engine ray, which runs as many as nodes hold; say --cpus-per-run")
        given = {name: getattr(self, name) for name in OF_RAY}
        return RayCluster(**{name: value for name, value in given.items() if value is not None})

    @property
    def processes(self) -> int:
        return self.workers or os.cpu_count() or 1

    def _refuse(self, names: tuple[str, ...], why: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')}={getattr(self, name)} has no effect {why}")
