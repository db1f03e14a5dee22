"""What is known of every task: its size and smallest group, who trained on it, and who had a class first."""

import pytest
import torch

import pdcl
from pdcl.past.registry import Registry


def test_a_learner_registers_what_it_learns_and_what_it_adopts() -> None:
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    learner = pdcl.PDCL(torch.nn.Sequential(torch.nn.Linear(4, 2)), memory=30)
    learner.adopt(x, torch.arange(40) % 2, name="old", labels=[0, 1])
    learner.learn(x[:30], torch.arange(30) % 2 + 1, name="new", groups=[0] * 10 + [1] * 20, epochs=1)
    found = learner.core.registry
    assert found.task_samples == [40, 30]
    assert found.smallest_groups == [1, 10]
    assert found.trained_here == [False, True]
    assert found.learned == [0, 30]
    assert found.perhaps_seen() == {0}
    assert found.first_seen == {"0": 0, "1": 0, "2": 1}


def test_the_first_task_of_a_class_stays_and_a_class_of_none_is_beyond_all() -> None:
    registry = Registry()
    for task, labels in enumerate([[3, 3, 5], [5, 7], [3, 7]]):
        registry.register_task(task, torch.tensor(labels), None, True)
    assert registry.first_tasks(torch.tensor([7, 3, 5, 9, 3])).tolist() == [1, 0, 0, 3, 0]
    registry.register_task(3, torch.tensor([0.3, 0.1]), None, True)
    assert {*registry.first_seen} == {"3", "5", "7"}, "numbers that are measured are no classes"


def test_an_adopted_task_that_somebody_vouches_for_was_not_seen() -> None:
    registry = Registry()
    for task, trained in enumerate([False, True, False]):
        registry.register_task(task, torch.tensor([0]), None, trained)
    assert registry.perhaps_seen() == {0, 2}
    registry.unseen.append(2)
    assert registry.perhaps_seen() == {0}


def test_a_task_registered_behind_unknown_ones_leaves_them_unknown() -> None:
    registry = Registry()
    registry.register_task(2, torch.arange(6), torch.tensor([8, 8, 8, 4, 4, 4]), True)
    assert (registry.task_samples, registry.smallest_groups) == ([0, 0, 6], [1, 1, 3])
    assert registry.trained_here == [False, False, True]


@pytest.mark.parametrize("without", [(), ("smallest_groups", "unseen"), ("task_samples", "by_heart", "first_seen")])
def test_a_state_or_what_an_older_one_has_of_it_is_taken_over(without: tuple[str, ...]) -> None:
    registry = Registry()
    for task in range(2):
        registry.register_task(task, torch.tensor([task] * 4), torch.tensor([1, 1, 2, 2]), task > 0)
    registry.unseen.append(0)
    state = {name: value for name, value in registry.state_dict().items() if name not in without}
    other = Registry()
    other.load_state_dict(state, 2)
    expected = {"smallest_groups": [1, 1], "unseen": [], "task_samples": [0, 0], "by_heart": [], "first_seen": {}}
    assert other.state_dict() == {**registry.state_dict(), **{name: expected[name] for name in without}}
    registry.register_task(2, torch.tensor([9]), None, True)
    assert "9" not in other.first_seen
