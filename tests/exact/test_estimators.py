"""`ExactClassifier` and `ExactRegressor` are estimators as scikit-learn wants them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pdcl.integrations.sklearn_exact import ExactClassifier, ExactRegressor


@parametrize_with_checks([ExactClassifier(features="random:100"), ExactRegressor(features="random:100")])
def test_scikit_learn_has_nothing_to_object_to(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_in_a_pipeline_and_a_grid_search(digits: tuple[Any, Any]) -> None:
    x, y = digits[0][:600], digits[1][:600]
    pipeline = make_pipeline(StandardScaler(), ExactClassifier())
    search = GridSearchCV(pipeline, {"exactclassifier__features": ["raw", "random:300"]}, cv=3).fit(x, y)
    assert search.best_score_ > 0.85


def test_tasks_come_one_by_one_under_a_limit(digits: tuple[Any, Any]) -> None:
    x, y = digits
    model = ExactClassifier(tolerance={"low": "+5pt"}, features="random:300")
    model.partial_fit(x[y < 5], y[y < 5], task="low").partial_fit(x[y >= 5], y[y >= 5], task="high")
    assert model.score(x, y) > 0.9
    assert model.learner_.promises[0].task == "low"
    np.testing.assert_allclose(model.predict_proba(x[:5]).sum(1), 1, atol=1e-6)
    with pytest.raises(ValueError, match="features"):
        model.predict(x[:, :10])
