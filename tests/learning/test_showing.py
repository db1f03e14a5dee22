"""On a terminal `learn` shows where it is; elsewhere it says nothing."""

import io

import numpy as np
import pytest

import pdcl
from pdcl.learning.events import DualsMoved, Stepped, TaskBegan, ignore
from pdcl.lifelong import showing
from pdcl.screen import Screen


def month(first):
    y = np.random.default_rng(first).integers(first, first + 2, 200)
    return np.random.default_rng(1).normal(size=(200, 8)).astype("float32") + 3 * np.eye(8, dtype="float32")[y], y


@pytest.fixture(scope="module")
def learner():
    learner = pdcl.PDCL("mlp:8", memory=40, tolerance="+2pt")
    learner.learn(*month(0), name="2026-11", epochs=1)
    return learner


def screen(terminal):
    return Screen(file=io.StringIO(), force_terminal=terminal, width=140)


def heard(learner, console, listener=ignore):
    with showing.shown(learner, 2, listener, console) as hear:
        hear(TaskBegan(1, "2026-12", 200, 20))
        hear(DualsMoved(1, 3, [0.5], [0.031], [0.02], 0.0))
        hear(Stepped(1, 1, 4, 0.25))
    return console.file.getvalue()


def test_a_terminal_shows_the_task_the_loss_and_the_limit_that_is_over(learner):
    shown = heard(learner, screen(terminal=True))
    for text in ("2026-12", "loss 0.25", "0 of 1 limits met on stored samples", "2026-11 over by 3.1"):
        assert text in shown


def test_elsewhere_nothing_is_written_and_the_listener_hears_all_the_same(learner):
    events = []
    assert heard(learner, screen(terminal=False), events.append) == ""
    assert [event.kind for event in events] == ["task_began", "duals_moved", "stepped"]


def test_learn_draws_the_bar_unless_somebody_listens(monkeypatch):
    console = screen(terminal=True)
    monkeypatch.setattr(showing, "Screen", lambda **_: console)
    learner = pdcl.PDCL("mlp:8", memory=40)
    learner.learn(*month(0), name="2026-11", epochs=1, listener=lambda event: None)
    assert console.file.getvalue() == ""
    learner.learn(*month(2), name="2026-12", epochs=1)
    assert "2026-12" in console.file.getvalue()
