"""`pdcl.learner("derpp", network, memory=200)`: any method as a long-lived learner."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from torch import nn

from pdcl.lifelong.learner import Learner
from pdcl.methods.catalog import method
from pdcl.running.options import check


def learner(name: str, network: nn.Module | str = "auto", **options: Any) -> Learner:
    """A learner of the method of this name (`pdcl list` shows them), ready for `learn`, `predict` and `save`.

    network: a module that gives logits, or a name such as mlp:100-100. Options are those of the method; the rest has
    the method's defaults. How long to train is said in `learn(x, y, epochs=…, batch=…)`.
    """
    entry = method(name)
    kind = entry.load()
    check(name, [each.name for each in fields(kind) if each.init and each.name not in kind.unused], options)
    found: Learner = kind(**{**entry.defaults, "network": network, **options})
    return found
