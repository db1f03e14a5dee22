"""The second engine: actors on a Ray cluster, each of which keeps the streams it has loaded.

Ray places and watches the actors; here is only the queue between a study and them. A run whose actor or node is lost is
given to another actor, which goes on from the run's checkpoint: records must lie on storage that all nodes share.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pdcl.errors import UsageError
from pdcl.lab.studies.engine import Carrier, Ended, Job, Notice, Returned, Started, Work, failed
from pdcl.lab.studies.ray_actor import RunCarrier, versions

LOOK_AGAIN_SECONDS = 2.0


@dataclass
class _Actor:
    """An actor on its way up (`work` is None), idle (`answer` is None) or at work."""

    handle: Any
    answer: Any
    work: Work | None = None

    @property
    def idle(self) -> bool:
        return self.answer is None

    def give(self, work: Work, again: bool) -> None:
        self.work, self.answer = work, self.handle.carry_out.remote(_with_whole_paths(work), again)


@dataclass
class RayCluster(Carrier):
    """Runs on a Ray cluster, `cpus_per_run` and `gpus_per_run` of it for each.

    address: of the cluster ("auto": the one on this machine); None: what RAY_ADDRESS says, else a new one here, which
    ends with this engine. retries: how often a run may lose its actor before it counts as failed.
    """

    address: str | None = None
    cpus_per_run: float = 1.0
    gpus_per_run: float = 0.0
    retries: int = 3
    _actors: list[_Actor] = field(default_factory=list, repr=False)
    _lost: dict[int, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in ("cpus_per_run", "gpus_per_run", "retries"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name}={getattr(self, name)} must not be negative")
        if self.cpus_per_run == self.gpus_per_run == 0:
            raise UsageError("cpus_per_run=0 and gpus_per_run=0: a run must take some of one of them")
        self._ray = _ray()
        self._ours = not self._ray.is_initialized()
        if self._ours:
            _connect(self._ray, self.address)
        if not self.workers:
            self.close()
            raise UsageError(self._too_large())

    @property
    def workers(self) -> int:
        """How many runs fit on the nodes that are alive now."""
        wanted = [(kind, much) for kind, much in (("CPU", self.cpus_per_run), ("GPU", self.gpus_per_run)) if much]
        return sum(int(min(node.get(kind, 0.0) / much + 1e-9 for kind, much in wanted)) for node in self._nodes())

    def _nodes(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _too_large(self) -> str:
        had = ", ".join(f"{node.get('CPU', 0):g} CPUs and {node.get('GPU', 0):g} GPUs" for node in self._nodes())
        return f"no node has {self.cpus_per_run:g} CPUs and {self.gpus_per_run:g} GPUs for a run; there are: {had}"

    def carry(self, work: Sequence[Work]) -> Iterator[Notice]:
        waiting, self._lost = deque(work), {}
        for out in {job.out for job in work if isinstance(job, Job)}:
            Path(out).mkdir(parents=True, exist_ok=True)
        try:
            while waiting or any(actor.work for actor in self._actors):
                self._grow(len(waiting))
                yield from self._hand_out(waiting)
                yield from self._collect(waiting)
        except BaseException:
            self.close()
            raise

    def _grow(self, waiting: int) -> None:
        """Ask for as many actors as there is work for and nodes hold; nodes may have come or gone."""
        busy = sum(actor.work is not None for actor in self._actors)
        for _ in range(min(self.workers, busy + waiting) - len(self._actors)):
            about = {"num_cpus": self.cpus_per_run, "num_gpus": self.gpus_per_run, "max_restarts": 0}
            handle = self._ray.remote(**about)(RunCarrier).remote(_environment())
            self._actors.append(_Actor(handle, handle.versions.remote()))

    def _hand_out(self, waiting: deque[Work]) -> Iterator[Started]:
        for actor in self._actors:
            if actor.idle and waiting:
                work = waiting.popleft()
                again = id(work) in self._lost
                actor.give(work, again)
                if isinstance(work, Job) and not again:
                    yield Started(work)

    def _collect(self, waiting: deque[Work]) -> Iterator[Ended | Returned]:
        """What actors answered. One that is lost gives its work back, to be taken up first."""
        pending = {actor.answer: actor for actor in self._actors if not actor.idle}
        if not pending:
            # No node holds an actor at the moment: one may come back.
            time.sleep(LOOK_AGAIN_SECONDS)
            return
        ready, _ = self._ray.wait(list(pending), timeout=LOOK_AGAIN_SECONDS)
        for answer in ready:
            actor = pending[answer]
            work, actor.work, actor.answer = actor.work, None, None
            try:
                said = self._ray.get(answer)
            except self._ray.exceptions.RayError as error:
                self._actors.remove(actor)
                if work is not None:
                    yield from self._after_loss(work, str(error).splitlines()[0], waiting)
                continue
            if work is None:
                _check_versions(said)
            else:
                yield replace(said, job=work)

    def _after_loss(self, work: Work, why: str, waiting: deque[Work]) -> Iterator[Ended | Returned]:
        times = self._lost[id(work)] = self._lost.get(id(work), 0) + 1
        if times > self.retries:
            yield failed(work, f"its worker was lost {times} times, at last so: {why}")
        else:
            waiting.appendleft(work)

    def close(self) -> None:
        """End the actors, and the cluster if it was started here. A run loses at most what its checkpoint lacks."""
        if self._ray.is_initialized():
            for actor in self._actors:
                self._ray.kill(actor.handle)
            if self._ours:
                self._ray.shutdown()
        self._actors = []


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UsageError("the engine ray needs the package ray: pip install 'pdcl[ray]'") from error
    return ray


def _connect(ray: Any, address: str | None) -> None:
    try:
        ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="warning")
    except ValueError:
        # Joining a cluster takes no wishes for a dashboard.
        ray.init(address=address, log_to_driver=False, logging_level="warning")
    except ConnectionError as error:
        raise UsageError(f"address={address!r}: no Ray cluster answers there: {error}") from error


def _check_versions(there: dict[str, str]) -> None:
    """Numbers are equal to the bit only among equal versions."""
    here = versions()
    if other := {name: value for name, value in there.items() if name != "host" and value != here[name]}:
        mine = {name: here[name] for name in other}
        raise UsageError(f"{there['host']} has {other}, this machine {mine}; install the same versions on all nodes")


def _environment() -> dict[str, str]:
    """What workers here would inherit: where the data lies."""
    data = os.environ.get("PDCL_DATA")
    return {} if data is None else {"PDCL_DATA": os.path.abspath(data)}


def _with_whole_paths(work: Work) -> Work:
    """A worker elsewhere has another working directory."""
    if not isinstance(work, Job):
        return work
    return replace(work, out=os.path.abspath(work.out), plugins=tuple(map(os.path.abspath, work.plugins)))
