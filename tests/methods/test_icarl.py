"""iCaRL: exemplars that stand for their class, targets from the old network, prediction by the nearest mean."""

from __future__ import annotations

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from pdcl.algorithm.selection import herding


def test_herded_means_approach_the_class_mean_faster_than_random_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(300, 16, generator=generator).double()
    chosen = herding(features, 60)
    counts = torch.arange(1, 61)[:, None]

    def distances(order: torch.Tensor) -> torch.Tensor:
        return (features[order].cumsum(0) / counts - features.mean(0)).norm(dim=1)

    random = torch.stack([distances(torch.randperm(300, generator=generator)[:60]) for _ in range(50)])
    found = distances(chosen)
    assert bool((found < random.amin(0))[4:].all())
    # Random means approach as k^(−1/2), herded ones as 1/k.
    assert found[-1] < 0.3 * random.mean(0)[-1]


def test_exemplars_are_shared_by_all_classes_and_old_ones_keep_their_first(trained) -> None:
    one, three = trained("icarl", tasks=1, memory=30), trained("icarl", tasks=3, memory=30)
    assert torch.bincount(one.held["y"]).tolist() == [15, 15]
    assert torch.bincount(three.held["y"]).tolist() == [5] * 6
    first = [one.held["id"][one.held["y"] == c][:5].tolist() for c in (0, 1)]
    assert [three.held["id"][three.held["y"] == c].tolist() for c in (0, 1)] == first


def test_the_loss_distils_past_classes_and_labels_the_rest(trained, stream, batch) -> None:
    learner = trained("icarl", tasks=1, network="linear")
    learner.begin(stream.tasks[1], 6)
    with torch.no_grad():
        learner.model.head.weight.add_(0.3)
    now = batch(1)
    targets = torch.eye(6)[now.y]
    weight, bias = learner.old["head.weight"], learner.old["head.bias"]
    targets[:, :2] = (now.x @ weight.T + bias).sigmoid()[:, :2]
    expected = binary_cross_entropy_with_logits(learner.model(now.x), targets, reduction="none").mean(1)
    torch.testing.assert_close(learner.step(now).losses, expected.detach())


def test_prediction_is_the_nearest_exemplar_mean(trained, stream) -> None:
    learner = trained("icarl", tasks=2, memory=40)
    learner.model.eval()
    x, _ = stream.tasks[0].test.fetch(torch.arange(20))
    unit = torch.nn.functional.normalize(learner.penultimate(x)).detach()
    y, stored = learner.held["y"], torch.nn.functional.normalize(learner.penultimate(learner.held["x"])).detach()
    means = torch.stack([torch.nn.functional.normalize(stored[y == c].mean(0), dim=0) for c in range(4)])
    scores = learner.scores(x).detach()
    torch.testing.assert_close(scores[:, :4], -torch.cdist(unit, means).square(), rtol=1e-3, atol=1e-4)
    assert bool((scores[:, 4:] < scores[:, :4].amin()).all())


def test_exemplars_are_mixed_into_the_next_task(trained, stream) -> None:
    learner = trained("icarl", tasks=1, memory=30)
    assert len(learner.mix(stream.tasks[1])) == 30
