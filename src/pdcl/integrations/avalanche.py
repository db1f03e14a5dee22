"""Limits on forgetting in Avalanche: a plugin for its strategies, and its benchmarks as our streams.

plugin = DualReplayPlugin(pdcl.PrimalDual(memory=500, tolerance="+2pt"))
strategy = Naive(model=model, optimizer=optimiser, criterion=CrossEntropyLoss(), plugins=[plugin])
for experience in benchmark.train_stream:
    strategy.train(experience)
    print(plugin.promises)

pdcl.run(stream_of(benchmark), "pdcl", memory=500)
"""

from __future__ import annotations

from typing import Any

from avalanche.training.plugins import SupervisedPlugin
from torch.utils.data import Dataset

from pdcl.errors import UsageError
from pdcl.integrations.task_replay import TaskReplay
from pdcl.learning.primal_dual import PrimalDual
from pdcl.streams.samples import column
from pdcl.streams.task import Stream
from pdcl.streams.task_list import from_tasks


class DualReplayPlugin(SupervisedPlugin):  # type: ignore[misc]
    """A plugin for any supervised strategy; one experience is one task. The criterion must be a mean over the batch."""

    def __init__(self, core: PrimalDual, replay: int | None = None, seed: int = 0) -> None:
        super().__init__()
        self.adapter = TaskReplay(core, replay, seed)

    @property
    def core(self) -> PrimalDual:
        return self.adapter.core

    @property
    def promises(self) -> Any:
        """What became of every limit after the newest experience."""
        return self.adapter.promises

    def after_train_dataset_adaptation(self, strategy: Any, *args: Any, **kwargs: Any) -> None:
        """Hold back what steers duals and judges limits; the strategy trains on the rest."""
        experience = strategy.experience
        rows = Rows(strategy.adapted_dataset)
        part = self.adapter.enter(f"experience {experience.current_experience}", rows, strategy.model)
        indices = getattr(part, "indices", None)
        if indices is not None:
            strategy.adapted_dataset = strategy.adapted_dataset.subset(indices)

    def before_training_exp(self, strategy: Any, *args: Any, **kwargs: Any) -> None:
        steps = strategy.train_epochs * len(strategy.dataloader)
        self.adapter.begin(len(strategy.adapted_dataset), steps)

    def before_backward(self, strategy: Any, *args: Any, **kwargs: Any) -> None:
        strategy.loss = self.adapter.total(strategy.loss, len(strategy.mb_y), strategy.model)

    def after_training_iteration(self, strategy: Any, *args: Any, **kwargs: Any) -> None:
        self.adapter.after(strategy.model)

    def after_training_exp(self, strategy: Any, *args: Any, **kwargs: Any) -> None:
        self.adapter.leave(strategy.model)


class Rows(Dataset[Any]):
    """An Avalanche dataset as (input, target) pairs, its task labels left out."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.targets = column([int(target) for target in dataset.targets])

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, row: int) -> tuple[Any, int]:
        return self.dataset[row][0], int(self.targets[row])


def stream_of(benchmark: Any, name: str | None = None) -> Stream:
    """An Avalanche benchmark as a stream of ours: one task per training experience, tested on the one beside it."""
    train, test = benchmark.train_stream, benchmark.test_stream
    if len(train) != len(test):
        raise UsageError(
            f"the benchmark has {len(train)} training and {len(test)} test experiences; a task needs test data of its "
            "own: make the benchmark with as many"
        )
    parts = [(Rows(one.dataset), Rows(other.dataset)) for one, other in zip(train, test, strict=True)]
    titles = [f"experience {each.current_experience}" for each in train]
    return from_tasks(parts, name=name or "avalanche", names=titles)
