"""Streaming linear discriminant analysis on frozen features: class means, and one covariance for all classes.

    score_c(x) = μ_cᵀ Λ φ(x) − ½ μ_cᵀ Λ μ_c + log(n_c / n),     Λ = [(1 − ε) Σ + ε (tr Σ / d) I]⁻¹

Σ = (1/n) Σ_i (φ_i − μ_{y_i})(φ_i − μ_{y_i})ᵀ is kept up to date sample by sample. No sample is stored; the result is
that of linear discriminant analysis on all data at once, whatever the order of the tasks.

Hayes, Kanan, "Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis", CVPR Workshops 2020, with
class frequencies and a shrinkage that follows the scale of the features, as scikit-learn has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lab.methods.ncm import NCM, class_means

WIDEST = 4096


@dataclass(eq=False)
class SLDA(NCM):
    """Streaming LDA: nearest class mean, in the metric of the covariance that all classes share.

    shrinkage: ε, how far the covariance is moved towards a multiple of the identity
    """

    shrinkage: float = 1e-4

    persistent: ClassVar[tuple[str, ...]] = ("counts", "means", "scatter", "fresh")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.shrinkage <= 1:
            raise UsageError(f"shrinkage={self.shrinkage} must lie in (0, 1]: without any, Σ may have no inverse")

    def begin_statistics(self, classes: int, width: int) -> None:
        if width > WIDEST:
            raise UsageError(f"slda keeps a covariance of {width} × {width} features; use at most {WIDEST}, or ncm")
        super().begin_statistics(classes, width)
        self.scatter = torch.zeros(width, width, dtype=torch.float64)

    def include(self, features: Tensor, y: Tensor) -> None:
        """nΣ grows by the scatter within the batch, and by that between each class's mean here and before.

        nΣ ← nΣ + Σ_i (φ_i − μ′_{y_i})(φ_i − μ′_{y_i})ᵀ + Σ_c (n_c n′_c / (n_c + n′_c)) (μ′_c − μ_c)(μ′_c − μ_c)ᵀ
        """
        counts, means = class_means(features, y, len(self.counts))
        within, between = features - means[y], means - self.means
        share = self.counts * counts / (self.counts + counts).clamp(min=1)
        self.scatter = self.scatter + within.T @ within + between.T @ (share[:, None] * between)
        super().include(features, y)

    def linear(self) -> tuple[Tensor, Tensor]:
        """w_c = Λμ_c and b_c = −½ μ_cᵀΛμ_c + log(n_c / n)."""
        weights = torch.linalg.solve(self.covariance(), self.means.T).T
        priors = (self.counts / self.counts.sum().clamp(min=1)).clamp(min=1e-300).log()
        return weights, priors - (weights * self.means).sum(1) / 2

    def covariance(self) -> Tensor:
        """(1 − ε) Σ + ε (tr Σ / d) I; I where all samples equal the mean of their class."""
        sigma = self.scatter / self.counts.sum().clamp(min=1)
        level, identity = sigma.trace() / len(sigma), torch.eye(len(sigma), dtype=torch.float64)
        return (1 - self.shrinkage) * sigma + self.shrinkage * level * identity if level > 0 else identity
