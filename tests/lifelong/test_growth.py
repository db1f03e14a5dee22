"""New classes widen the network and leave what was learned as it was."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import pdcl
from pdcl.algorithm.drift import drift_of
from pdcl.errors import PdclError, UsageError
from pdcl.lifelong.growth import grow_outputs
from pdcl.lifelong.learner import Learner
from pdcl.methods.catalog import method
from pdcl.storage.serialize import same


def _learner(name: str = "pdcl", network: Any = "mlp:16", **options: Any) -> Learner:
    entry = method(name)
    learner: Learner = entry.load()(
        network, **{"memory": 20, "optimizer": "sgd", "lr": 0.1, **entry.defaults, **options}
    )
    return learner


def _loss(learner: Learner, x: Any, y: Any) -> float:
    assert learner.spec is not None
    targets = torch.tensor([learner.spec.labels.index(label) for label in y.tolist()])
    return float(learner.losses(learner.logits(torch.as_tensor(x)), targets).double().mean())


@pytest.mark.parametrize("epochs", [1, 5, 60])
@pytest.mark.parametrize("new", [1, 2, 30])
def test_past_tasks_lose_less_than_a_percent_at_the_moment_of_growth(epochs: int, new: int, blobs: Any) -> None:
    learner = _learner()
    x, y = blobs(["a", "b", "c"], 40)
    learner.learn(x, y, epochs=epochs)
    before = _loss(learner, x, y)
    grow_outputs(learner, 3 + new, torch.as_tensor(x))
    assert _loss(learner, x, y) - before < 0.01 * max(before, 0.001)
    assert learner.evaluate(x, y) > 0.9


@pytest.mark.parametrize("name", ["finetune", "ewc"])
def test_without_memory_growth_is_as_gentle(name: str, blobs: Any) -> None:
    learner = method(name).load()("mlp:16", lr=0.05)
    x, y = blobs(["a", "b", "c"], 40)
    learner.learn(x, y, epochs=3)
    before = _loss(learner, x, y)
    grow_outputs(learner, 5, torch.as_tensor(x))
    assert _loss(learner, x, y) - before < 0.01 * max(before, 0.001)


def _apart(first: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(first, first + 2, 80)
    return (0.3 * rng.normal(size=(80, 6)) + 3 * np.eye(6)[y]).astype(np.float32), y


def test_after_a_memorised_task_a_small_learning_rate_reaches_new_classes() -> None:
    learner = pdcl.learner("er", "mlp:16", memory=40, lr=0.03)
    learner.learn(*_apart(0, 0), epochs=60)
    learner.lr = 0.001
    learner.learn(*_apart(2, 2), epochs=12)
    assert learner.evaluate(*_apart(2, 3)) > 0.8
    assert learner.evaluate(*_apart(0, 1)) > 0.95


def test_new_classes_are_learned_and_known_ones_may_return(blobs: Any) -> None:
    learner = _learner(replay=10)
    learner.learn(*blobs([10, 20]), epochs=5)
    x, y = blobs(["x", 20, "y"])
    mixed = np.asarray([20 if label == "20" else label for label in y.tolist()], dtype=object)
    learner.learn(x, mixed, epochs=8)
    learner.learn(*blobs([10, 30], seed=1), epochs=8)
    assert learner.spec is not None
    assert learner.spec.labels == (10, 20, "x", "y", 30)
    assert learner.evaluate(*blobs([30], seed=2)) > 0.8


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_optimiser_keeps_its_state_of_old_rows_and_starts_new_ones_at_zero(optimizer: str, blobs: Any) -> None:
    learner = _learner(optimizer=optimizer, lr=0.01, keep_optimizer=True)
    x, y = blobs(["a", "b"])
    learner.learn(x, y, epochs=1)
    old = copy.deepcopy(learner.optimiser.state_dict())["state"]
    grow_outputs(learner, 5, torch.as_tensor(x))
    new = learner.optimiser.state_dict()["state"]
    assert new.keys() == old.keys()
    for index, moments in old.items():
        for key, value in moments.items():
            found = new[index][key]
            part = found[tuple(slice(0, size) for size in value.shape)] if value.ndim else found
            assert torch.equal(part, value)
            assert found.sum() == pytest.approx(float(value.sum()), rel=1e-5)


@pytest.mark.parametrize("name", ["derpp", "pdcl"])
def test_recorded_outputs_grow_with_the_network(name: str, blobs: Any) -> None:
    """As in a run, whose head has all outputs from the start: with the new ones left free pdcl forgot more, by
    about 1 point on digits and 1.5 on mnist."""
    learner = _learner(name, **({"drift": 0.3} if name == "pdcl" else {}))
    x, y = blobs(["a", "b"])
    learner.learn(x, y, epochs=1)
    assert learner.store is not None
    old = learner.store["outputs"].clone()
    grow_outputs(learner, 4, torch.as_tensor(x))
    assert torch.equal(learner.store["outputs"][:, :2], old)
    assert torch.equal(learner.store["outputs"][:, 2:], learner.logits(learner.store["x"])[:, 2:])
    learner.learn(*blobs(["a", "c"]), epochs=1)


def test_drift_leaves_outputs_free_that_have_no_record() -> None:
    """Models that were saved while grown outputs were not recorded have NaN there: no gradient, and no part in K_i."""
    recorded = torch.tensor([[1.0, 2.0, torch.nan, torch.nan]])
    outputs = torch.tensor([[3.0, 4.0, 5.0, 5.0]], requires_grad=True)
    gaps = drift_of(outputs, recorded)
    gaps.sum().backward()
    assert gaps.tolist() == [4.0]
    assert outputs.grad is not None
    assert outputs.grad.tolist() == [[2.0, 2.0, 0.0, 0.0]]


@pytest.mark.parametrize("name", ["derpp", "pdcl", "pdcl-s"])
def test_a_memory_bounded_in_bytes_still_fits_after_growth(name: str, blobs: Any, tmp_path: Any) -> None:
    """Wider outputs leave room for fewer samples; what is saved then can be loaded."""
    learner = _learner(name, "linear", memory="1KB")
    for labels in (["a", "b"], ["c", "d"]):
        learner.learn(*blobs(labels), epochs=1)
    assert learner.store is not None
    assert learner.store.nbytes <= 1000
    loaded = pdcl.load(learner.save(tmp_path / "model"))
    for each in (learner, loaded):
        each.learn(*blobs(["a", "e"]), epochs=1)
    assert same(learner.state_dict(), loaded.state_dict())


class Odd(nn.Module):
    """Nothing that looks like a last linear layer."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(5, outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


