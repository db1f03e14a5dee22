"""What columns allocate for the rows that they hold."""

from __future__ import annotations

import pytest
import torch

from pdcl.errors import UsageError
from pdcl.past.columns import Rows, Sequences, release
from pdcl.past.file_rows import FileRows
from pdcl.ragged import Ragged

CPU = torch.device("cpu")


def column(*lengths: int, dtype: torch.dtype = torch.uint8) -> Sequences:
    """A column that holds sequences of these lengths; 16 bytes of each row say where its values are."""
    rows = Ragged(torch.arange(sum(lengths)).to(dtype), torch.tensor(lengths, dtype=torch.int64))
    made = Sequences(rows, CPU)
    made.reserve(len(lengths), len(lengths))
    made.write(torch.arange(len(lengths)), rows)
    return made


def slots(each: Rows | Sequences | FileRows) -> int:
    return len(
        each.lengths if isinstance(each, Sequences) else each.places if isinstance(each, FileRows) else each.data
    )


@pytest.mark.parametrize("made", [Rows(torch.zeros(0, 2), CPU), column(), FileRows(torch.zeros(0, 2), 0)], ids=type)
def test_rows_are_allocated_by_doubling_up_to_the_bound(made: Rows | Sequences | FileRows) -> None:
    have = []
    for rows in (1, 16, 17, 33, 40):
        made.reserve(rows, 40)
        have.append(slots(made))
    assert have == [16, 16, 32, 40, 40]
    made.reserve(200, 1000)
    assert slots(made) == 200


def test_values_are_moved_to_twice_their_room_only_when_they_no_longer_fit() -> None:
    made = column(3, 5)
    assert len(made.values) == 16
    before = made.values
    made.write(torch.tensor([0]), Ragged(torch.ones(8, dtype=torch.uint8), torch.tensor([8])))
    assert made.values is before
    made.write(torch.tensor([0]), Ragged(torch.full((4,), 2, dtype=torch.uint8), torch.tensor([4])))
    assert (len(made.values), made.end) == (18, 9), "the five of row 1 and four new ones"
    assert [each.tolist() for each in made.used(2)] == [[2] * 4, [3, 4, 5, 6, 7]]


@pytest.mark.parametrize(("dtype", "size"), [(torch.uint8, 1), (torch.float64, 8)])
def test_what_a_column_of_sequences_takes(dtype: torch.dtype, size: int) -> None:
    made = column(3, 5, 0, dtype=dtype)
    assert made.stored(2) == 2 * 16 + 8 * size
    assert made.row_bytes(Ragged(torch.zeros(7, dtype=dtype), torch.tensor([3, 4]))) == 16 + -(-7 * size // 2)
    made.spare(5 * size)
    assert len(made.values) == 8 + 5
    made.shrink(2)
    assert made.nbytes == made.stored(2)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float64])
def test_rows_in_a_file_take_what_they_would_take_in_ram(dtype: torch.dtype) -> None:
    """Below the bound on the file's rows a column gives back slots as one in RAM does."""
    values = torch.arange(60).view(20, 3).to(dtype)
    disk, ram = FileRows(values, 32), Rows(values, CPU)
    assert (len(disk.data), len(FileRows(values[:2], 32).data)) == (20, 16)
    ram.reserve(32, 32)
    for step in ("as made", "shrunk"):
        assert (disk.row_bytes(), disk.stored(20), disk.nbytes) == (ram.row_bytes(), ram.stored(20), ram.nbytes), step
        for each in (disk, ram):
            each.shrink(20)
    assert torch.equal(disk.used(20), values)
    assert torch.equal(disk.state("x", 7)["x"], values[:7])


@pytest.mark.parametrize(
    ("rows", "got"),
    [
        (torch.zeros(2, 3), r"got \(3,\) torch.float32"),
        (Ragged(torch.zeros(3, 2, dtype=torch.uint8), torch.tensor([1, 2])), r"got sequences of \(2,\) torch.uint8"),
        (Ragged(torch.zeros(3), torch.tensor([1, 2])), r"got sequences of \(\) torch.float32"),
    ],
)
def test_a_column_of_sequences_takes_sequences_of_its_entries_alone(rows: torch.Tensor | Ragged, got: str) -> None:
    made = column(2, 1)
    made.check("x", Ragged(torch.ones(1, dtype=torch.uint8), torch.tensor([1])))
    with pytest.raises(UsageError, match=rf"'x' holds sequences of \(\) torch.uint8, {got}"):
        made.check("x", rows)


def test_columns_give_back_rows_only_where_values_alone_are_not_enough_and_share_what_is_left() -> None:
    words, marks, numbers = column(8), column(4), Rows(torch.zeros(0, 1), CPU)
    for each in (words, marks, numbers):
        each.reserve(4, 4)
    for most, rows in ((200, 4), (156, 4), (60, 1)):
        release([words, marks, numbers], 1, most)
        assert {slots(each) for each in (words, marks, numbers)} == {rows}
        left = most - (2 * 16 + 4) * rows - 12
        assert (len(words.values) - 8, len(marks.values) - 4) == (left // 2, left // 2)
