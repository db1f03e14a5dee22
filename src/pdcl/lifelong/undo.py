"""All or nothing: a task that isn't learned to its end leaves the learner as it was, its network the same object."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pdcl.storage.interrupts import put_off

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

TABLES = ("_parameters", "_buffers", "_modules")
# What is replaced and never edited, or goes back by a way of its own.
BY_REFERENCE = (
    "network", "model", "backbone", "optimiser", "store", "generator", "lineage", "spec", "reading", "objective",
    "goal", "emit",
)  # fmt: skip


@contextmanager
def all_or_nothing(learner: Learner) -> Iterator[Before]:
    """Within `with`, any exception (Ctrl-C included) before `settle` puts the learner back to what it was before."""
    with put_off():
        before = Before(learner)
    try:
        yield before
    except BaseException:
        if not before.settled:
            with put_off():
                before.restore()
        raise
    finally:
        if learner.store is not None:
            learner.store.release()


class Before:
    """A learner at one moment. Network and optimiser are copied; what memory holds is not."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.settled = False
        self.attributes = _attributes(learner)
        networks = {id(m): m for m in (learner.network, learner.__dict__.get("model")) if isinstance(m, nn.Module)}
        self.networks = [Network(module) for module in networks.values()]
        if learner.backbone is not None:
            self.networks.append(Network(learner.backbone, frozen=True))
        optimiser = learner.__dict__.get("optimiser")
        self.optimiser = None if optimiser is None else copy.deepcopy(optimiser.state_dict())
        self.memory = None if learner.store is None else learner.store.snapshot()
        self.generator = learner.generator.get_state()
        self.lineage = {name: copy.copy(value) for name, value in vars(learner.lineage).items()}

    def settle(self, last: Callable[[], object] = lambda: None) -> None:
        """Do the last act, which can't be undone, such as writing a file; from then on the learner stays as it is."""
        with put_off():
            last()
            self.settled = True

    def restore(self) -> None:
        """Put everything back in place."""
        learner = self.learner
        vars(learner).clear()
        vars(learner).update(self.attributes)
        for network in self.networks:
            network.restore()
        if self.optimiser is not None:
            learner.optimiser.load_state_dict(self.optimiser)
        if self.memory is not None and learner.store is not None:
            learner.store.restore(self.memory)
        learner.generator.set_state(self.generator)
        vars(learner.lineage).update(self.lineage)


class Network:
    """A module's parts and the values of its tensors; `frozen`: the parts alone."""

    def __init__(self, module: nn.Module, frozen: bool = False) -> None:
        self.parts = [(part, _parts_of(part)) for part in module.modules()]
        tensors = [] if frozen else [*module.parameters(), *module.buffers()]
        self.values = [(each, each.detach().clone(), each.requires_grad, each.grad) for each in tensors]

    @torch.no_grad()
    def restore(self) -> None:
        for part, held in self.parts:
            part.__dict__.clear()
            part.__dict__.update(held)
        for tensor, value, learns, gradient in self.values:
            _set(tensor, value)
            tensor.requires_grad_(learns)
            tensor.grad = gradient


def _attributes(learner: Learner) -> dict[str, Any]:
    """The learner's attributes; a method's own state is copied, since methods edit it in place."""
    own = vars(learner)
    fixed = [learner, *(own[name] for name in BY_REFERENCE if name in own)]
    # One memo for all attributes: what two of them share is shared by their copies.
    seen = {id(each): each for each in fixed}
    return {name: value if name in BY_REFERENCE else _copied(value, seen) for name, value in own.items()}


def _copied(value: Any, seen: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value, seen)
    except (TypeError, RuntimeError, AttributeError, NotImplementedError):
        return value  # such as an open file: nothing that could be put back


def _parts_of(part: nn.Module) -> dict[str, Any]:
    return {name: copy.copy(value) if name in TABLES else value for name, value in part.__dict__.items()}


def _set(tensor: Tensor, value: Tensor) -> None:
    if tensor.shape == value.shape:
        tensor.copy_(value)
    else:
        tensor.data = value