def test_a_network_without_a_last_layer_asks_for_a_hook(blobs: Any) -> None:
    learner = _learner(network=Odd(2))
    learner.learn(*blobs(["a", "b"]), epochs=1)
    with pytest.raises(UsageError, match="grow=function"):
        learner.learn(*blobs(["c"]), epochs=1)
    assert learner.spec is not None
    assert learner.spec.labels == ("a", "b")

    def grow(network: nn.Module, outputs: int) -> None:
        assert isinstance(network, Odd)
        wide = torch.full((5, outputs), -1.0)
        wide[:, :2] = network.weight.detach()
        network.weight = nn.Parameter(wide)

    learner.learn(*blobs(["c"]), epochs=1, grow=grow)
    assert learner.spec.labels == ("a", "b", "c")


def test_a_module_with_spare_outputs_fills_them_first(blobs: Any) -> None:
    learner = _learner(network=nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)))
    learner.learn(*blobs(["a", "b"]), epochs=2)
    learner.learn(*blobs(["c"]), epochs=2)
    assert learner.spec is not None
    assert (learner.spec.outputs, learner.spec.labels) == (3, ("a", "b", "c"))
    learner.learn(*blobs(["d"]), epochs=1)
    assert learner.spec.outputs == 4


def test_parameters_without_gradient_and_frozen_statistics_stay_untouched(blobs: Any) -> None:
    network = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    for part in network[:2]:
        part.requires_grad_(False)
    before = copy.deepcopy(network[:2].state_dict())
    learner = _learner(network=network, weight_decay=0.1)
    learner.learn(*blobs(["a", "b"]), epochs=2)
    learner.learn(*blobs(["c"]), epochs=2)
    assert same(dict(network[:2].state_dict()), dict(before))


def _backbone(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh())


def test_a_frozen_backbone_stores_features_and_may_not_change(tmp_path: Any, blobs: Any) -> None:
    learner = _learner(network="linear", backbone=_backbone())
    learner.learn(*blobs(["a", "b"]), epochs=2)
    assert learner.store is not None
    assert learner.store["x"].shape == (20, 4)
    learner.save(tmp_path / "model")
    found = pdcl.load(tmp_path / "model", backbone=_backbone())
    x, y = blobs(["a", "b"], seed=3)
    assert found.predict(x).tolist() == learner.predict(x).tolist()
    with pytest.raises(PdclError, match="backbone has changed"):
        pdcl.load(tmp_path / "model", backbone=_backbone(1))
    assert learner.backbone is not None
    next(learner.backbone.parameters()).data.add_(1)
    with pytest.raises(UsageError, match="backbone has changed"):
        learner.learn(x, y, epochs=1)


