"""Small tables: is ρ chosen well where there are few samples? Two tasks of random halves, errors on the rest.

Errors of classes in %, of numbers in % of their variance: of exact as it is, of the best of its seven ρ (which only
test data tells), and of scikit-learn's ridge or logistic regression with cross-validation on all samples at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from exact_book import Job, Row
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pdcl
from pdcl.algorithm.heads import RHOS

Table = tuple[Any, Any]
NOISY = ("diabetes", "friedman")


def _friedman(seed: int) -> Table:
    return make_friedman1(3000, 10, noise=1, random_state=seed)  # type: ignore[no-any-return]


def _clusters(seed: int) -> Table:
    return make_classification(3000, 20, n_informative=6, n_classes=4, random_state=seed)  # type: ignore[no-any-return]


TABLES: dict[str, tuple[Callable[[int], Table], tuple[int, ...]]] = {
    "iris": (lambda seed: load_iris(return_X_y=True), (100,)),
    "wine": (lambda seed: load_wine(return_X_y=True), (120,)),
    "cancer": (lambda seed: load_breast_cancer(return_X_y=True), (400,)),
    "diabetes": (lambda seed: load_diabetes(return_X_y=True), (330,)),
    "digits": (lambda seed: load_digits(return_X_y=True), (100, 300, 1000)),
    "friedman": (_friedman, (60, 150, 600)),
    "clusters": (_clusters, (60, 150, 600)),
}


def jobs(seeds: int) -> Iterator[Job]:
    for seed in range(seeds):
        for name, (_, sizes) in TABLES.items():
            for size in sizes:
                yield (
                    {"stream": name, "samples": size, "seed": seed},
                    lambda name=name, size=size, seed=seed: compared(name, size, seed),
                )


def compared(name: str, size: int, seed: int) -> Row:
    x, y = TABLES[name][0](seed)
    numbers = name in NOISY
    x, test, y, answers = train_test_split(
        x.astype("float32"), y.astype("float32") if numbers else y, train_size=size, random_state=seed,
        stratify=None if numbers else y,
    )  # fmt: skip

    def error(predicted: Any) -> float:
        wrong = (np.ravel(predicted) - answers) ** 2 / answers.var() if numbers else predicted != answers
        return 100 * float(wrong.mean())

    def learned(**options: Any) -> Any:
        learner = pdcl.learner("exact", seed=seed, **options)
        for k, part in enumerate(np.array_split(np.arange(size), 2)):
            learner.learn(x[part], y[part], name=str(k), kind="regression" if numbers else "classification")
        return learner

    strengths = np.logspace(-4, 4, 17)
    rival = make_pipeline(StandardScaler(), RidgeCV(strengths) if numbers else LogisticRegressionCV(max_iter=500))
    own = learned()
    return {
        "exact": error(own.predict(test)),
        "rho": own.solution.rho,
        "best": min(error(learned(rho=rho).predict(test)) for rho in RHOS),
        "rival": error(rival.fit(x, y).predict(test)),
    }
