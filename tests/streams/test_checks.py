"""Bad input is refused before any work, and the message names the place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from pdcl.errors import PdclError
from pdcl.streams.checks import BadData, check_stream, check_task
from pdcl.streams.class_split import split
from pdcl.streams.data import TensorData
from pdcl.streams.task import Task
from pdcl.streams.task_list import from_tasks


def good(count: int = 8, dim: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(count, dim), torch.arange(count) % 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_inputs_that_are_no_numbers_name_task_and_row(value: float) -> None:
    x, y = good(400)
    x[321, 1] = value
    with pytest.raises(BadData, match=r"task 0 \('0, 1'\), (training|test) data: row 321 holds NaN"):
        split(x, y)
    later = (x, y, *good())
    with pytest.raises(BadData, match=r"task 1 \('1'\), training data: row 321"):
        from_tasks([(*good(), *good()), later])


def test_rows_deep_in_large_data_are_found() -> None:
    x, y = good(3000, 2000)
    x[2999, 7] = float("nan")
    with pytest.raises(BadData, match="row 2999"):
        split(x, y, test=good(8, 2000))


def test_regression_targets_must_be_finite() -> None:
    x, _ = good()
    y = torch.ones(8)
    y[5] = float("nan")
    with pytest.raises(BadData, match="target of row 5"):
        from_tasks([(x, y, x, torch.ones(8))], kind="regression")


def test_an_empty_task_is_refused() -> None:
    empty = torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)
    with pytest.raises(BadData, match="task 0"):
        from_tasks([(*empty, *good())])
    with pytest.raises(BadData, match=r"task 1 \('1'\), test data are empty"):
        from_tasks([(*good(), *good()), (*good(), *empty)])
    with pytest.raises(BadData):
        split(*empty)


def test_shapes_must_agree_between_tasks() -> None:
    with pytest.raises(BadData, match=r"task 1 .* shape \(4,\); the stream's first task has \(3,\)"):
        from_tasks([(*good(), *good()), (*good(dim=4), *good(dim=4))])


def test_the_type_must_not_change_between_tasks() -> None:
    x, y = good()
    with pytest.raises(BadData, match=r"task 1 .* torch.uint8; the stream's first task is torch.float32"):
        from_tasks([(x, y, x, y), (x.byte(), y, x.byte(), y)])


def test_lengths_must_agree() -> None:
    x, y = good()
    with pytest.raises(BadData, match="8 rows and y has 7"):
        split(x, y[:7])
    with pytest.raises(BadData, match="y is missing"):
        split(x)


def test_test_labels_outside_the_declared_classes_are_refused() -> None:
    x, y = good()
    with pytest.raises(BadData, match=r"test y holds the label 5, .* classes: 0, 1"):
        split(x, y, test=(x, y * 5))


def test_test_classes_must_belong_to_their_task() -> None:
    x, y = good()
    with pytest.raises(BadData, match=r"task 0 .* hold 2, which the task doesn't teach"):
        from_tasks([(x, y, x, y * 2), (x, y * 2, x, y * 2)])


def test_a_hand_made_stream_is_held_to_its_declared_head() -> None:
    stream = split(*good())
    data = TensorData(torch.ones(4, 3), torch.tensor([0, 1, 2, 1]))
    with pytest.raises(BadData, match="row 2 has class 2; the head has 2 outputs"):
        check_task(Task(0, "made", data, data, (0, 1, 2)), stream.spec)
    with pytest.raises(BadData, match="no tasks"):
        check_stream(replace(stream, tasks=[]))


def test_of_a_dataset_a_few_samples_are_looked_at() -> None:
    class Counting(TensorDataset):
        read = 0

        def __getitem__(self, row: int) -> tuple[torch.Tensor, ...]:
            Counting.read += 1
            return super().__getitem__(row)

    x, y = good(5000)
    data = Counting(x, y)
    data.targets = y.tolist()  # type: ignore[attr-defined]
    split(data)
    assert Counting.read < 200


def test_errors_are_the_users_to_act_on() -> None:
    with pytest.raises(PdclError):
        split(np.zeros((2, 2)), [0])


def test_large_numbers_whose_sum_is_infinite_are_finite() -> None:
    x = torch.full((4, 3), 3e38)
    from_tasks([(x, [0, 1, 0, 1], x, [0, 1, 0, 1])])
    x[2, 1] = -torch.inf
    with pytest.raises(BadData, match="row 2 holds NaN or infinite"):
        from_tasks([(x, [0, 1, 0, 1], x, [0, 1, 0, 1])])
