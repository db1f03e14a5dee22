"""Forward passes of a learner: from raw inputs to outputs, while training and in eval mode. Methods of `Learner`.

What a step does with its losses is in `updates`.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdcl.learning.batches import EVALUATION_BATCH
from pdcl.learning.data_parallel import own_generator
from pdcl.learning.placement import PRECISIONS
from pdcl.networks import eval_mode, features_of
from pdcl.trees import Tree, call, joined, length, logits_of, split, to

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def outputs(learner: Learner, raw: Tree, augment: bool = True) -> Tensor:
    """Network outputs for raw inputs: a tensor is normalised, and augmented while training; trees are as they are.

    A dict is handed over as keywords, a tuple as arguments. Of what comes back the logits are taken.
    """
    assert learner.spec is not None
    training = learner.model.training
    model, generator = learner.model, learner.generator if augment and training else None
    if not learner.peers.alone:
        # A rank may have no sample in a step, yet others wait for its gradients; few networks take an empty batch.
        if not length(raw):
            return learner.outputs(to(learner.spec.blank(1), learner.place), augment)[:0]
        generator = None if generator is None else own_generator(learner)
        model = learner.averaged.network(model) if training and torch.is_grad_enabled() else model
    dtype = PRECISIONS[learner.precision]
    with nullcontext() if dtype is None else torch.autocast(learner.place.type, dtype):
        out = model(learner.spec.transform(raw, generator)) if isinstance(raw, Tensor) else call(model, raw)
    out = out if isinstance(out, Tensor) else logits_of(out)
    return out if out.dtype == torch.float64 else out.float()


def penultimate(learner: Learner, raw: Tree) -> Tensor:
    """What the last layer sees, n × d."""
    assert learner.spec is not None
    x = learner.spec.transform(raw) if isinstance(raw, Tensor) else raw
    return logits_of(call(features_of(learner.model) or learner.model, x))


def scores(learner: Learner, raw: Tree) -> Tensor:
    """What evaluation and `predict` look at, n × outputs."""
    return learner.outputs(raw, augment=False)


@torch.no_grad()
def evaluated(learner: Learner, x: Tree, size: int = EVALUATION_BATCH) -> Tensor:
    """Scores of many raw inputs in eval mode, in pieces of `size`."""
    with eval_mode(learner.model):
        if length(x) <= size:
            return learner.scores(to(x, learner.place))
        return joined([learner.scores(to(part, learner.place)) for part in split(x, size)])


@torch.no_grad()
def logits(learner: Learner, x: Tree) -> Tensor:
    """Outputs of the network in eval mode, whatever the method's scores are."""
    with eval_mode(learner.model):
        return joined([learner.outputs(to(part, learner.place), augment=False) for part in split(x, EVALUATION_BATCH)])
