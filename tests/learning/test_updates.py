"""Optimisers, schedules, clipping, accumulation and class weights that users hand in; without them nothing changes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler, MultiStepLR, OneCycleLR, ReduceLROnPlateau

import pdcl
from pdcl import testing
from pdcl.errors import StateError, UsageError
from pdcl.learning.batches import batches, epoch_order
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule
from pdcl.methods.catalog import method
from pdcl.methods.plain import Finetune
from pdcl.storage.serialize import same
from pdcl.streams.data import TensorData
from pdcl.streams.task import Stream

SIZES = [{0: 20, 1: 20}, {2: 20, 3: 20}]
MOMENTUM = partial(torch.optim.SGD, lr=0.1, momentum=0.9)


def _groups(network: nn.Module) -> torch.optim.Optimizer:
    """The head at ten times the rate of the body, listed first."""
    head = [p for name, p in network.named_parameters() if name.startswith("head")]
    body = [p for name, p in network.named_parameters() if not name.startswith("head")]
    return torch.optim.AdamW([{"params": head, "lr": 0.02}, {"params": body}], lr=0.002)


def _one_cycle(optimiser: torch.optim.Optimizer, updates: int) -> LRScheduler:
    return OneCycleLR(optimiser, max_lr=0.1, total_steps=updates + 1)


def _milestones(optimiser: torch.optim.Optimizer, updates: int) -> LRScheduler:
    return MultiStepLR(optimiser, [updates // 2], 0.1)


def _trained(stream: Stream, **options: Any) -> Any:
    learner = Finetune("mlp:8", **options)
    learner.prepare(stream.spec)
    Loop(learner, stream, Schedule(2, 8)).run()
    return learner


def _by_hand(stream: Stream, make: Any, each: Any, accumulate: int = 1) -> nn.Module:
    """Two epochs of plain training in torch alone. each: called before every update with the parameters."""
    network = Finetune("mlp:8")
    network.prepare(stream.spec)
    model, optimiser = network.model, make(network.model)
    for task in stream.tasks:
        for epoch in range(2):
            order = epoch_order(len(task.data), 0, task.index, epoch)
            for number, batch in enumerate(batches(task.data, task.index, 8, order, torch.device("cpu"))):
                outputs = model(stream.spec.transform(batch.x))
                (nn.functional.cross_entropy(outputs, batch.y) / accumulate).backward()
                if number % accumulate == accumulate - 1:
                    each(list(model.parameters()))
                    optimiser.step()
                    optimiser.zero_grad()
    return model


def _assert_equal(one: nn.Module, other: nn.Module, exactly: bool = True) -> None:
    tolerance = {"rtol": 0, "atol": 0} if exactly else {"rtol": 1e-5, "atol": 1e-6}
    for name, value in one.state_dict().items():
        torch.testing.assert_close(value, other.state_dict()[name], **tolerance)


@pytest.fixture
def stream() -> Stream:
    return testing.gaussian_stream(SIZES)


def test_an_optimiser_that_is_handed_in_trains_as_by_hand(stream: Stream) -> None:
    expected = _by_hand(stream, lambda model: MOMENTUM(model.parameters()), lambda _: None)
    _assert_equal(_trained(stream, optimizer=MOMENTUM).model, expected)


def test_a_class_alone_gets_the_parameters_that_learn(stream: Stream) -> None:
    learner = _trained(stream, optimizer=torch.optim.RMSprop)
    assert type(learner.optimiser) is torch.optim.RMSprop


def test_parameter_groups_keep_their_own_rates(stream: Stream) -> None:
    learner = _trained(stream, optimizer=_groups)
    _assert_equal(learner.model, _by_hand(stream, _groups, lambda _: None))
    assert [group["lr"] for group in learner.optimiser.param_groups] == [0.02, 0.002]


def test_gradients_are_clipped_as_torch_does(stream: Stream) -> None:
    clip = partial(nn.utils.clip_grad_norm_, max_norm=0.05)
    # In one go, as ours: torch's plain Adam differs from it by a bit on some processors.
    expected = _by_hand(stream, lambda model: torch.optim.Adam(model.parameters(), 0.001, fused=True), clip)
    _assert_equal(_trained(stream, clip_norm=0.05).model, expected)
    with pytest.raises(AssertionError):
        _assert_equal(_trained(stream).model, expected)


def test_accumulated_batches_make_one_update_with_their_mean(stream: Stream) -> None:
    # 40 samples in batches of 8: five batches an epoch, all of them one update.
    expected = _by_hand(stream, lambda model: MOMENTUM(model.parameters()), lambda _: None, accumulate=5)
    _assert_equal(_trained(stream, optimizer=MOMENTUM, accumulate=5).model, expected, exactly=False)


def test_what_is_left_of_an_accumulation_makes_a_last_update() -> None:
    # Six batches: updates of 4 and of 2, the second one by the mean of two gradients.
    stream = testing.gaussian_stream([{0: 24, 1: 24}])
    learner, twin = (Finetune("linear", optimizer="sgd", lr=0.1, accumulate=4) for _ in range(2))
    for each in (learner, twin):
        each.prepare(stream.spec)
    order = epoch_order(48, 0, 0, 0)
    for part in (order[:32], order[32:]):
        x, y = stream.tasks[0].data.fetch(part)
        nn.functional.cross_entropy(twin.model(stream.spec.transform(x)), y).backward()
        twin.optimiser.step()
        twin.optimiser.zero_grad()
    Loop(learner, stream, Schedule(1, 8)).run()
    _assert_equal(learner.model, twin.model, exactly=False)


def _rates(stream: Stream, scheduler: Any, **options: Any) -> list[list[float]]:
    """The rate of the first group at every update of each task."""
    found: list[list[float]] = []

    class Watching(Finetune):
        def begin(self, task: Any, steps: int) -> None:
            found.append([])

        def update(self) -> None:
            before = self.updater.held + 1 == self.updater.rules.batches
            found[-1] += [self.optimiser.param_groups[0]["lr"]] if before else []
            super().update()

    learner = Watching("linear", scheduler=scheduler, **options)
    learner.prepare(stream.spec)
    Loop(learner, stream, Schedule(2, 8)).run()
    return found


def test_a_schedule_spans_each_task(stream: Stream) -> None:
    straight = [0.1 * (1 - k / 10) for k in range(10)]
    assert _rates(stream, "linear", lr=0.1) == [pytest.approx(straight)] * 2
    cosine = [0.05 * (1 + np.cos(np.pi * k / 10)) for k in range(10)]
    assert _rates(stream, "cosine", lr=0.1) == [pytest.approx(cosine)] * 2
    warm = _rates(stream, "linear:0.4", lr=0.1)[0]
    assert warm[:4] == pytest.approx([0.025, 0.05, 0.075, 0.1])
    assert warm[4:] == pytest.approx([0.1 * (1 - k / 6) for k in range(6)])


def test_a_schedule_counts_updates_and_not_batches(stream: Stream) -> None:
    assert _rates(stream, "linear", lr=0.1, accumulate=5) == [pytest.approx([0.1, 0.05])] * 2


def test_torch_s_own_schedules_are_made_by_a_function(stream: Stream) -> None:
    assert _rates(stream, _milestones, lr=0.1) == [pytest.approx([0.1] * 5 + [0.01] * 5)] * 2


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": MOMENTUM, "scheduler": "cosine:0.2", "class_weights": {0: 3.0}},
        {"optimizer": _groups, "scheduler": _milestones},
        {"scheduler": _one_cycle},
        {"accumulate": 3, "clip_norm": 0.5, "scheduler": "linear"},
    ],
    ids=" ".join,
)
def test_stopped_anywhere_it_continues_to_the_bit(options: dict[str, Any]) -> None:
    testing.check_continues(Finetune, **options)


@pytest.mark.parametrize(
    "options", [{"optimizer": MOMENTUM}, {"optimizer": _groups, "scheduler": "cosine"}], ids=" ".join
)
def test_a_saved_learner_goes_on_with_what_is_handed_in_again(options: dict[str, Any], tmp_path: Path) -> None:
    random = np.random.default_rng(0)

    def task(first: int) -> tuple[Any, Any]:
        y = random.integers(first, first + 2, 40)
        return random.normal(size=(40, 6)).astype("float32") + 3 * np.eye(6, dtype="float32")[y], y

    tasks = [task(0), task(2)]
    whole, saved = (pdcl.learner("pdcl", "mlp:8", memory=20, **options) for _ in range(2))
    for learner in (whole, saved):
        learner.learn(*tasks[0], epochs=2)
    saved.save(tmp_path / "model")
    with pytest.raises(StateError, match=r"hand them in.*optimizer=…"):
        pdcl.load(tmp_path / "model")
    handed = {name: value for name, value in options.items() if callable(value)}
    saved = pdcl.load(tmp_path / "model", **handed)
    for learner in (whole, saved):
        learner.learn(*tasks[1], epochs=2)
    assert same(whole.state_dict(), saved.state_dict())


def test_moments_stay_with_their_parameters_when_the_head_grows() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 6)).astype("float32")
    learner = pdcl.learner("er", "mlp:8", memory=20, optimizer=_groups)
    learner.learn(x, np.arange(40) % 2, epochs=1)
    moments = {p: learner.optimiser.state[p]["exp_avg"].clone() for p in learner.model.body.parameters()}
    head = learner.optimiser.state[learner.model.head.weight]["exp_avg"].clone()
    from pdcl.lifelong.growth import grow_outputs

    grow_outputs(learner, 3, torch.as_tensor(x))
    for parameter, moment in moments.items():
        torch.testing.assert_close(learner.optimiser.state[parameter]["exp_avg"], moment, rtol=0, atol=0)
    grown = learner.optimiser.state[learner.model.head.weight]["exp_avg"]
    torch.testing.assert_close(grown[:2], head, rtol=0, atol=0)
    assert not grown[2].any()


def test_another_optimiser_than_the_saved_one_is_refused(tmp_path: Path) -> None:
    learner = pdcl.learner("er", "mlp:8", memory=20, optimizer=_groups)
    learner.learn(np.zeros((8, 3), dtype="float32"), np.arange(8) % 2, epochs=1)
    learner.save(tmp_path / "model")
    with pytest.raises(StateError, match="optimiser is another"):
        pdcl.load(tmp_path / "model", optimizer=MOMENTUM)


def test_a_class_weight_counts_a_sample_so_often() -> None:
    learner = Finetune("linear", class_weights={"1": 3, 0: 0.5})
    stream = testing.gaussian_stream([{0: 8, 1: 8, 2: 8}])
    learner.prepare(stream.spec)
    outputs, targets = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    plain = nn.functional.cross_entropy(outputs, targets, reduction="none")
    expected = plain * torch.tensor([0.5, 3, 1, 0.5, 3, 1])
    torch.testing.assert_close(learner.losses(outputs, targets), expected)
    assert learner.goal.error(outputs, targets).max() <= 1


def test_class_weights_know_labels_that_come_later(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
    learner = pdcl.learner("er", "mlp:8", memory=10, class_weights={"late": 7.0})
    learner.learn(x, ["a", "b"] * 10, epochs=1)
    learner.learn(x, ["late", "b"] * 10, epochs=1)
    learner = pdcl.load(learner.save(tmp_path / "model"))
    outputs, late = torch.zeros(1, 3), torch.tensor([learner.labels.index("late")])
    assert float(learner.losses(outputs, late)) == pytest.approx(7 * np.log(3))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"optimizer": MOMENTUM, "lr": 0.3}, "lr=0.3 has no effect"),
        ({"optimizer": MOMENTUM, "weight_decay": 0.1}, "weight_decay=0.1 has no effect"),
        ({"optimizer": "sgdd"}, "unknown"),
        ({"optimizer": 3}, "optimizer=3"),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)], 0.1)}, "what makes one"),
        ({"scheduler": "step"}, "linear or cosine"),
        ({"scheduler": "cosine:2"}, "linear or cosine"),
        ({"clip_norm": 0.0}, "must be positive"),
        ({"accumulate": 0}, "at least 1"),
        ({"class_weights": {0: -1}}, "positive number"),
        ({"class_weights": [1, 2]}, "by label"),
    ],
)
def test_settings_that_say_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Finetune("linear", **options)


def test_what_shows_only_later_is_refused_before_training(stream: Stream) -> None:
    def prepared(**options: Any) -> Any:
        learner = Finetune("linear", **options)
        learner.prepare(stream.spec)
        return learner

    with pytest.raises(UsageError, match="made a int"):
        prepared(optimizer=lambda network: 3)
    with pytest.raises(UsageError, match="parameters that the network doesn't have"):
        prepared(optimizer=lambda network: torch.optim.SGD([torch.zeros(1)], 0.1))
    with pytest.raises(UsageError, match="no label here"):
        prepared(class_weights={"fraud": 2})
    learner = prepared(scheduler=lambda optimiser, updates: ReduceLROnPlateau(optimiser))
    with pytest.raises(UsageError, match="ReduceLROnPlateau"):
        Loop(learner, stream, Schedule(1, 8)).run()


@pytest.mark.parametrize(
    ("name", "option"),
    [("gem", {"accumulate": 2}), ("ewc", {"accumulate": 2}), ("icarl", {"class_weights": {0: 2}})],
)
def test_a_method_says_what_has_no_effect_on_it(name: str, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no option"):
        pdcl.run("digits", name, memory=10, **option) if name != "ewc" else pdcl.run("digits", name, **option)
    with pytest.raises(UsageError, match="no effect"):
        method(name).load()("linear", **option)


def test_records_tell_what_was_handed_in_the_same_each_time(tmp_path: Path, stream: Stream) -> None:
    import json

    options = {"optimizer": MOMENTUM, "scheduler": _milestones, "class_weights": {0: 2.0}}
    result = pdcl.run(stream, "finetune", network="linear", out=tmp_path, epochs=1, **options)
    assert result.path is not None
    found = json.loads((result.path / "config.json").read_text())["options"]
    assert found["optimizer"]["value"] == ["torch.optim.sgd:SGD", {"lr": 0.1, "momentum": 0.9}]
    assert found["scheduler"]["value"].endswith(":_milestones")
    assert found["class_weights"]["value"] == {"0": 2.0}


def test_a_single_sample_that_is_left_over_goes_with_the_batch_before_it() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
    heard: list[Any] = []
    learner = pdcl.PDCL(network, memory=20)
    learner.learn(torch.randn(31, 4), torch.arange(31) % 2, epochs=2, batch=10, listener=heard.append)
    assert [event.steps for event in heard if type(event).__name__ in ("TaskBegan", "TaskEnded")] == [6, 6]


@pytest.mark.parametrize(("samples", "size", "joined"), [(31, 10, 3), (30, 10, 3), (32, 10, 4), (1, 10, 1), (3, 1, 3)])
def test_steps_are_as_many_as_batches(samples: int, size: int, joined: int) -> None:
    data = TensorData(torch.zeros(samples, 2), torch.zeros(samples, dtype=torch.long))
    for joins, count in ((True, joined), (False, -(-samples // size))):
        read = list(batches(data, 0, size, torch.arange(samples), torch.device("cpu"), joins=joins))
        assert len(read) == Schedule(1, size).steps(samples, joins) == count
        assert torch.cat([batch.index for batch in read]).tolist() == list(range(samples))
