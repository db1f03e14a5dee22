"""`exact` as scikit-learn estimators: `fit`, `partial_fit(X, y, task=…)`, `predict`, `predict_proba`.

```python
model = ExactClassifier(tolerance="+2pt").fit(january, labels)
model.partial_fit(february, more_labels, task="february")
```
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from pdcl.errors import LearningWarning
from pdcl.given import few
from pdcl.methods.exact import Exact
from pdcl.streams.encoding import Kind


class _ExactEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share. Parameters are options of `exact`; see `pdcl.methods.exact.Exact`."""

    kind: ClassVar[Kind]
    _expected: Any = None

    def __init__(
        self,
        *,
        features: Any = "auto",
        memory: str | None = None,
        tolerance: Any = None,
        guard: int | None = None,
        witness: int | None = None,
        rho: float | None = None,
        erasable: bool = True,
        random_state: int = 0,
    ) -> None:
        self.features = features
        self.memory = memory
        self.tolerance = tolerance
        self.guard = guard
        self.witness = witness
        self.rho = rho
        self.erasable = erasable
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, task: str | None = None, groups: Any = None) -> _ExactEstimator:
        """Learn from nothing; what was learned before is left behind."""
        self._expected = None
        if hasattr(self, "learner_"):
            del self.learner_
        return self._learn(X, y, task, groups, reset=True)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, task: str | None = None, groups: Any = None
    ) -> _ExactEstimator:
        """Learn a further task, or the first. task: its name, by which a tolerance may speak of it.

        classes: all that may come, where they are known; others are refused from then on. They needn't be given.
        """
        self._expected = self._expected if classes is None else classes
        return self._learn(X, y, task, groups, reset=not hasattr(self, "learner_"))

    def _learn(self, X: Any, y: Any, task: str | None, groups: Any, reset: bool) -> _ExactEstimator:
        X, y = self._checked(X, y, reset)
        if reset:
            options = dict(self.get_params())
            self.learner_ = Exact(seed=options.pop("random_state"), **options)
        with warnings.catch_warnings():
            # That copies of guards are left out is no news to those who fit small arrays again and again.
            warnings.simplefilter("ignore", LearningWarning)
            self.learner_.learn(X, y, name=task, groups=groups, kind=self.kind if reset else None)
        self._note()
        return self

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        raise NotImplementedError

    def _note(self) -> None:
        """Attributes that scikit-learn looks for."""

    def _inputs(self, X: Any) -> Any:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64, ensure_min_samples=0), dtype=np.float32)


class ExactClassifier(ClassifierMixin, _ExactEstimator):  # type: ignore[misc]
    """Classes by a linear head on fixed features, solved in closed form; limits on past tasks.

    >>> import numpy as np
    >>> X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    >>> X[:, 0] += 4 * y
    >>> bool(ExactClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    kind: ClassVar[Kind] = "classification"

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64)
        check_classification_targets(y)
        known = self._expected
        if known is not None and len(strange := np.setdiff1d(y, known)):
            raise ValueError(f"y holds {strange[0]!r}, which is not among classes={few(known)}")
        if reset and known is None and len(unique_labels(y)) < 2:
            raise ValueError(f"y holds one class, {y[0]!r}; a classifier needs at least two to begin with")
        return X.astype(np.float32), y

    def _note(self) -> None:
        self.classes_ = np.sort(np.asarray(self.learner_.labels))
        order = {label: place for place, label in enumerate(self.learner_.labels)}
        self._columns = [order[label] for label in self.classes_.tolist()]

    def predict(self, X: Any) -> Any:
        found = self.predict_proba(X).argmax(1)
        return self.classes_[found]

    def predict_proba(self, X: Any) -> Any:
        """Of every class, in the order of `classes_`."""
        inputs = self._inputs(X)
        return self.learner_.predict_proba(inputs)[:, self._columns].astype(np.float64)


class ExactRegressor(RegressorMixin, _ExactEstimator):  # type: ignore[misc]
    """Numbers by a linear head on fixed features, solved in closed form; limits on past tasks are losses."""

    kind: ClassVar[Kind] = "regression"

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64, multi_output=True, y_numeric=True)
        self._flat = y.ndim == 1
        return X.astype(np.float32), y.astype(np.float32)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any) -> Any:
        inputs = self._inputs(X)
        found = self.learner_.predict(inputs).astype(np.float64)
        return found.ravel() if self._flat else found
