"""The checks that every learner and every stream passes, also those of users.

```python
def test_mine():
    pdcl.testing.check_learner(Mine, strength=3.0)
```

What a learner can't do it names in `cannot` (keys of `SITUATIONS`, or "grow"); it must then say so with a UsageError in
`prepare`, or when it is asked to grow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch

from pdcl.errors import UsageError
from pdcl.learning.loop import Loop, keep_nothing
from pdcl.learning.schedule import Schedule
from pdcl.lifelong.learner import Learner
from pdcl.storage.serialize import as_parts, from_parts, same
from pdcl.streams.checks import check_stream
from pdcl.streams.data import everything
from pdcl.streams.encoding import leaf_parts
from pdcl.streams.task import Stream
from pdcl.streams.task_list import from_tasks
from pdcl.trees import Tree, flatten, take

SCHEDULE = Schedule(epochs=2, batch=8)
DIMENSIONS = 6
TEST_SAMPLES = 6


class _Stopped(Exception):
    """A run was cut off on purpose."""


def gaussian_stream(tasks: Sequence[dict[int, int]], seed: int = 0) -> Stream:
    """Tasks given as {class: training samples}, one Gaussian per class."""
    random = np.random.default_rng(seed)
    centres = random.normal(scale=3.0, size=(1 + max(max(task) for task in tasks), DIMENSIONS))

    def draw(counts: dict[int, int]) -> tuple[Any, Any]:
        y = np.concatenate([np.full(count, label) for label, count in counts.items()])
        return (centres[y] + random.normal(size=(len(y), DIMENSIONS))).astype(np.float32), y

    parts = [(*draw(task), *draw(dict.fromkeys(task, TEST_SAMPLES))) for task in tasks]
    return from_tasks(parts, name="gaussian")


SITUATIONS: dict[str, list[dict[int, int]]] = {
    "plain": [{0: 16, 1: 16}, {2: 16, 3: 16}, {4: 16, 5: 16}],
    "short_batches": [{0: 9, 1: 8}, {2: 12, 3: 13}, {4: 1, 5: 2}],
    "one_class": [{0: 16}, {1: 16}, {2: 16}],
    "unequal": [{0: 40, 1: 30, 2: 20}, {3: 9, 4: 8}, {5: 24}],
    "imbalanced": [{0: 2, 1: 200}, {2: 200, 3: 2}, {4: 4, 5: 4}],
    "returning": [{0: 16, 1: 16}, {1: 16, 2: 16}, {0: 16, 3: 16}],
}


def check_learner(cls: type[Learner], **options: Any) -> None:
    """Raise AssertionError, saying what broke, unless the learner keeps the whole contract."""
    for situation in SITUATIONS:
        check_bounded_and_repeatable(cls, situation, **options)
    check_defaults(cls, **options)
    check_continues(cls, **options)
    check_grows(cls, **options)


def _made(cls: type[Learner], options: dict[str, Any]) -> Learner:
    small: dict[str, Any] = {"network": "mlp:8", "memory": 12, "replay": 4}
    names = {f.name for f in fields(cls) if f.init} - cls.without_effect(small).keys()
    return cls(**{name: value for name, value in small.items() if name in names} | options)


def _prepared(cls: type[Learner], stream: Stream, situation: str, options: dict[str, Any]) -> Learner | None:
    """A learner ready for the stream, or None where it rightly refuses."""
    learner = _made(cls, options)
    try:
        learner.prepare(stream.spec)
    except UsageError as error:
        _refused(cls, situation, error)
        return None
    assert situation not in cls.cannot, f"{cls.__name__} says it can't do {situation!r}, and doesn't refuse in prepare"
    return learner


def _refused(cls: type[Learner], what: str, error: UsageError) -> None:
    """A refusal must have been announced."""
    if what not in cls.cannot:
        raise AssertionError(f"{cls.__name__} refuses {what!r} ({error}); name it in `cannot`") from error


def check_bounded_and_repeatable(cls: type[Learner], situation: str = "plain", **options: Any) -> None:
    """Memory never exceeds its bound at any step, all scores are finite, the same seed gives the same to the bit."""
    stream = gaussian_stream(SITUATIONS[situation])
    outcomes = []
    for _ in range(2):
        learner = _prepared(cls, stream, situation, options)
        if learner is None:
            return
        history = Loop(learner, stream, SCHEDULE, keep=_check_bound).run()
        assert np.isfinite(history.class_il).all(), f"{cls.__name__}, {situation}: scores {history.class_il}"
        outcomes.append((learner.state_dict(), history))
    assert same(outcomes[0][0], outcomes[1][0]), f"{cls.__name__}, {situation}: two runs of one seed end differently"
    assert outcomes[0][1] == outcomes[1][1], f"{cls.__name__}, {situation}: two runs of one seed measure differently"


def check_defaults(cls: type[Learner], **options: Any) -> None:
    """With the options that it has by itself, as on a stream without presets, it learns too."""
    stream = gaussian_stream(SITUATIONS["plain"])
    learner = cls(**options)
    learner.prepare(stream.spec)
    history = Loop(learner, stream, SCHEDULE, keep=_check_bound).run()
    assert np.isfinite(history.class_il).all(), f"{cls.__name__} with its defaults: scores {history.class_il}"


def _check_bound(loop: Loop) -> None:
    store = loop.learner.store
    if store is not None and store.columns:
        name = type(loop.learner).__name__
        assert len(store) <= store.capacity, f"{name} holds {len(store)} samples of {store.capacity} at {loop.position}"


def check_continues(cls: type[Learner], **options: Any) -> None:
    """Saved at a task's end or in the middle of one, loaded and continued: as if it had never stopped, to the bit."""
    stream = gaussian_stream(SITUATIONS["unequal" if "unequal" not in cls.cannot else "plain"])
    whole = _made(cls, options)
    whole.prepare(stream.spec)
    loop = Loop(whole, stream, SCHEDULE)
    moments: list[int] = []
    loop.keep = lambda _: moments.append(len(moments))
    expected = loop.run()
    # A learner that holds samples back makes fewer steps than a stream's sizes say.
    ends = [moment for moment in _task_ends(stream) if moment < len(moments)]
    for moment in sorted({0, len(moments) // 3, len(moments) // 2 + 1, len(moments) - 2, *ends}):
        state = _state_at(cls, stream, moment, options)
        learner = _made(cls, options)
        learner.prepare(stream.spec)
        rest = Loop(learner, stream, SCHEDULE)
        learner.load_state_dict(state["learner"])
        rest.load_state_dict(state["loop"])
        found = rest.run()
        place = f"{cls.__name__}, stopped after {moment + 1} of {len(moments)} steps"
        assert found == expected, f"{place}: measured {found.class_il}, not {expected.class_il}"
        assert same(learner.state_dict(), whole.state_dict()), (
            f"{place}: the final state differs{_where(learner, whole)}"
        )


def _task_ends(stream: Stream) -> list[int]:
    """Roughly: one moment at each task's end counts steps and ends alike."""
    ends, moment = [], -1
    for task in stream.tasks[:-1]:
        moment += SCHEDULE.steps(len(task.data)) + 1
        ends.append(moment)
    return ends


def _state_at(cls: type[Learner], stream: Stream, moment: int, options: dict[str, Any]) -> dict[str, Any]:
    """The state at the moment-th offer to keep it, through bytes and back, as a file would have it."""
    learner = _made(cls, options)
    learner.prepare(stream.spec)
    loop = Loop(learner, stream, SCHEDULE)
    kept: list[dict[str, bytes]] = []
    offers = iter(range(10**9))

    def keep(loop: Loop) -> None:
        if next(offers) == moment:
            kept.append(as_parts({"learner": loop.learner.state_dict(), "loop": loop.state_dict()}, {}))
            raise _Stopped

    loop.keep = keep
    try:
        loop.run()
    except _Stopped:
        loop.keep = keep_nothing
    return from_parts(kept[0])


def _where(one: Learner, other: Learner) -> str:
    a, b = one.state_dict(), other.state_dict()
    return ": " + ", ".join(key for key in a if not same(a[key], b.get(key)))


def check_grows(cls: type[Learner], **options: Any) -> None:
    """Tasks given one by one, each with new labels; a learner that can't must refuse before any training."""
    stream = gaussian_stream(SITUATIONS["plain"])
    learner = _made(cls, options)
    for task in stream.tasks:
        x, y = task.data.fetch(everything(task.data))
        try:
            once = None if "epochs" in cls.unused else 1
            learner.learn(x, [f"class {label}" for label in y.tolist()], batch=8, epochs=once)
        except UsageError as error:
            _refused(cls, "grow", error)
            return
    assert "grow" not in cls.cannot, f"{cls.__name__} says it can't grow, and grows"
    assert learner.spec is not None
    assert len(learner.spec.labels) == 6, f"{cls.__name__} knows {learner.spec.labels}"
    assert set(learner.predict(x)) <= set(learner.spec.labels)


def check_stream_contract(make: Callable[[], Stream]) -> None:
    """Raise unless the stream is sound, the same each time it is made, fetched in any order, and its own to divide."""
    one, other = make(), make()
    check_stream(one)
    assert one.fingerprint == other.fingerprint, f"{one.name}: made twice, its fingerprint differs"
    assert one.fingerprint, f"{one.name} has no fingerprint, so a resumed run can't know its data again"
    assert [task.index for task in one.tasks] == list(range(len(one.tasks))), f"{one.name}: tasks are numbered wrongly"
    for task, twin in zip(one.tasks, other.tasks, strict=True):
        for data, again in ((task.data, twin.data), (task.test, twin.test)):
            rows = everything(data)[:: max(1, len(data) // 20)]
            (x, y), place = data.fetch(rows), f"{one.name}, task {task.index}"
            backwards = take(data.fetch(rows.flip(0))[0], torch.arange(len(rows)).flip(0))
            assert _equal(backwards, x), f"{place}: order changes what is fetched"
            assert _equal(again.fetch(rows)[0], x), f"{place}: another time, other inputs"
            assert _equal(y, data.targets[rows]), f"{place}: targets disagree"
            assert _equal(data.subset(rows).fetch(torch.arange(len(rows)))[0], x), "a subset fetches other rows"


def _equal(one: Tree, other: Tree) -> bool:
    return same(*({name: leaf_parts(leaf) for name, leaf in flatten(tree).items()} for tree in (one, other)))
