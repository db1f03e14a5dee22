"""`torch.utils.data.Dataset`s are read when asked, and never as a whole."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset

from pdcl.streams.checks import BadData
from pdcl.streams.class_split import split
from pdcl.streams.data import DatasetData, TensorData, everything
from pdcl.streams.task_list import from_tasks


class Squares(Dataset[Any]):
    """Row i is an array of i², as doubles; label i mod 4. Counts what is read."""

    def __init__(self, count: int = 40) -> None:
        self.count = count
        self.reads: list[int] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> tuple[Any, Any]:
        self.reads.append(row)
        return np.full(3, float(row) ** 2), f"class {row % 4}"


class Listed(Squares):
    @property
    def targets(self) -> list[str]:
        return [f"class {row % 4}" for row in range(self.count)]


def test_targets_are_found_in_one_pass_where_nothing_lists_them() -> None:
    data = Squares()
    stream = split(data)
    # One look before: whether a sample is a pair.
    assert data.reads[0] == 0
    first_pass = data.reads[1 : 1 + len(data)]
    assert first_pass == list(range(40))
    assert stream.spec.labels == tuple(f"class {k}" for k in range(4))
    assert stream.spec.dtype == torch.float32


@pytest.mark.parametrize("workers", [0, 3])
def test_a_batch_reads_its_own_rows_only(workers: int) -> None:
    data = Listed(4000)
    stream = split(data, test=Listed(8), workers=workers)
    assert len(data.reads) < 200
    task = stream.tasks[1].data
    data.reads.clear()
    index = torch.tensor([5, 0, 900])
    x, y = task.fetch(index)
    assert len(data.reads) == 3
    assert x[:, 0].sqrt().long().remainder(4).tolist() == y.tolist()
    assert torch.equal(y, task.targets[index])


def test_a_list_of_targets_that_disagrees_with_the_samples_is_not_believed() -> None:
    data = Listed()
    data.__class__ = type("Renamed", (Listed,), {"__getitem__": lambda self, row: (np.zeros(3), row % 2)})
    assert split(data).spec.labels == (0, 1)


def test_subsets_and_concatenations_list_their_targets() -> None:
    whole = Listed(4000)
    some = ConcatDataset([Subset(whole, range(2000)), Subset(whole, range(2000, 3000))])
    stream = split(some)
    assert len(whole.reads) < 300
    assert sum(len(task.data) + len(task.test) for task in stream.tasks) == 3000


def test_tensor_datasets_take_the_fast_path() -> None:
    stream = split(TensorDataset(torch.zeros(8, 2), torch.arange(8) % 2))
    assert isinstance(stream.tasks[0].data, TensorData)


def test_domains_may_be_datasets() -> None:
    stream = from_tasks([(Listed(), Listed(8)), (Listed(),)])
    assert [type(task.test) for task in stream.tasks] == [DatasetData, DatasetData]
    tuned = stream.for_tuning(0.25)
    assert [len(task.test) for task in tuned.tasks] == [8, 8]
    x, _ = tuned.tasks[0].test.fetch(everything(tuned.tasks[0].test))
    assert x.shape == (8, 3)


def test_lazy_data_travel_to_other_processes() -> None:
    data = split(Listed(), workers=2).tasks[0].data
    again = pickle.loads(pickle.dumps(data))
    assert torch.equal(again.fetch(torch.arange(4))[0], data.fetch(torch.arange(4))[0])


def test_data_without_positions_are_refused() -> None:
    class Endless(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(())

    with pytest.raises(BadData, match="can't be read by index"):
        split(Endless())
