"""What the lab's commands share: how they are asked, and how they answer."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import tyro
from rich.table import Table

from pdcl.cli.form import plain
from pdcl.errors import UsageError
from pdcl.screen import Screen

if TYPE_CHECKING:
    from pdcl.lab.studies import LocalProcesses
    from pdcl.lab.studies.ray_cluster import RayCluster

T = TypeVar("T")
OF_RAY = ("address", "cpus_per_run", "gpus_per_run")


def parsed(kind: type[T], argv: list[str], command: str, config: tuple[object, ...] = ()) -> T:
    """The options of a command; what can't be read ends in a line that names its help."""
    try:
        return tyro.cli(plain(kind), args=argv, prog=command, config=config)
    except SystemExit as stop:
        if stop.code:
            raise UsageError(f"see '{command} --help'") from stop
        raise


def unfolded() -> Screen:
    """A pipe has no width; what is read by programs shouldn't be folded."""
    console = Screen()
    return console if console.is_terminal else Screen(width=500)


def numbers(columns: Iterable[str], texts: Iterable[str]) -> Table:
    """A table without lines: `texts` are the columns of words, all others are numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name, justify="left" if name in texts else "right")
    return table


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
