"""Memory gives back whatever tree it was given, holds its bound through any operations, and allocates as it fills."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pdcl.errors import UsageError
from pdcl.past.store import Memory
from pdcl.ragged import Ragged
from pdcl.storage.serialize import as_parts, from_parts
from pdcl.trees import flatten

FORMS = ("plain", "dict", "tuple", "ragged", "nested")


def sequences(ids):
    """Sample i is the number i, i mod 6 times."""
    lengths = torch.as_tensor(ids) % 6
    return Ragged(torch.repeat_interleave(torch.as_tensor(ids), lengths), lengths)


def inputs(ids, form):
    ids = torch.as_tensor(ids, dtype=torch.long)
    wide = ids[:, None].expand(-1, 3)
    return {
        "plain": lambda: wide.float(),
        "dict": lambda: {"image": wide.to(torch.uint8), "age": ids.float()},
        "tuple": lambda: (wide, ids.double()),
        "ragged": lambda: sequences(ids),
        "nested": lambda: {"text": (sequences(ids), wide), "label": {"mask": sequences(ids + 1)}},
    }[form]()


def rows(ids, form):
    ids = torch.as_tensor(ids, dtype=torch.long)
    return {"x": inputs(ids, form), "y": ids, "task": ids % 3, "id": ids}


def same(one, other):
    a, b = flatten(one), flatten(other)
    assert a.keys() == b.keys()
    for name, leaf in a.items():
        assert type(leaf) is type(b[name])
        for part, twin in (
            [(leaf.values, b[name].values), (leaf.lengths, b[name].lengths)]
            if isinstance(leaf, Ragged)
            else [(leaf, b[name])]
        ):
            assert part.dtype == twin.dtype
            assert torch.equal(part, twin)


def check(memory, form, ids):
    assert memory["id"].tolist() == ids
    if ids:
        same(memory["x"], inputs(ids, form))
        backwards = torch.arange(len(ids)).flip(0)
        same(memory.read("x", backwards), inputs(ids[::-1], form))


@st.composite
def operations(draw, capacity):
    """What to do, and the ids held after each step, worked out on a list."""
    held, fresh, steps = [], 0, []
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["append", "write", "keep", "replace", "save"]))
        if kind == "append":
            new = list(range(fresh, fresh + draw(st.integers(0, capacity - len(held)))))
            held, steps = held + new, [*steps, (kind, None, new)]
        elif kind == "write":
            slots = draw(st.lists(st.integers(0, max(0, len(held) - 1)), unique=True, max_size=len(held)))
            new = list(range(fresh, fresh + len(slots)))
            held = [new[slots.index(slot)] if slot in slots else old for slot, old in enumerate(held)]
            steps = [*steps, (kind, slots, new)]
        elif kind == "save":
            new, steps = [], [*steps, (kind, None, [])]
        else:
            slots = draw(st.lists(st.integers(0, max(0, len(held) - 1)), unique=True, max_size=len(held)))
            room = capacity - len(slots) if kind == "replace" else 0
            new = list(range(fresh, fresh + draw(st.integers(0, room))))
            held, steps = [held[slot] for slot in slots] + new, [*steps, (kind, slots, new)]
        fresh += len(new)
        steps[-1] = (*steps[-1], list(held))
    return steps


@given(st.data(), st.sampled_from(FORMS), st.integers(1, 40))
def test_any_operations_leave_behind_what_a_list_would(data, form, capacity):
    memory = Memory(capacity)
    for kind, slots, new, held in data.draw(operations(capacity)):
        at = None if slots is None else torch.tensor(slots, dtype=torch.long)
        if kind == "append":
            memory.append(**rows(new, form))
        elif kind == "write":
            memory.write(at, **rows(new, form))
        elif kind == "keep":
            memory.keep(at)
        elif kind == "replace":
            memory.replace(at, **rows(new, form))
        elif memory.columns:
            other = Memory(capacity)
            other.load_state_dict(from_parts(as_parts({"memory": memory.state_dict()}, {}))["memory"])
            memory = other
        if memory.columns:
            check(memory, form, held)
        assert len(memory) <= memory.capacity


@given(st.lists(st.integers(1, 9), min_size=1, max_size=25), st.integers(200, 3000), st.sampled_from(FORMS))
def test_bytes_bound_what_is_allocated_after_every_step(sizes, most, form):
    memory, generator, start = Memory(f"{most}B"), torch.Generator().manual_seed(0), 0
    for size in sizes:
        memory.add_reservoir(generator, **rows(range(start, start + size), form))
        start += size
        held = memory["id"].tolist()
        assert memory.stored <= memory.nbytes <= most
        assert len(held) == len(set(held)) <= memory.capacity
        check(memory, form, held)
    again = Memory(f"{most}B")
    again.load_state_dict(memory.state_dict())
    assert again.stored <= again.nbytes <= most
    check(again, form, held)


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=12), st.integers(900, 3000))
def test_rings_of_sequences_hold_the_newest_within_their_bytes(batches, most):
    memory, seen, start = Memory(f"{most}B"), [], 0
    for batch in batches:
        data = rows(range(start, start + len(batch)), "ragged")
        memory.allocate(**data)
        if start == 0:
            memory.start_ring(3)
        memory.add_ring(torch.tensor(batch), **data)
        seen += list(zip(range(start, start + len(batch)), batch, strict=True))
        start += len(batch)
        assert memory.nbytes <= most
    held = memory["id"].tolist()
    check(memory, "ragged", held)
    for group in range(3):
        own = [i for i, g in seen if g == group]
        kept = sorted(set(own) & set(held))
        assert kept == own[len(own) - len(kept) :]
        assert bool(kept) == bool(own)


@pytest.mark.parametrize("form", FORMS)
def test_a_bound_of_a_billion_costs_what_sixty_samples_cost(form):
    memory = Memory(10**9)
    memory.add_reservoir(torch.Generator(), **rows(range(60), form))
    assert len(memory) == 60
    assert memory.nbytes < 20_000
    rings = Memory(10**9)
    rings.allocate(**rows([0], form))
    rings.start_ring(3)
    rings.add_ring(torch.arange(60) % 3, **rows(range(60), form))
    assert len(rings) == 60
    assert rings.nbytes + rings.state_dict()["ring"]["table"].nbytes < 20_000


def test_overwritten_sequences_give_their_room_back():
    memory = Memory(10)
    memory.append(x=Ragged.of([torch.zeros(50)] * 10))
    for value in range(200):
        memory.write(torch.tensor([value % 10]), x=Ragged.of([torch.full((50,), float(value))]))
    assert memory.nbytes < 3 * memory.stored
    assert memory["x"].padded()[:, 0].tolist() == list(range(190, 200))


def test_dropping_for_bytes_leaves_a_reservoir_uniform():
    """400 streams of 60 sequences, first short ones, into 1,000 bytes: each position is held about as often.

    Σ (O − E)² / Var over 60 positions is about χ²(59); by chance it exceeds 115 once in 10⁵ seeds.
    """
    repeats, counts, total = 400, torch.zeros(60), 0
    for seed in range(repeats):
        memory, generator = Memory("1KB"), torch.Generator().manual_seed(seed)
        ids = torch.arange(60)
        for part in ids.split(7):
            short = 1 if int(part[0]) == 0 else 6
            x = Ragged(torch.repeat_interleave(part, short), torch.full((len(part),), short))
            memory.add_reservoir(generator, x=x, id=part)
        assert len(memory) < memory.state_dict()["samples"] + 1
        total += len(memory)
        counts[memory["id"]] += 1
    share = total / repeats / 60
    q = float(((counts - repeats * share) ** 2).sum() / (repeats * share * (1 - share)))
    assert q < 115


def test_bytes_hold_as_many_sequences_as_their_mean_length_says():
    """Eight bytes an entry, and start and length of each row: of 7 entries in two rows, 28 + 16 bytes a row."""
    memory = Memory("440B")
    memory.allocate(x=Ragged(torch.arange(7), torch.tensor([3, 4])))
    assert memory.capacity == 10


def test_widened_outputs_still_fit_into_the_bytes():
    memory = Memory("1KB")
    memory.add_reservoir(torch.Generator(), outputs=torch.rand(60, 2), id=torch.arange(60))
    before = memory["outputs"].clone(), memory["id"].tolist()
    memory.widen("outputs", torch.ones(len(memory), 4), torch.Generator())
    assert memory.nbytes <= 1000
    places = [before[1].index(i) for i in memory["id"].tolist()]
    assert torch.equal(memory["outputs"][:, :2], before[0][places])
    again = Memory("1KB")
    again.load_state_dict(memory.state_dict())
    assert again.capacity == memory.capacity == 1000 // 32


def test_fewer_wide_rows_fit_into_the_bytes_even_while_few_are_held():
    memory = Memory("1KB")
    memory.append(id=torch.arange(3, dtype=torch.int32), outputs=torch.rand(3, 4))
    assert memory.capacity == 1000 // 20
    memory.widen("outputs", torch.ones(3, 13))
    assert memory.capacity == 1000 // 72
    memory.join_column("more", torch.ones(3, 10))
    assert (memory.capacity, len(memory)) == (1000 // 112, 3)


def test_a_state_of_plain_tensors_is_as_it_was_before_there_were_trees():
    """States that are on users' disks: the same keys, and rings whose table has its full width."""
    x = torch.arange(20).reshape(5, 4).to(torch.uint8)
    columns = {"x": x, "y": torch.tensor([0, 1, 0, 1, 1]), "task": torch.zeros(5).long(), "id": torch.arange(5)}
    table = torch.tensor([0, 2, -1, 1, 3, 4])
    old = {
        "columns": columns,
        "ring": {"table": table, "counters": torch.tensor([2, 3])},
        "reservoir": {"seen": 0, "decided": 0, "numbers": [], "slots": []},
        "samples": 6,
        "bound": "6",
    }
    memory = Memory(6)
    memory.load_state_dict(old)
    assert {name: value.tolist() for name, value in memory.state_dict()["columns"].items()} == {
        name: value.tolist() for name, value in columns.items()
    }
    assert memory.state_dict().keys() == old.keys()
    memory.add_ring(
        torch.tensor([1, 0, 0]), x=x[:3], y=torch.tensor([1, 0, 0]), task=torch.zeros(3).long(), id=torch.arange(5, 8)
    )
    assert memory["id"].tolist() == [7, 5, 2, 3, 4, 6]


