"""What the command line warns of, Python warns of: once a task, at the user's own line, and not to those who listen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import pdcl
from pdcl.learning.events import Event, Infeasible, TaskBegan, Warned

CUT = "witness=500: 20 were set aside; at most a tenth of a task's samples (200 here)"


def _task(first: int) -> tuple[Any, Any]:
    torch.manual_seed(first)
    return torch.randn(200, 8), first + torch.arange(200) % 2


def _learner(**options: Any) -> Any:
    return pdcl.PDCL("mlp:32", memory=300, tolerance="+2pt", **{"witness": 500, **options})


def _told(do: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        do()
    return [each for each in heard if issubclass(each.category, pdcl.LearningWarning)]


def test_fewer_witnesses_than_stated_are_a_warning_at_the_users_line() -> None:
    (said,) = _told(lambda: _learner().learn(*_task(0), epochs=1))
    assert str(said.message).startswith(CUT)
    assert said.filename == __file__


def test_an_adopted_task_is_warned_of_too() -> None:
    network = torch.nn.Linear(8, 2)
    learner = pdcl.PDCL(network, memory=300, tolerance="+2pt", witness=500)
    (said,) = _told(lambda: learner.adopt(*_task(0), labels=[0, 1]))
    assert str(said.message).startswith(CUT)


def test_who_listens_hears_the_event_and_no_warning() -> None:
    events: list[Event] = []
    assert _told(lambda: _learner().learn(*_task(0), epochs=1, listener=events.append)) == []
    assert [event.message[: len(CUT)] for event in events if isinstance(event, Warned)] == [CUT]


@pytest.fixture
def speaking(monkeypatch: Any) -> Any:
    """A learner whose tasks end with an unmet limit, told twice."""

    def end(self: Any, task: Any) -> None:
        usual(self, task)
        for _ in range(2):
            self.emit(Infeasible(task.index, 0, dual=1.5, slack=0.03, tolerance=0.02, reached=0.05))

    usual = pdcl.PDCL.end
    monkeypatch.setattr(pdcl.PDCL, "end", end)
    learner = _learner(witness=0)
    learner.learn(*_task(0), name="legacy", epochs=1, listener=lambda event: None)
    return learner


def test_an_unmet_limit_is_one_sentence_a_task_with_its_name_and_unit(speaking: Any) -> None:
    told = _told(lambda: speaking.learn(*_task(2), epochs=1))
    assert [str(each.message) for each in told] == ["tolerance 2.0 % of legacy not met: 5.0 %, λ 1.50 rising"]
    assert told[0].filename == __file__


def test_warnings_as_errors_lose_no_training_but_stop_before_it(speaking: Any) -> None:
    """What training shows is raised when the task is learned; what is known before it, before it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pdcl.LearningWarning)
        with pytest.raises(pdcl.LearningWarning, match="of legacy not met"):
            speaking.learn(*_task(2), epochs=1)
        assert speaking.tasks_learned == 2
        fresh = _learner()
        with pytest.raises(pdcl.LearningWarning, match="witness=500"):
            fresh.learn(*_task(0), epochs=1)
        assert fresh.tasks_learned == 0


def test_a_run_without_listeners_warns_once_for_each_task() -> None:
    x, y = (torch.cat(parts) for parts in zip(_task(0), _task(2), strict=True))
    stream = pdcl.split(x, y, classes_per_task=2)
    options = {"memory": 300, "tolerance": "+2pt", "witness": 500, "epochs": 1}
    began: list[Event] = []
    told = _told(lambda: pdcl.run(stream, "pdcl", **options))
    assert _told(lambda: pdcl.run(stream, "pdcl", listeners=[began.append], **options)) == []
    short = [each for each in told if "witness=500" in str(each.message)]
    assert len(short) == len([event for event in began if isinstance(event, TaskBegan)]) == 2
    assert {each.filename for each in told} == {__file__}