def _deployed(x: Any, y: Any) -> nn.Module:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    optimiser = torch.optim.Adam(network.parameters(), 0.05)
    targets = torch.as_tensor((y == "b").astype(np.int64))
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(torch.as_tensor(x)), targets).backward()
        optimiser.step()
    return network


@pytest.mark.parametrize("name", ["pdcl", "pdcl-s", "er", "er-ring", "derpp", "icarl", "gem", "ewc", "lwf"])
def test_adopting_trains_nothing_and_fills_memory(name: str, blobs: Any) -> None:
    x, y = blobs(["a", "b"])
    network = _deployed(x, y)
    before = copy.deepcopy(network.state_dict())
    entry = method(name)
    options = {"memory": 12} if entry.uses_memory else {}
    options |= {"warm_epochs": 0} if name == "lwf" else {}
    learner = entry.load()(network, **entry.defaults, **options)
    entry_ = learner.adopt(x, y, name="before our time")
    assert same(dict(learner.model.state_dict()), dict(before))
    assert entry_["how"] == "adopted"
    if entry.uses_memory:
        assert len(learner.store) == 12
    learner.learn(*blobs(["c"]), epochs=2)
    assert learner.tasks_learned == 2
    assert learner.spec.labels == ("a", "b", "c")


def test_an_adopted_task_has_the_tolerance_that_was_agreed(blobs: Any) -> None:
    x, y = blobs(["a", "b"])
    learner: Any = pdcl.PDCL(_deployed(x, y), memory=12, lr=0.05)
    learner.adopt(x, y, tolerance=0.37)
    assert learner.core.tolerances.values == [0.37]
    learner.learn(*blobs(["c"]), epochs=2)
    assert learner.core.tolerances.values[0] == 0.37
    assert learner.core.tolerances.of(1) is None
    learner.adopt(x, y, tolerance="5%")
    assert [learner.core.tolerances.unit(k) for k in (0, 2)] == ["loss", "error"]


def test_adopting_what_a_network_cannot_know_is_refused(blobs: Any) -> None:
    x, y = blobs(["a", "b"])
    learner = pdcl.PDCL(_deployed(x, y), memory=12)
    learner.adopt(x, y)
    with pytest.raises(UsageError, match="can't know"):
        learner.adopt(*blobs(["z"]))
    with pytest.raises(UsageError, match="not a name"):
        pdcl.PDCL("linear", memory=12).adopt(x, y)
    with pytest.raises(UsageError, match="knows no tolerances"):
        method("er").load()(_deployed(x, y), memory=12).adopt(x, y, tolerance=0.1)


def _labelled(columns: int, seed: int = 0) -> tuple[Any, Any]:
    x = np.random.default_rng(seed).normal(size=(300, 6)).astype(np.float32)
    return x, (x[:, :columns] > 0).astype(np.float32)


@pytest.mark.parametrize("name", ["pdcl", "er", "derpp", "finetune"])
def test_further_labels_widen_a_multilabel_head(name: str, tmp_path: Any) -> None:
    """What nobody said of stored samples stays unknown; narrower targets are judged by the labels they have."""
    entry = method(name)
    learner: Any = entry.load()("mlp:32", lr=0.01, **entry.defaults, **({"memory": 100} if entry.uses_memory else {}))
    learner.learn(*_labelled(3), kind="multilabel", epochs=10)
    learner.learn(*_labelled(5, 1), epochs=10)
    x, y = _labelled(5, 2)
    assert learner.predict(x).shape == (300, 5)
    assert learner.evaluate(x, y) > 0.9
    assert learner.evaluate(x, y[:, :3]) > 0.9
    if learner.store is not None:
        old = learner.store["task"] == 0 if "task" in learner.store.columns else None
        held = learner.store["y"]
        assert held.shape[1] == 5
        assert not held[:, :3].isnan().any()
        if old is not None:
            assert held[old, 3:].isnan().all()
            assert not held[~old].isnan().any()
    found = pdcl.load(learner.save(tmp_path / "model"))
    for each in (learner, found):
        each.learn(*_labelled(4, 3), epochs=1)
    assert same(learner.state_dict(), found.state_dict())


@pytest.mark.parametrize(("outputs", "then"), [(2, 3), (5, 5)])
def test_a_module_of_another_width_takes_the_labels_there_are(outputs: int, then: int) -> None:
    learner = pdcl.PDCL(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, outputs)), memory=40)
    learner.learn(*_labelled(3), kind="multilabel", epochs=1)
    assert learner.predict(_labelled(3)[0]).shape == (300, then)