def test_a_state_from_before_reservoirs_decided_ahead_loads():
    memory = Memory(2)
    memory.load_state_dict({"columns": {"x": torch.ones(2, 1)}, "samples": 2, "bound": "2", "seen": 9})
    assert (len(memory), memory.seen) == (2, 9)


HOSTILE = {
    "values without lengths": {"x:values": torch.zeros(3)},
    "lengths without values": {"x:lengths": torch.tensor([1])},
    "lengths that add up to more": {"x:values": torch.zeros(3), "x:lengths": torch.tensor([2, 2])},
    "negative lengths": {"x:values": torch.zeros(1), "x:lengths": torch.tensor([-1, 2])},
    "lengths that aren't whole": {"x:values": torch.zeros(1), "x:lengths": torch.tensor([1.0])},
    "columns of different length": {"x": torch.zeros(2, 1), "y": torch.zeros(1)},
    "more than the bound": {"x": torch.zeros(9, 1)},
}


@pytest.mark.parametrize("columns", HOSTILE.values(), ids=HOSTILE)
def test_hostile_columns_are_refused_and_change_nothing(columns):
    memory = Memory(6)
    memory.append(x=torch.ones(2, 1))
    with pytest.raises(UsageError, match="the saved memory"):
        memory.load_state_dict({**memory.state_dict(), "columns": columns})
    assert memory["x"].tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(
    "ring",
    [
        {"table": torch.tensor([0, 7]), "counters": torch.tensor([1, 1])},
        {"table": torch.tensor([0, 2]), "counters": torch.tensor([1, 1])},
        {"table": torch.tensor([0, 1, 0]), "counters": torch.tensor([1, 1])},
        {"table": torch.tensor([0, 1]), "counters": torch.tensor([1, 1]), "quota": 0},
        {"table": torch.tensor([0, 1]), "counters": torch.tensor([5, 1]), "quota": 3},
        {"table": torch.tensor([0, 1]), "counters": torch.tensor([-5, 1])},
    ],
)
def test_hostile_rings_are_refused(ring):
    memory = Memory(6)
    memory.append(x=torch.ones(2, 1))
    with pytest.raises(UsageError, match="saved rings"):
        memory.load_state_dict({**memory.state_dict(), "ring": ring})


