"""A run's state on disk: everything that determines what follows, of the learner and of the loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdcl.errors import PdclError, StateError
from pdcl.learning.loop import Loop
from pdcl.past.origins import rows_left_out
from pdcl.records.row_chain import RowChain, rows_of
from pdcl.storage.disk import own_directory, reported
from pdcl.storage.serialize import BadState, Part, as_parts, from_parts
from pdcl.storage.vault import PartGone, Vault

NAME = "checkpoint"
ROWS = "rows"
APART = {"network.safetensors": "learner/network"}
# What a damaged or foreign state makes the code that takes it over raise.
UNFIT = (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError, AssertionError, OverflowError)


@dataclass(frozen=True)
class Checkpoint:
    """A state read back: where its events end, what it had cost, and what newer ones were found damaged."""

    state: dict[str, Any]
    events: int
    cost: dict[str, float]
    instead_of: list[str]
    path: Path

    def restore(self, loop: Loop) -> None:
        """Put a prepared learner and a new loop where the run was."""
        with fitting(self.path):
            loop.learner.load_state_dict(self.state["learner"])
            loop.load_state_dict(self.state["loop"])


def write(run: Path, loop: Loop, events: int, cost: dict[str, float], chain: RowChain | None = None) -> None:
    """Save the loop and its learner, unless its weights are no longer finite.

    chain: what the checkpoints of this run wrote before, so that of a large memory only new rows are written.
    """
    loop.learner.check_finite()
    about = {"events": events, "cost": cost, "stream": loop.stream.name, "tasks": loop.position.task}
    with reported(run / NAME):
        own_directory(run / NAME)
    chain = chain or RowChain()
    try:
        _write(run, loop, about, chain)
    except PartGone:
        chain.forget()
        _write(run, loop, about, chain)
    except BaseException:
        chain.forget()
        raise


def _write(run: Path, loop: Loop, about: dict[str, Any], chain: RowChain) -> None:
    memory, vault = loop.learner.store, Vault(run / NAME, "checkpoint")
    plan = chain.plan(memory)
    if plan is None or memory is None:
        vault.write(as_parts({"learner": loop.learner.state_dict(), "loop": loop.state_dict()}, APART), about)
        return
    with rows_left_out(memory):
        learner = loop.learner.state_dict()
    # Under another name, so that no reader takes these columns for all.
    others = learner["memory"].pop("columns")
    order = list(memory.columns)
    rows = {"links": plan.links, "others": others, "order": order}
    parts = as_parts({"learner": learner, "loop": loop.state_dict(), ROWS: rows}, APART)
    vault.write({**plan.parts, **parts}, about, kept=plan.kept)
    plan.written()


def read(run: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole; None where none was written yet."""
    vault = Vault(run / NAME, "checkpoint")
    if not vault.exists():
        return None
    held = vault.read()
    with fitting(held.place):
        state, about = _whole(from_parts(held.parts), held.parts), held.about
        if not 0 <= int(about["events"]) < 2**62:
            raise ValueError(f"its events end at {about['events']}")
        return Checkpoint(
            state,
            int(about["events"]),
            {name: float(spent) for name, spent in dict(about["cost"]).items()},
            held.instead_of,
            held.place,
        )


def _whole(state: dict[str, Any], parts: Mapping[str, Part]) -> dict[str, Any]:
    """The state with the rows of memory that were written apart."""
    if ROWS not in state:
        return state
    rows = state.pop(ROWS)
    columns = {**rows_of(rows["links"], parts), **rows["others"]}
    place = rows["order"].index
    in_order = sorted(columns, key=lambda name: place(name.partition(":")[0]))
    state["learner"]["memory"]["columns"] = {name: columns[name] for name in in_order}
    return state


@contextmanager
def fitting(path: Path) -> Iterator[None]:
    """Report any error while a state is loaded as a damaged or foreign state."""
    try:
        yield
    except BadState as error:
        raise StateError(f"{path} is damaged: {error}", path) from error
    except PdclError as error:
        raise StateError(f"{path} doesn't fit: {error}", path) from error
    except UNFIT as error:
        raise StateError(
            f"{path} doesn't fit this learner and stream: {type(error).__name__}: {error}", path
        ) from error
