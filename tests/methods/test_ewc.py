"""Online EWC: its Fisher information against the closed form, and the penalty against its gradient."""

from __future__ import annotations

import pytest
import torch

from pdcl.errors import UsageError
from pdcl.streams.task import Spec


def test_exact_fisher_is_the_closed_form_of_logistic_regression(trained, stream) -> None:
    learner = trained("ewc", tasks=1, network="linear")
    data = stream.tasks[0].data
    x, _ = data.fetch(torch.arange(len(data)))
    p = learner.model(x).softmax(1).detach()
    spread = p * (1 - p)
    found = learner.fisher_diagonal(data)
    # F_cd = mean_i p_c (1 − p_c) x_d², the diagonal of E[x xᵀ ⊗ (diag p − p pᵀ)].
    torch.testing.assert_close(found["head.weight"], spread.T @ x.square() / len(x), rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(found["head.bias"], spread.mean(0), rtol=1e-4, atol=1e-7)


def test_label_fisher_is_the_label_s_term(trained, stream) -> None:
    learner = trained("ewc", tasks=1, network="linear", fisher="label")
    data = stream.tasks[0].data
    x, y = data.fetch(torch.arange(len(data)))
    p = learner.model(x).softmax(1).detach()
    slope = torch.eye(p.shape[1])[y] - p
    expected = (p.gather(1, y[:, None]) * slope.square()).T @ x.square() / len(x)
    torch.testing.assert_close(learner.fisher_diagonal(data)["head.weight"], expected, rtol=1e-4, atol=1e-7)


def test_fisher_does_not_depend_on_how_samples_are_divided(trained, stream) -> None:
    learner, data = trained("ewc", tasks=1), stream.tasks[0].data
    whole = learner.fisher_diagonal(data)
    index = torch.arange(len(data))
    halves = [learner.fisher_diagonal(data.subset(part)) for part in index.split(len(data) // 2)]
    for name, value in whole.items():
        torch.testing.assert_close(value, (halves[0][name] + halves[1][name]) / 2, rtol=1e-4, atol=1e-8)


def test_a_step_follows_loss_and_penalty(trained, batch) -> None:
    learner = trained("ewc", tasks=1, strength=3.0)
    with torch.no_grad():
        for p in learner.model.parameters():
            p.add_(0.1)
    now, parameters = batch(1), dict(learner.model.named_parameters())
    pull = [(learner.importance[n] * (p - learner.anchor[n]) ** 2).sum() for n, p in parameters.items()]
    total = learner.losses(learner.outputs(now.x), now.y).mean() + 3.0 * torch.stack(pull).sum()
    slopes = torch.autograd.grad(total, list(parameters.values()))
    before = {n: p.detach().clone() for n, p in parameters.items()}
    learner.step(now)
    for (n, p), slope in zip(parameters.items(), slopes, strict=True):
        torch.testing.assert_close(p.detach(), before[n] - learner.lr * slope, rtol=1e-4, atol=1e-6)


def test_importance_accumulates_and_fades(trained, stream) -> None:
    learner = trained("ewc", tasks=2, decay=0.0)
    last = learner.fisher_diagonal(stream.tasks[1].data)
    torch.testing.assert_close(learner.importance["head.weight"], last["head.weight"])


def test_what_is_not_classification_is_refused(learner) -> None:
    made = learner("ewc")
    with pytest.raises(UsageError, match="regression"):
        made.prepare(Spec((3,), torch.float32, 1, kind="regression"))
    with pytest.raises(UsageError, match="exact or label"):
        learner("ewc", fisher="sampled")
