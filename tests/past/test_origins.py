"""Where rows were at the last checkpoint, beside a memory whose rows carry their name."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pdcl.past.origins import Origins


@given(st.integers(0, 6), st.lists(st.tuples(st.booleans(), st.integers(0, 2**20)), max_size=6))
def test_origins_are_those_of_rows_that_carry_their_old_slot(size, changes):
    origins, rows = Origins(size), list(range(size))
    for write, seed in changes:
        order = torch.randperm(len(rows) + 3, generator=torch.Generator().manual_seed(seed))
        if write:
            # Some of the old slots, and all new ones up to a larger size.
            slots = [*order[order < len(rows)][:2].tolist(), *range(len(rows), len(rows) + seed % 4)]
            rows += [-1] * (seed % 4)
            origins.written(torch.tensor(slots, dtype=torch.long), len(rows))
            for slot in slots:
                rows[slot] = -1
        else:
            kept = order[order < len(rows)][: seed % 5]
            origins.kept(kept)
            rows = [rows[slot] for slot in kept.tolist()]
        assert origins.rows.tolist() == rows
        assert origins.unchanged == (rows == list(range(size)))
