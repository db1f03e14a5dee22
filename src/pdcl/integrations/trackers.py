"""What a run does, in TensorBoard, Weights & Biases or MLflow: listeners for `pdcl.run` and `learner.learn`.

    pdcl.run("digits", "pdcl", memory=100, listeners=[TensorBoard("logs")])
    learner.learn(x, y, listener=tracker)                      one tracker may hear many tasks; close() it at the end

Each is imported where it is used: `pip install tensorboard`, `wandb` or `mlflow`. Steps count on from task to task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

from pdcl.integrations.event_numbers import Numbers, facts_of, numbers_of
from pdcl.learning.events import DualsMoved, Event, Stepped, TaskBegan, TaskEnded


class Tracker(ABC):
    """A listener that passes numbers on, with the step they belong to."""

    def __init__(self) -> None:
        self.step = 0
        # Steps of earlier tasks, of earlier epochs of this one, and of both with the epoch's last known step.
        self._before, self._epochs, self._known, self._epoch = 0, 0, 0, 0

    def __call__(self, event: Event) -> None:
        self._count(event)
        if facts := facts_of(event):
            self.note(facts)
        if numbers := numbers_of(event):
            self.plot(numbers, self.step)

    def _count(self, event: Event) -> None:
        """Steps since the beginning of the life. The last step of every epoch is an event, so none is missed."""
        if isinstance(event, TaskBegan):
            self._epochs, self._known, self._epoch = 0, 0, 0
        elif isinstance(event, Stepped):
            if event.epoch > self._epoch:
                self._epochs, self._epoch = self._known, event.epoch
            self._known = self._epochs + event.step + 1
            self.step = self._before + self._known
        elif isinstance(event, DualsMoved):
            self.step = max(self.step, self._before + event.step)
        elif isinstance(event, TaskEnded):
            self._before = self.step = self._before + event.steps

    @abstractmethod
    def plot(self, numbers: Numbers, step: int) -> None:
        """Pass numbers on."""

    @abstractmethod
    def note(self, facts: dict[str, str | int]) -> None:
        """Pass settings on."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class TensorBoard(Tracker):
    """Event files in a directory, for `tensorboard --logdir`."""

    def __init__(self, directory: str | Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        super().__init__()
        self.writer: Any = SummaryWriter(str(directory))

    def plot(self, numbers: Numbers, step: int) -> None:
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, step)

    def note(self, facts: dict[str, str | int]) -> None:
        for name, fact in facts.items():
            self.writer.add_text(name, str(fact), self.step)

    def close(self) -> None:
        self.writer.close()


class WandB(Tracker):
    """A run of Weights & Biases; settings are those of `wandb.init`, such as project="…", mode="offline"."""

    def __init__(self, **settings: Any) -> None:
        import wandb

        super().__init__()
        self.run: Any = wandb.init(**settings)

    def plot(self, numbers: Numbers, step: int) -> None:
        self.run.log(numbers, step=step)

    def note(self, facts: dict[str, str | int]) -> None:
        self.run.config.update(facts, allow_val_change=True)

    def close(self) -> None:
        self.run.finish()


class MLflow(Tracker):
    """A run of MLflow, in the store at `uri` (a directory's sqlite file, a server). The active run isn't touched."""

    def __init__(self, uri: str, experiment: str = "pdcl", name: str | None = None) -> None:
        from mlflow import MlflowClient

        super().__init__()
        self.client: Any = MlflowClient(tracking_uri=uri)
        found = self.client.get_experiment_by_name(experiment)
        number = self.client.create_experiment(experiment) if found is None else found.experiment_id
        self.run_id: str = self.client.create_run(number, run_name=name).info.run_id

    def plot(self, numbers: Numbers, step: int) -> None:
        for name, value in numbers.items():
            self.client.log_metric(self.run_id, name, value, step=step)

    def note(self, facts: dict[str, str | int]) -> None:
        for name, fact in facts.items():
            self.client.log_param(self.run_id, name, fact)

    def close(self) -> None:
        self.client.set_terminated(self.run_id)
