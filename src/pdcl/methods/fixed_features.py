"""A learner on features that stay as they are: chosen by the input's shape, fitted once without labels, then frozen."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from pdcl.errors import UsageError
from pdcl.features.catalog import build, chosen, of_module
from pdcl.features.feature_map import FeatureMap
from pdcl.features.frozen import Frozen
from pdcl.features.network import SolvedNetwork
from pdcl.learning.batches import EVALUATION_BATCH, seeded
from pdcl.lifelong.backbone import fingerprint
from pdcl.lifelong.learner import Learner
from pdcl.limits.tolerances import Tolerances
from pdcl.past.sets import widest
from pdcl.past.statistics import check_finite
from pdcl.streams.task import Spec, Task
from pdcl.trees import Tree, to

# Samples that features are fitted to.
FITTED_TO = 2000


class OnFixedFeatures(Learner):
    """φ is part of the model: built for the first task, fitted to it, and the same to the bit ever after."""

    features: nn.Module | str
    erasable: bool
    bound: int | None
    tolerances: Tolerances
    phi_hash: str | None = None
    _given: FeatureMap | None = None

    def take_fitted(self) -> None:
        """Fitted features of another learner are copied, and saved with this one: their name stands for them."""
        if isinstance(self.features, FeatureMap) and not isinstance(self.features, Frozen):
            self._given, self.features = copy.deepcopy(self.features), self.features.name

    @property
    def dtype(self) -> torch.dtype:
        """Of the statistics that are kept."""
        return torch.float64 if self.erasable else torch.float32

    def map_of(self, spec: Spec) -> FeatureMap:
        if self._given is not None:
            return self._given
        if isinstance(self.features, nn.Module):
            return of_module(self.features, spec)
        which = chosen(self.features, spec)
        if self.bound is not None and not which.stated:
            which = which.within(widest(self.bound, self.dtype, spec.outputs, self.tolerances.stated_any) - 1)
        return build(which, spec, self.erasable)

    @property
    def phi(self) -> FeatureMap:
        assert isinstance(self.model, SolvedNetwork)
        return self.model.phi

    def fit_features(self, task: Task) -> None:
        generator = seeded(self.seed, 0, 4)
        some = torch.randperm(len(task.data), generator=generator)[:FITTED_TO].sort().values
        x = to(task.data.fetch(some)[0], self.place)
        assert self.spec is not None
        self.phi.fit(self.spec.transform(x) if isinstance(x, Tensor) else x, generator)

    def check_features(self) -> None:
        """Statistics hold only while φ is the same to the bit."""
        now = fingerprint(self.phi)
        if self.phi_hash is not None and now != self.phi_hash:
            raise UsageError(
                "the features have changed since the first task, so all statistics are void; hand in the module as it "
                "was then, or begin a new learner"
            )
        self.phi_hash = now

    @torch.no_grad()
    def represent(self, raw: Tree) -> Tensor:
        """φ with the constant behind it, n × m, on the CPU."""
        assert self.spec is not None
        found = self.phi(self.spec.transform(raw) if isinstance(raw, Tensor) else raw).cpu()
        return torch.cat([found, found.new_ones(len(found), 1)], 1)

    def outputs(self, raw: Tree, augment: bool = True) -> Tensor:
        """The network's outputs. Trees go to the features as they are: sequences are hashed, not padded."""
        assert self.spec is not None
        found: Tensor = self.model(self.spec.transform(raw) if isinstance(raw, Tensor) else raw)
        return found

    def evaluated(self, x: Tree, size: int = EVALUATION_BATCH) -> Tensor:
        if self.phi_hash is not None:
            self.check_features()
        found = super().evaluated(x, size)
        check_finite(found)
        return found
