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


def test_nothing_asked_gives_no_answers_and_options_reach_the_learner(digits: tuple[Any, Any]) -> None:
    x, y = digits
    options = {"features": "random:50", "memory": "200KB", "guard": 30, "witness": 20, "rho": 0.5, "random_state": 3}
    model = ExactClassifier(**options, tolerance="+5pt", erasable=False).fit(x[:300], y[:300], task="first")
    learner = model.learner_
    assert (learner.memory, learner.guard, learner.witness, learner.rho, learner.seed) == ("200KB", 30, 20, 0.5, 3)
    assert (learner.erasable, learner.tolerances.names, learner.phi.name) == (False, ["first"], "random:50")
    assert model.predict(x[:0]).shape == (0,)
    assert model.n_features_in_ == 64
    assert list(model.classes_) == list(range(10))
    again = model.fit(x[:100] * 2, y[:100] + 7)
    assert (again.learner_.tasks_learned, set(again.classes_)) == (1, set(y[:100] + 7))


def test_classes_that_are_known_beforehand_are_all_there_may_be(digits: tuple[Any, Any]) -> None:
    x, y = digits
    model = ExactClassifier(features="raw").partial_fit(x[y < 3], y[y < 3], classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="4"):
        model.partial_fit(x[y == 4], y[y == 4])
    assert model.learner_.tasks_learned == 1
    numbers = ExactRegressor(features="random:200").fit(x, y)
    assert numbers.score(x, y) > 0.7
    assert numbers.predict(x[:4]).shape == (4,)
    several = ExactRegressor(features="raw").fit(x, np.stack([y, -y], 1))
    np.testing.assert_allclose(several.predict(x)[:, 0], -several.predict(x)[:, 1], atol=1e-3)
