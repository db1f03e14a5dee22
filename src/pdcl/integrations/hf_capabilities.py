"""Capabilities of a model: a name, samples that show it, and a limit on what it may lose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.integrations.hf_joined import joins, padded
from pdcl.integrations.hf_self_made import SelfMade
from pdcl.limits.tolerance import PerTask, Tolerance, as_tolerance

FORM = 'capabilities={"code": (dataset, "1.05x"), "chat": (dataset, "+2pt")}'
# A tenth of them is held back for guards, and a tenth for witnesses.
FEWEST = 10
SELF = "self"
LIMIT_OF_SELF = "1.05x"


@dataclass(frozen=True, eq=False)
class Capability:
    name: str
    dataset: Any
    limit: Tolerance

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def test(self) -> Any:
        """Text of people to judge self-made samples by as well, where there is some."""
        return self.dataset.test if isinstance(self.dataset, SelfMade) else None


def read_capabilities(given: Any) -> list[Capability]:
    """Capabilities from what a user writes; UsageError for what can't be one."""
    if not isinstance(given, Mapping) or not given:
        raise UsageError(f"capabilities must be a mapping from names to (dataset, limit), not {given!r}: write {FORM}")
    return [_capability(name, each) for name, each in given.items()]


def _capability(name: Any, given: Any) -> Capability:
    if given == SELF if isinstance(given, str) else isinstance(given, SelfMade):
        given = (given, LIMIT_OF_SELF)
    if not isinstance(name, str) or not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise UsageError(f"capability {name!r} must be a name with (dataset, limit): write {FORM}")
    dataset, written = given
    dataset = SelfMade() if isinstance(dataset, str) and dataset == SELF else dataset
    try:
        limit = as_tolerance(written)
    except (TypeError, ValueError) as error:
        raise UsageError(f"limit of capability {name!r}: {error}") from error
    if isinstance(limit, PerTask):
        raise UsageError(f"limit of capability {name!r} is a list, {written!r}: one name has one limit")
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        kind = type(dataset).__name__
        raise UsageError(
            f"capability {name!r}: samples of {kind} have no positions, which replay needs; give a Dataset"
        )
    return check_size(Capability(name, dataset, limit))


def check_size(capability: Capability) -> Capability:
    if len(capability) < FEWEST:
        raise UsageError(
            f"capability {capability.name!r} has {len(capability) or 'no'} samples: give {FEWEST} or more, so that "
            "some can be held back, or leave the capability out"
        )
    return capability


def prepared(capability: Capability, trainer: Any) -> Capability:
    """As the trainer prepares its own data: TRL's tokenise texts."""
    prepare = getattr(trainer, "_prepare_dataset", None)
    if prepare is None or getattr(trainer, "_skip_prepare_dataset", False) or isinstance(capability.dataset, SelfMade):
        return capability
    formatting, name = getattr(trainer, "_formatting_func", None), capability.name
    found = prepare(capability.dataset, trainer.processing_class, trainer.args, False, formatting, name)
    return check_size(Capability(name, found, capability.limit))


@dataclass(frozen=True)
class Positions:
    """A capability's samples as the core sees them: their numbers. What they hold stays in the dataset."""

    first: int
    size: int

    @property
    def targets(self) -> Tensor:
        return torch.zeros(self.size)

    def fetch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        return index + self.first, torch.zeros(len(index))

    def __len__(self) -> int:
        return self.size


class Rows:
    """The samples of all capabilities, numbered through.

    datasets: one per capability; collates: what joins samples of each.
    """

    def __init__(self, datasets: Sequence[Any], collates: Sequence[Callable[[list[Any]], dict[str, Any]]]) -> None:
        self.datasets, self.collates = datasets, collates
        sizes = torch.tensor([len(dataset) for dataset in self.datasets])
        self.first = sizes.cumsum(0) - sizes

    @classmethod
    def as_trained(cls, datasets: Sequence[Any], trainer: Any) -> Rows:
        """As the trainer collates its own samples, without columns that its model ignores; padded if it joins them."""
        loaders = [trainer.get_test_dataloader(each) for each in datasets]
        collates = [padded if joins(trainer.data_collator) else loader.collate_fn for loader in loaders]
        return cls([loader.dataset for loader in loaders], collates)

    def owners(self, numbers: Tensor) -> Tensor:
        """The capability of each."""
        return torch.searchsorted(self.first, numbers, right=True) - 1

    def batch(self, numbers: Tensor) -> dict[str, Any]:
        """These samples, collated."""
        owners = self.owners(numbers).tolist()
        places = (numbers - self.first[owners]).tolist()
        found = [self.datasets[k][place] for k, place in zip(owners, places, strict=True)]
        return dict(self.collates[owners[0]](found))
