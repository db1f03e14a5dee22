"""Limits in Avalanche's strategies: the core's duals; and its benchmarks as our streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

pytest.importorskip("avalanche")

import one_problem
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training import Naive
from avalanche.training.plugins import EvaluationPlugin
from avalanche.training.templates import SupervisedTemplate

import pdcl
from pdcl.errors import UsageError
from pdcl.integrations.avalanche import DualReplayPlugin, stream_of


def _dataset(x: torch.Tensor, y: torch.Tensor) -> Any:
    rows = TensorDataset(x, y)
    rows.targets = y.tolist()  # type: ignore[attr-defined]
    return as_classification_dataset(rows)


def benchmark(double: bool = False) -> Any:
    parts = [one_problem.Rows(task) for task in range(one_problem.TASKS)]
    sets = [_dataset(rows.x if double else rows.x.float(), rows.targets) for rows in parts]
    return benchmark_from_datasets(train=sets, test=sets)


def strategy(kind: Any, model: nn.Module, *plugins: Any, epochs: int = one_problem.EPOCHS) -> Any:
    quiet = EvaluationPlugin(accuracy_metrics(stream=True), loggers=[])
    return kind(
        model=model, optimizer=torch.optim.SGD(model.parameters(), one_problem.LR), criterion=nn.CrossEntropyLoss(),
        train_mb_size=one_problem.BATCH, train_epochs=epochs, eval_mb_size=50, plugins=list(plugins), evaluator=quiet,
    )  # fmt: skip


class InOurOrder(Naive):  # type: ignore[misc]
    """Batches in the order of our loop, and a loss in double precision."""

    def _make_empty_loss(self) -> torch.Tensor:
        return super()._make_empty_loss().double()  # type: ignore[no-any-return]

    def make_train_dataloader(self, **options: Any) -> None:
        order = one_problem.InOrder(len(self.adapted_dataset), self.experience.current_experience)
        self.dataloader = DataLoader(self.adapted_dataset, one_problem.BATCH, sampler=order)


def test_duals_are_those_of_a_loop_written_by_hand() -> None:
    _, expected = one_problem.by_hand()
    plugin = DualReplayPlugin(one_problem.core())
    runner = strategy(InOurOrder, one_problem.network(), plugin)
    for experience, duals in zip(benchmark(double=True).train_stream, expected, strict=True):
        runner.train(experience)
        np.testing.assert_allclose(plugin.core.last_duals, duals, rtol=0, atol=1e-6)
    assert plugin.promises is not None


def test_a_strategy_keeps_what_it_would_forget() -> None:
    def accuracy_on_the_first(*plugins: Any) -> float:
        model, parts = one_problem.network().float(), benchmark()
        runner = strategy(Naive, model, *plugins, epochs=6)
        for experience in parts.train_stream:
            runner.train(experience)
        rows = one_problem.Rows(0)
        return float((model(rows.x.float()).argmax(1) == rows.targets).float().mean())

    assert accuracy_on_the_first() < 0.5
    assert accuracy_on_the_first(DualReplayPlugin(pdcl.PrimalDual(30))) > 0.8


def test_what_is_held_back_is_never_trained_on() -> None:
    seen: list[torch.Tensor] = []

    class Watching(Naive):  # type: ignore[misc]
        def forward(self) -> Any:
            seen.append(self.mb_x.clone())
            return super().forward()

    plugin = DualReplayPlugin(pdcl.PrimalDual(30, "+2pt", witness=6))
    runner = strategy(Watching, one_problem.network().float(), plugin)
    runner.train(benchmark().train_stream[0])
    memory = plugin.core.memory
    witnesses = memory["x"][memory["role"] == memory["role"].max()]
    assert len(witnesses) > 0
    trained = torch.cat(seen)
    assert not any(bool((trained == row).all(1).any()) for row in witnesses)


def test_a_benchmark_is_a_stream() -> None:
    stream = stream_of(benchmark(), "small")
    assert [len(task.data) for task in stream.tasks] == [48] * 3
    assert stream.spec.heads == ((0, 1), (2, 3), (4, 5))
    result = pdcl.run(stream, "pdcl", memory=30, network="mlp:8", epochs=4, lr=0.02)
    assert result.mean_accuracy > 0.5


def test_a_benchmark_with_one_test_set_for_all_is_refused() -> None:
    whole = benchmark_from_datasets(
        train=[each.dataset for each in benchmark().train_stream], test=[benchmark().test_stream[0].dataset]
    )
    with pytest.raises(UsageError, match="3 training and 1 test"):
        stream_of(whole)


def test_it_works_with_any_supervised_strategy() -> None:
    plugin = DualReplayPlugin(pdcl.PrimalDual(30))
    strategy(SupervisedTemplate, one_problem.network().float(), plugin).train(benchmark().train_stream[0])
    assert len(plugin.core.memory) == 30
