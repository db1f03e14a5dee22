"""pdcl: a model that keeps learning and keeps within the forgetting you can tolerate.

The front door: the dozen names a user needs. They are imported when they are asked for, so that the command line
answers without importing torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pdcl import duality as duality
    from pdcl import metrics as metrics
    from pdcl import testing as testing
    from pdcl.algorithm.draws import Estimator as Estimator
    from pdcl.algorithm.dual_rules import DualRule as DualRule
    from pdcl.algorithm.lagrangian import Lagrangian as Lagrangian
    from pdcl.algorithm.levers import Lever as Lever
    from pdcl.algorithm.partition_rules import PartitionRule as PartitionRule
    from pdcl.algorithm.rules import register_rule as register_rule
    from pdcl.algorithm.selection_rules import SelectionRule as SelectionRule
    from pdcl.errors import LearningWarning as LearningWarning
    from pdcl.errors import LimitBroken as LimitBroken
    from pdcl.integrations.sklearn_exact import ExactClassifier as ExactClassifier
    from pdcl.integrations.sklearn_exact import ExactRegressor as ExactRegressor
    from pdcl.judging.table import Promises as Promises
    from pdcl.lab.prices import prices as prices
    from pdcl.lab.sample_prices import prices_by_sample as prices_by_sample
    from pdcl.learning.batches import Batch as Batch
    from pdcl.learning.batches import Step as Step
    from pdcl.learning.primal_dual import PrimalDual as PrimalDual
    from pdcl.lifelong.learner import Learner as Learner
    from pdcl.limits.tolerance import Fixed as Fixed
    from pdcl.limits.tolerance import PerTask as PerTask
    from pdcl.limits.tolerance import Relative as Relative
    from pdcl.limits.tolerance import Rise as Rise
    from pdcl.methods.catalog import register as register
    from pdcl.methods.exact import Exact as Exact
    from pdcl.methods.pdcl import PDCL as PDCL
    from pdcl.objective import Objective as Objective
    from pdcl.ragged import Ragged as Ragged
    from pdcl.release.comparing import compare as compare
    from pdcl.release.forgetting import forget as forget
    from pdcl.release.gate import gate as gate
    from pdcl.release.rolling_back import rollback as rollback
    from pdcl.release.updating import update as update
    from pdcl.running.by_name import learner as learner
    from pdcl.running.load import load as load
    from pdcl.running.result import Result as Result
    from pdcl.running.run import run as run
    from pdcl.streams.catalog import load as stream  # noqa: F401
    from pdcl.streams.catalog import register_stream as register_stream
    from pdcl.streams.class_split import split as split
    from pdcl.streams.images import images as images
    from pdcl.streams.iterated import Iterated as Iterated
    from pdcl.streams.table import table as table
    from pdcl.streams.task import Stream as Stream
    from pdcl.streams.task_list import from_tasks as from_tasks

_HOMES = {
    "Batch": "learning.batches",
    "DualRule": "algorithm.dual_rules",
    "Estimator": "algorithm.draws",
    "Exact": "methods.exact",
    "ExactClassifier": "integrations.sklearn_exact",
    "ExactRegressor": "integrations.sklearn_exact",
    "Fixed": "limits.tolerance",
    "Iterated": "streams.iterated",
    "Lagrangian": "algorithm.lagrangian",
    "Learner": "lifelong.learner",
    "LearningWarning": "errors",
    "Lever": "algorithm.levers",
    "LimitBroken": "errors",
    "Objective": "objective",
    "PDCL": "methods.pdcl",
    "PartitionRule": "algorithm.partition_rules",
    "PerTask": "limits.tolerance",
    "PrimalDual": "learning.primal_dual",
    "Promises": "judging.table",
    "Ragged": "ragged",
    "Relative": "limits.tolerance",
    "Rise": "limits.tolerance",
    "Result": "running.result",
    "SelectionRule": "algorithm.selection_rules",
    "Step": "learning.batches",
    "Stream": "streams.task",
    "compare": "release.comparing",
    "forget": "release.forgetting",
    "from_tasks": "streams.task_list",
    "gate": "release.gate",
    "prices": "lab.prices",
    "prices_by_sample": "lab.sample_prices",
    "learner": "running.by_name",
    "load": "running.load",
    "register": "methods.catalog",
    "register_rule": "algorithm.rules",
    "register_stream": "streams.catalog",
    "rollback": "release.rolling_back",
    "run": "running.run",
    "split": "streams.class_split",
    "stream": "streams.catalog:load",
    "images": "streams.images",
    "table": "streams.table",
    "update": "release.updating",
}

# Modules that `import pdcl` makes reachable too, since pages name their functions as pdcl.duality.ascend.
_MODULES = ("duality", "metrics", "testing")

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from pdcl.storage.version import own_version

        return own_version()
    if name in _MODULES:
        return importlib.import_module(f"pdcl.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'pdcl' has no attribute {name!r}")
    home, _, other = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(f"pdcl.{home}"), other or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