def test_another_tree_is_refused_by_name():
    memory = Memory(6)
    memory.append(**rows([1], "nested"))
    with pytest.raises(UsageError, match=r"x\.text\.0"):
        memory.append(**rows([1], "plain"))
    wrong = rows([1], "nested")
    wrong["x"]["text"] = (torch.zeros(1, 3), wrong["x"]["text"][1])
    with pytest.raises(UsageError, match=r"'x\.text\.0' holds sequences"):
        memory.append(**wrong)
    assert len(memory) == 1


def test_of_two_sequences_one_stays_where_both_are_too_large_together():
    """Each has 50 entries of one byte and 16 bytes that say where these are; a sixteenth of the bytes stays free."""
    memory = Memory("100B")
    memory.allocate(x=Ragged(torch.zeros(9, dtype=torch.uint8), torch.tensor([9])))
    memory.append(x=Ragged(torch.arange(100, dtype=torch.uint8), torch.tensor([50, 50])))
    assert (len(memory), memory["x"].values.tolist()) == (1, [*range(50)])


def test_what_the_bytes_have_no_room_for_is_dropped_evenly():
    """26 bytes each: of 188 there are seven."""
    memory = Memory("200B")
    memory.allocate(x=Ragged(torch.zeros(1, dtype=torch.uint8), torch.tensor([1])))
    memory.append(x=Ragged(torch.arange(10, dtype=torch.uint8).repeat_interleave(10), torch.full((10,), 10)))
    assert [row[0].item() for row in memory["x"]] == [0, 1, 3, 4, 6, 7, 9]
    assert memory.capacity == 7


def test_a_sequence_larger_than_the_bytes_is_refused_with_its_size():
    memory = Memory("100B")
    memory.append(x=Ragged.of([[1, 2]]))
    memory.keep(torch.zeros(0, dtype=torch.long))
    with pytest.raises(UsageError, match="can't hold one sample"):
        memory.append(x=Ragged.of([[1] * 50]))
