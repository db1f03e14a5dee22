"""Derived streams: every option does what it says, no more, and the same again with the same seed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch import Tensor
from torch.utils.data import Dataset

import pdcl
from pdcl.errors import UsageError
from pdcl.streams.catalog import load
from pdcl.streams.checks import BadData, check_stream
from pdcl.streams.class_split import split
from pdcl.streams.data import Data, everything
from pdcl.streams.task import Stream
from pdcl.streams.task_list import from_tasks
from pdcl.streams.transform import Transform

SIDE = 4
EVERYTHING: dict[str, Any] = {
    "domains": 3,
    "permuted": True,
    "rotated": 90,
    "gain": 0.5,
    "per_class": 20,
    "unbalanced": 4,
    "noise": 0.2,
    "blurry": 0.3,
}


def numbered(count: int = 240, classes: int = 6) -> tuple[Tensor, Tensor]:
    """Images whose pixels are all different: sample i holds 16i … 16i + 15."""
    return torch.arange(count * SIDE * SIDE, dtype=torch.int32).view(count, 1, SIDE, SIDE), torch.arange(
        count
    ) % classes


def images() -> Stream:
    return split(*numbered(), name="numbered")


class Lazy(Dataset[Any]):
    def __init__(self) -> None:
        self.x, self.y = numbered()
        self.targets = self.y.tolist()

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        return self.x[row], int(self.y[row])


def fetched(data: Data) -> Tensor:
    return data.fetch(everything(data))[0]


def sides(stream: Stream) -> list[Data]:
    return [data for task in stream.tasks for data in (task.data, task.test)]


def ids(data: Data) -> list[int]:
    """Which samples these are, where inputs are unchanged."""
    found: list[int] = (fetched(data).flatten(1)[:, 0] // SIDE**2).tolist()
    return found


@pytest.mark.parametrize("base", [images, lambda: split(Lazy())], ids=["tensor", "Dataset"])
@pytest.mark.parametrize("options", [{}, {"domains": 3}], ids=["tasks", "domains"])
def test_a_permutation_moves_pixels_only_and_differs_by_task_but_not_by_side(base: Any, options: Any) -> None:
    plain = base() if not options else base().derive(domains=3, rotated=360)
    moved = base().derive(permuted=True, **options)
    orders = []
    for before, after in zip(plain.tasks, moved.tasks, strict=True):
        found = []
        for old, new in ((before.data, after.data), (before.test, after.test)):
            x, y = fetched(old).flatten(1), fetched(new).flatten(1)
            assert torch.equal(y.sort(1).values, x.sort(1).values)
            found.append((y - x[:, :1]).unique(dim=0))
        assert torch.equal(*found)
        assert len(found[0]) == 1
        orders.append(tuple(found[0][0].tolist()))
    assert orders[0] == tuple(range(SIDE**2))
    assert len(set(orders)) == len(orders)


def test_a_permutation_moves_channels_together() -> None:
    x = torch.arange(24 * 3 * 4, dtype=torch.float32).view(24, 3, 2, 2) % 7
    stream = split(x, torch.arange(24) % 4, test=(x, torch.arange(24) % 4)).derive(permuted=True)
    before, after = x[torch.arange(24) % 4 > 1], fetched(stream.tasks[1].test)
    order = [
        int((before[:, 0].flatten(1)[:, k] == after[:, 0].flatten(1)[:, j]).all()) for j in range(4) for k in range(4)
    ]
    assert torch.tensor(order).view(4, 4).sum(1).tolist() == [1] * 4
    for channel in range(3):
        moved = before[:, channel].flatten(1) @ torch.tensor(order).view(4, 4).float().T
        assert torch.equal(moved, after[:, channel].flatten(1))


def test_a_permuted_feature_keeps_its_own_scale() -> None:
    generator = np.random.default_rng(0)
    scales = 10.0 ** np.arange(7)
    x = scales * (generator.normal(size=(400, 7)) + 3)
    y = np.arange(400) % 4
    plain, moved = split(x, y), split(x, y).derive(permuted=True)
    assert len(plain.spec.transform.mean) == 7
    assert not torch.equal(fetched(moved.tasks[1].data), plain.spec.transform(fetched(plain.tasks[1].data)))
    for old, new in zip(sides(plain), sides(moved), strict=True):
        expected, found = plain.spec.transform(fetched(old)), moved.spec.transform(fetched(new))
        assert torch.allclose(found.sort(1).values, expected.sort(1).values, atol=1e-5)
    check_stream(moved)


def test_permuted_images_are_neither_cropped_nor_flipped() -> None:
    stream = split(*numbered(), transform=Transform(crop_padding=1, flip=True)).derive(permuted=True)
    assert not stream.spec.transform.augments


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_quarter_turns_are_those_of_torch(quarters: int) -> None:
    stream = images().derive(domains=2, rotated=90 * quarters)
    for side in ("data", "test"):
        first, second = (fetched(getattr(task, side)) for task in stream.tasks)
        assert torch.equal(second, first.rot90(quarters, (2, 3)))


def test_other_angles_keep_the_centre_and_leave_nothing_in_the_corners() -> None:
    disc = torch.ones(20, 1, 31, 31, dtype=torch.uint8)
    stream = split(disc, torch.arange(20) % 2, classes_per_task=1).derive(rotated=45)
    turned = fetched(stream.tasks[1].data)[0, 0]
    assert turned.dtype == torch.uint8
    assert int(turned[15 - 10 : 15 + 11, 15 - 10 : 15 + 11].min()) == 1
    assert [int(turned[i, j]) for i in (0, -1) for j in (0, -1)] == [0, 0, 0, 0]
    # The octagon in which a square and its turned copy overlap is 2(√2 − 1) of the square.
    assert float(turned.double().mean()) == pytest.approx(2 * (2**0.5 - 1), abs=0.02)


def test_task_k_is_multiplied_by_the_gain_k_times() -> None:
    x = torch.randn(60, 1, 50, generator=torch.Generator().manual_seed(0))
    stream = split(x, torch.arange(60) % 6, test=(x, torch.arange(60) % 6))
    for k, (old, new) in enumerate(zip(stream.tasks, stream.derive(gain=0.5).tasks, strict=True)):
        assert torch.equal(fetched(new.data), fetched(old.data) / 2**k)
        assert torch.equal(fetched(new.test), fetched(old.test) / 2**k)


def test_every_domain_has_every_sample_and_every_class() -> None:
    stream = images()
    found = stream.derive(domains=4, rotated=180)
    assert [task.classes for task in found.tasks] == [tuple(range(6))] * 4
    assert found.spec.heads == (tuple(range(6)),) * 4
    for side in ("data", "test"):
        everyone = sorted(one for task in stream.tasks for one in ids(getattr(task, side)))
        assert sorted(ids(getattr(found.tasks[0], side))) == everyone
        assert all(len(getattr(task, side)) == len(everyone) for task in found.tasks)


def test_no_sample_is_trained_on_in_one_domain_and_held_out_in_another() -> None:
    stream = images().derive(domains=4, rotated=180)
    tuned = stream.for_tuning(0.25, seed=3)
    whole = fetched(tuned.tasks[0].data).flatten(1).min(1).values
    for task in tuned.tasks:
        assert not set(fetched(task.test).flatten(1).min(1).values.tolist()) & set(whole.tolist())
    assert tuned.options == {"domains": 4, "rotated": 180, "held_out": 0.25, "held_out_seed": 3}


def test_per_class_leaves_so_many_of_each_class_and_all_of_the_test_data() -> None:
    stream = images()
    found = stream.derive(per_class=5)
    for old, new in zip(stream.tasks, found.tasks, strict=True):
        assert new.data.targets.unique(return_counts=True)[1].tolist() == [5] * len(new.classes)
        assert set(ids(new.data)) < set(ids(old.data))
        assert ids(new.test) == ids(old.test)
    with pytest.raises(BadData, match="per_class=1000 has no effect"):
        stream.derive(per_class=1000)


def test_unbalanced_classes_have_the_ratio_and_fall_off_geometrically() -> None:
    stream = split(*numbered(6000))
    found = stream.derive(unbalanced=16)
    before = torch.cat([task.data.targets for task in stream.tasks]).bincount()
    after = torch.cat([task.data.targets for task in found.tasks]).bincount()
    shares = (after / before).sort(descending=True).values
    assert shares.tolist() == pytest.approx([16 ** (-k / 5) for k in range(6)], abs=1e-3)
    assert all(ids(old.test) == ids(new.test) for old, new in zip(stream.tasks, found.tasks, strict=True))


def test_which_class_is_rare_depends_on_the_seed() -> None:
    made = [images().derive(unbalanced=16, derive_seed=seed) for seed in range(5)]
    counts = [torch.cat([task.data.targets for task in stream.tasks]).bincount() for stream in made]
    assert len({int(count.argmin()) for count in counts}) > 1


def test_noise_replaces_the_stated_share_by_other_labels_of_the_task() -> None:
    stream = split(*numbered(6000), classes_per_task=3)
    found = stream.derive(noise=0.25)
    for old, new in zip(stream.tasks, found.tasks, strict=True):
        wrong = new.data.targets != old.data.targets
        assert int(wrong.sum()) == round(0.25 * len(old.data))
        assert new.data.targets.unique().tolist() == list(new.classes)
        # Each of the two other labels is as likely: false alarms in 1 of 1,000 for each of four counts.
        for label in new.classes:
            moved = new.data.targets[wrong & (old.data.targets == label)]
            count, low = len(moved), int((moved == min(set(new.classes) - {label})).sum())
            assert binom.ppf(0.0001, count, 0.5) <= low <= binom.ppf(0.9999, count, 0.5)
        assert ids(new.data) == ids(old.data)
        assert torch.equal(new.test.targets, old.test.targets)


def test_which_labels_are_wrong_can_be_told_afterwards() -> None:
    stream = split(*numbered(), classes_per_task=3, test_share=0.1)
    found = stream.derive(noise=0.25, blurry=0.3, per_class=20).for_tuning(0.2)
    for task in found.tasks:
        column = task.data.columns["true_label"]
        truth = [one % 6 for one in ids(task.data)]
        assert column.values() == truth
        assert column.codes.ne(task.data.targets).any()
        assert "true_label" not in task.test.columns


def test_noise_without_another_label_is_refused() -> None:
    with pytest.raises(BadData, match="noise needs two classes in every task; task 0"):
        split(*numbered(), classes_per_task=1).derive(noise=0.1)
    with pytest.raises(BadData, match="changes no label"):
        images().derive(noise=0.001)


@pytest.mark.parametrize("base", [images, lambda: split(Lazy())], ids=["tensor", "Dataset"])
def test_blurry_boundaries_keep_every_sample_exactly_once_and_every_size(base: Any) -> None:
    stream = base()
    found = stream.derive(blurry=0.5)
    assert sorted(one for task in found.tasks for one in ids(task.data)) == sorted(
        one for task in stream.tasks for one in ids(task.data)
    )
    for k, (old, new) in enumerate(zip(stream.tasks, found.tasks, strict=True)):
        assert len(new.data) == len(old.data)
        stayed = len(set(ids(new.data)) & set(ids(old.data)))
        neighbours = (k > 0) + (k < len(stream.tasks) - 1)
        assert stayed == len(old.data) - neighbours * (len(old.data) // 4)
        near = {label for task in stream.tasks[max(0, k - 1) : k + 2] for label in task.classes}
        assert set(new.classes) == set(new.data.targets.tolist()) == near
        assert [one % 6 for one in ids(new.data)] == new.data.targets.tolist()
        assert ids(new.test) == ids(old.test)
    check_stream(found)


def test_a_sample_keeps_its_domain_when_it_crosses_a_boundary() -> None:
    stream = images().derive(domains=2, rotated=180, blurry=0.5)
    x = fetched(stream.tasks[1].data).flatten(1)
    upright = int((x[:, 0] < x[:, -1]).sum())
    assert upright == int(0.25 * len(x))


def test_regression_has_domains_and_boundaries_but_no_label_noise() -> None:
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    stream = from_tasks([(x, x.sum(1)), (x, x[:, 0])], kind="regression")
    check_stream(stream.derive(domains=2, permuted=True))
    check_stream(stream.derive(blurry=0.5))
    for options in ({"noise": 0.1}, {"unbalanced": 2}, {"per_class": 3}):
        with pytest.raises(BadData, match="needs classes; this stream is for regression"):
            stream.derive(**options)


@pytest.mark.parametrize("name", [name for name in EVERYTHING if name not in ("domains", "rotated", "gain")])
def test_the_seed_and_nothing_else_decides(name: str) -> None:
    def made(seed: int) -> Stream:
        return images().derive(**{name: EVERYTHING[name]}, derive_seed=seed)

    before = torch.get_rng_state()
    first, again, other = made(1), made(1), made(2)
    assert torch.equal(torch.get_rng_state(), before)
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint["derived"] != other.fingerprint["derived"]
    for one, two in zip(sides(first), sides(again), strict=True):
        assert torch.equal(fetched(one), fetched(two))
        assert torch.equal(one.targets, two.targets)


def test_all_at_once_is_a_stream_like_any_other() -> None:
    stream = images().derive(**EVERYTHING)
    check_stream(stream)
    x, y = stream.tasks[1].data.fetch(torch.tensor([5, 0, 5]))
    assert torch.equal(x[0], x[2])
    assert torch.equal(x[[1]], stream.tasks[1].data.fetch(torch.tensor([0]))[0])
    assert torch.equal(y, stream.tasks[1].data.targets[[5, 0, 5]])
    again = pickle.loads(pickle.dumps(stream.tasks[1].data))
    assert torch.equal(fetched(again), fetched(stream.tasks[1].data))


def test_derived_twice_is_derived_once() -> None:
    twice = images().derive(noise=0.2).derive(blurry=0.3, permuted=True)
    once = images().derive(permuted=True, blurry=0.3, noise=0.2)
    assert twice.fingerprint == once.fingerprint
    assert twice.options == once.options
    assert images().derive(permuted=False).derived_from is None


def test_inputs_are_not_copied() -> None:
    stream = images()
    found = stream.derive(domains=3, permuted=True, noise=0.1, per_class=30)
    base: Any = found.tasks[2].data
    while hasattr(base, "base"):
        base = base.base
    assert base.x.data_ptr() == stream.tasks[0].data.x.data_ptr()  # type: ignore[attr-defined]


def test_options_by_name_make_the_same_stream() -> None:
    by_name = load("digits", order_seed=1, held_out=0.2, **EVERYTHING)
    by_hand = load("digits", order_seed=1).derive(**EVERYTHING).for_tuning(0.2)
    again = load("digits", **by_name.options)
    assert by_name.fingerprint == by_hand.fingerprint == again.fingerprint
    assert by_name.options == by_hand.options


def test_an_option_of_the_loader_goes_before_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pdcl.streams.catalog._registered", {})

    @pdcl.register_stream("own-noise")
    def own(noise: float = 0.0) -> Stream:
        return split(*numbered(), name=f"noise {noise}")

    assert load("own-noise", noise=7.0, per_class=5).name == "noise 7.0"


BAD = {
    "noise": [0, 1, -0.1, "0.1", True, float("nan")],
    "blurry": [0, 1.0, "much"],
    "unbalanced": [1, 0.5, float("inf"), "10"],
    "per_class": [0, 2.5, "10", True],
    "domains": [1, 2.0, "3"],
    "permuted": ["yes", 1, 0.5],
    "rotated": [0, "45"],
    "gain": [0, 1, -2],
    "derive_seed": [-1, 0.5],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_value_that_means_nothing_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises((BadData, UsageError), match=f"{name}( is |=).*must be") as caught:
        images().derive(**{name: value})
    assert "\n" not in str(caught.value)


def test_options_without_effect_are_refused() -> None:
    with pytest.raises(BadData, match="domains=3 repeats one task; add permuted, rotated or gain"):
        images().derive(domains=3)
    with pytest.raises(BadData, match="derive_seed has no effect"):
        images().derive(rotated=90, derive_seed=1)
    with pytest.raises(BadData, match=r"rotated needs images .* shape \(2,\)"):
        split(torch.ones(20, 2), torch.arange(20) % 2).derive(rotated=90)
    with pytest.raises(BadData, match="blurry needs at least two tasks"):
        split(*numbered(), classes_per_task=6).derive(blurry=0.5)
    with pytest.raises(BadData, match="derive has no option 'nois'"):
        images().derive(nois=0.1)
    with pytest.raises(UsageError, match="'nois'; did you mean 'noise'"):
        load("digits", nois=0.1)
