"""A run's state on disk: everything that determines what follows, of the learner and of the loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdcl.errors import PdclError, StateError
from pdcl.storage.disk import own_directory, reported
from pdcl.storage.serialize import BadState, as_parts, from_parts
from pdcl.storage.vault import Vault
from pdcl.training.loop import Loop

NAME = "checkpoint"
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


def write(run: Path, loop: Loop, events: int, cost: dict[str, float]) -> None:
    """Save the loop and its learner, unless its weights are no longer finite."""
    loop.learner.check_finite()
    state = {"learner": loop.learner.state_dict(), "loop": loop.state_dict()}
    about = {"events": events, "cost": cost, "stream": loop.stream.name, "tasks": loop.position.task}
    with reported(run / NAME):
        own_directory(run / NAME)
    Vault(run / NAME, "checkpoint").write(as_parts(state, APART), about)


def read(run: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole; None where none was written yet."""
    vault = Vault(run / NAME, "checkpoint")
    if not vault.exists():
        return None
    held = vault.read()
    with fitting(held.place):
        state, about = from_parts(held.parts), held.about
        if not 0 <= int(about["events"]) < 2**62:
            raise ValueError(f"its events end at {about['events']}")
        return Checkpoint(
            state,
            int(about["events"]),
            {name: float(spent) for name, spent in dict(about["cost"]).items()},
            held.instead_of,
            held.place,
        )


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
