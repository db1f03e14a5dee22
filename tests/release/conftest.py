"""Models whose answers are known, so that verdicts can be foretold."""

import numpy as np
import pytest
import torch
from torch import nn

from pdcl.methods.plain import Finetune
from pdcl.streams.class_split import split


class Says(nn.Module):
    """Answers with its input: the logits of three classes."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        return x + self.bias


@pytest.fixture
def oracle():
    """A prepared learner of the labels cat, dog, owl that answers with the largest input."""
    inputs = np.eye(3, dtype=np.float32).repeat(10, 0) * 4
    stream = split(inputs, np.repeat(["cat", "dog", "owl"], 10), classes_per_task=3)
    learner = Finetune(Says(), device="cpu")
    learner.prepare(stream.spec)
    return learner


@pytest.fixture
def audit():
    return make_audit


def make_audit(counts, errors, seed=0, **columns):
    """counts[c] samples of each class, of which errors[c] are answered wrongly."""
    names = ["cat", "dog", "owl"]
    y = np.repeat(names, counts)
    said = np.concatenate([_answers(c, n, wrong) for c, (n, wrong) in enumerate(zip(counts, errors, strict=True))])
    noise = np.random.default_rng(seed).normal(0, 1e-3, (len(y), 3))
    x = (4 * np.eye(3)[said] + noise).astype(np.float32)
    return {"x": x, "y": y, **columns}


def _answers(c, n, wrong):
    return np.concatenate([np.full(n - wrong, c), np.full(wrong, (c + 1) % 3)])
