"""Tasks handed over one by one: domains, regression, several labels a sample."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pdcl.streams.checks import BadData
from pdcl.streams.data import Data, everything
from pdcl.streams.task_list import from_tasks


def part(labels: list[object], shift: float = 0.0) -> tuple[torch.Tensor, list[object]]:
    return torch.arange(len(labels), dtype=torch.float32)[:, None] + shift, labels


def groups_of(data: Data) -> list[int]:
    assert data.groups is not None
    groups: list[int] = data.groups.tolist()
    return groups


def test_domains_share_their_classes() -> None:
    stream = from_tasks([part(["a", "b"] * 5), part(["b", "a"] * 5, 100.0)], names=["indoors", "outdoors"])
    assert stream.spec.heads == ((0, 1), (0, 1))
    assert stream.spec.outputs == 2
    assert [task.name for task in stream.tasks] == ["indoors", "outdoors"]


def test_labels_count_in_their_order_of_appearance() -> None:
    stream = from_tasks([part(["z", "m"] * 5), part(["a", "z"] * 5)])
    assert stream.spec.labels == ("m", "z", "a")
    assert stream.spec.heads == ((0, 1), (1, 2))


def test_regression_targets_are_columns_of_floats() -> None:
    x, _ = part([0] * 10)
    stream = from_tasks([(x, np.linspace(0, 1, 10), x, np.zeros(10))] * 2, kind="regression")
    assert stream.spec.outputs == 1
    assert stream.tasks[0].data.targets.shape == (10, 1)
    assert stream.tasks[0].classes == ()
    assert stream.spec.tasks == 2
    assert stream.for_tuning(0.3).tasks[0].test.targets.shape == (3, 1)


def test_several_labels_a_sample() -> None:
    x, _ = part([0] * 10)
    y = np.eye(10)[:, :3]
    stream = from_tasks([(x, y)], kind="multilabel")
    assert stream.spec.outputs == 3
    assert len(stream.tasks[0].data) + len(stream.tasks[0].test) == 10
    with pytest.raises(BadData, match="0/1 matrix"):
        from_tasks([(x, 2 * y)], kind="multilabel")


def test_a_group_in_several_tasks_is_on_one_side() -> None:
    groups = [list("aabbccddee") * 2, list("eeddccbbaa") * 2]
    stream = from_tasks([part([0, 1] * 10), part([0, 1] * 10)], groups=groups, test_share=0.4)
    train = {group for task in stream.tasks for group in groups_of(task.data)}
    test = {group for task in stream.tasks for group in groups_of(task.test)}
    assert train
    assert test
    assert not train & test


def test_given_and_carved_test_data_may_be_mixed() -> None:
    x, y = part([0, 1] * 10)
    stream = from_tasks([(x, y, x[:2], y[:2]), (x, y)])
    assert [len(task.test) for task in stream.tasks] == [2, 4]
    assert stream.tasks[1].test.fetch(everything(stream.tasks[1].test))[1].tolist().count(0) == 2


@pytest.mark.parametrize(
    ("tasks", "options", "message"),
    [
        ([], {}, "no tasks"),
        ([part([0, 1] * 5)], {"names": ["a", "b"]}, "2 names for 1 tasks"),
        ([part([0, 1] * 5)], {"groups": []}, "0 entries for 1 tasks"),
        ([part([0, 1] * 5)], {"kind": "ranking"}, "must be one of classification, regression, multilabel"),
        ([(torch.zeros(4, 2), [0, 1, 0, 1], torch.zeros(4, 2))], {}, "3 parts"),
        ([part([0.5, 1.0] * 5)], {}, 'kind="regression"'),
    ],
)
def test_what_makes_no_sense_is_refused(
    tasks: list[tuple[object, ...]], options: dict[str, object], message: str
) -> None:
    with pytest.raises(BadData, match=message):
        from_tasks(tasks, **options)  # type: ignore[arg-type]
