"""Whatever people hand over as x and y is either read rightly or refused in one line that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch.utils.data import DataLoader, TensorDataset

from pdcl.streams.checks import BadData
from pdcl.streams.class_split import split
from pdcl.streams.data import everything
from pdcl.streams.task_list import from_tasks

COUNT = 12
LABELS = [k % 2 for k in range(COUNT)]
PLAIN = np.arange(COUNT * 3, dtype=np.float32).reshape(COUNT, 3) / 10


def table(**changes: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"age": range(COUNT), "weight": np.linspace(0, 1, COUNT), **changes})


def masked() -> Any:
    return np.ma.masked_array(PLAIN, mask=PLAIN > 3)


def read_only() -> Any:
    array = PLAIN.copy()
    array.flags.writeable = False
    return array


def grows() -> Any:
    return torch.tensor(PLAIN, requires_grad=True)


READ = {
    "float64": lambda: PLAIN.astype("float64"),
    "big-endian": lambda: PLAIN.astype(">f4"),
    "negative strides": lambda: PLAIN[::-1, ::-1].copy()[::-1, ::-1],
    "columns of a larger array": lambda: np.repeat(PLAIN, 2, axis=1)[:, ::2],
    "read-only": read_only,
    "long double": lambda: PLAIN.astype(np.longdouble),
    "lists": lambda: PLAIN.tolist(),
    "a list of arrays": lambda: list(PLAIN),
    "a list of tensors": lambda: list(torch.tensor(PLAIN)),
    "a tensor with gradient": grows,
    "a transposed tensor": lambda: torch.tensor(PLAIN.T.copy()).T,
    "a masked array without a mask": lambda: np.ma.masked_array(PLAIN),
    "objects that are numbers, as the message advises": lambda: PLAIN.astype(object).astype("float32"),
}


@pytest.mark.parametrize("name", READ)
def test_these_are_read_as_the_numbers_that_they_hold(name: str) -> None:
    stream = split(READ[name](), LABELS, test=(PLAIN, LABELS))
    x, _ = stream.tasks[0].data.fetch(torch.arange(COUNT))
    assert x.dtype == torch.float32
    assert torch.equal(x, torch.tensor(PLAIN))


@pytest.mark.parametrize(
    ("given", "read_as"),
    [("float16", "float32"), ("bool", "float32"), ("uint16", "int32"), ("uint32", "int64"), (">i2", "int16")],
)
def test_types_that_networks_cannot_compute_in_are_widened(given: str, read_as: str) -> None:
    x = np.arange(2 * COUNT).reshape(COUNT, 2).astype(given)
    data = split(x, LABELS, test=(x, LABELS)).tasks[0].data
    found, _ = data.fetch(everything(data))
    assert found.dtype == getattr(torch, read_as)
    assert found.tolist() == x.astype(read_as).tolist()


REFUSED = {
    "one number per sample": (lambda: PLAIN[:, 0], r"shape \(12,\).*reshape\(-1, 1\)"),
    "a single number": (lambda: 3.0, "single float"),
    "nothing": (lambda: None, "objects such as 'None'"),
    "a generator": (lambda: (row for row in PLAIN), r"generator can be read only once; give pdcl.Iterated"),
    "an empty dict": (dict, "x holds an empty tuple or dict"),
    "a dict of unequal columns": (lambda: {"ids": PLAIN, "mask": PLAIN[:5]}, r"x\.mask has 5 rows and y has 12"),
    "a dict with a number": (lambda: {"ids": PLAIN, "mask": 1.0}, r"x\.mask is a single number"),
    "a dict with texts": (lambda: {"ids": PLAIN, "title": ["how?"] * COUNT}, "HashingVectorizer"),
    "a dict whose keys are no names": (lambda: {"my ids": PLAIN}, "the key 'my ids'"),
    "objects": (lambda: PLAIN.astype(object), r"astype\('float32'\)"),
    "texts": (lambda: ["how much?"] * COUNT, "HashingVectorizer"),
    "objects that are texts": (lambda: np.asarray([["a"]] * COUNT, dtype=object), "HashingVectorizer"),
    "dates": (lambda: np.zeros((COUNT, 1), "datetime64[D]"), "dates"),
    "records": (lambda: np.zeros(COUNT, [("age", "f4")]), "records"),
    "sequences and numbers": (lambda: [[1.0, 2.0]] * 11 + [1.0], r"row 0 has 2, row 11 has 0"),
    "sequences of texts": (lambda: [["a", "b"]] * 11 + [["a"]], "HashingVectorizer"),
    "images of two sizes": (lambda: [torch.ones(2, 3)] * 11 + [torch.ones(3, 2)], r"one shape and dtype, not \(2,\)"),
    "rows of two shapes": (lambda: [torch.ones(2, 3)] * 11 + [torch.ones(2, 4)], r"shapes \(2, 3\) and \(2, 4\)"),
    "a sparse matrix": (lambda: scipy.sparse.csr_matrix(PLAIN), r"\.toarray\(\)"),
    "a sparse tensor": (lambda: torch.tensor(PLAIN).to_sparse(), r"to_dense\(\)"),
    "complex numbers": (lambda: PLAIN.astype("complex64"), "complex"),
    "64 unsigned bits": (lambda: PLAIN.astype("uint64"), "int64"),
    "a mask": (masked, r"\.filled"),
    "a DataLoader": (lambda: DataLoader(TensorDataset(torch.tensor(PLAIN))), r"loader\.dataset"),
    "categories in a table": (lambda: table(plan=["gold"] * COUNT), "columns plan of x.*ColumnTransformer"),
    "gaps in a table": (lambda: table(height=[np.nan] * COUNT), "columns height of x have missing.*ColumnTransformer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_these_are_refused_in_one_line_that_says_what_to_do(name: str) -> None:
    make, message = REFUSED[name]
    for call in (
        lambda x: split(x, LABELS),
        lambda x: split(PLAIN, LABELS, test=(x, LABELS)),
        lambda x: from_tasks([(x, LABELS)]),
    ):
        with pytest.raises(BadData, match=message) as caught:
            call(make())
        assert "\n" not in str(caught.value)


def test_loaders_in_place_of_pairs_are_refused() -> None:
    loader = DataLoader(TensorDataset(torch.tensor(PLAIN), torch.tensor(LABELS)))
    for call in (lambda: split(loader), lambda: from_tasks([(loader,)]), lambda: split(PLAIN, LABELS, test=loader)):
        with pytest.raises(BadData, match=r"loader\.dataset"):
            call()


def test_a_table_of_numbers_is_read_column_by_column() -> None:
    pandas = pytest.importorskip("pandas")
    x = table(member=[True, False] * 6, visits=pandas.array(range(COUNT), dtype="Int64"))
    found, _ = split(x, pandas.Series(LABELS), test=(x, LABELS)).tasks[0].data.fetch(torch.arange(COUNT))
    expected = np.stack([np.arange(COUNT), np.linspace(0, 1, COUNT), np.arange(COUNT) % 2 == 0, np.arange(COUNT)], 1)
    assert found.numpy() == pytest.approx(expected)


@pytest.mark.parametrize(
    "missing", [[None, "a"] * 6, [float("nan"), 1.0] * 6, np.asarray([float("nan"), "a"] * 6, object)]
)
def test_a_missing_label_is_no_class(missing: Any) -> None:
    with pytest.raises(BadData, match=r"y holds (None|nan) in row 0, which is no label"):
        split(PLAIN, missing)
    with pytest.raises(BadData, match=r"y of task 0 holds (None|nan) in row 0"):
        from_tasks([(PLAIN, missing)])
