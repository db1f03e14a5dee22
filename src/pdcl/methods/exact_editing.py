"""Statistics are sums: another learner's are added (`merge`), those of single samples are taken out (`forget`).

Both leave the learner as if it had seen just these samples from the beginning, given φ and the guards that are held.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lifelong.backbone import features_of
from pdcl.lifelong.entry import FORGOTTEN, MERGED
from pdcl.lifelong.forgetting import forget_samples
from pdcl.lifelong.new_task import encoded, held_to_spec, prepared
from pdcl.methods.exact_bound import stay_within
from pdcl.methods.exact_limits import known_past, stated_limits, values_then
from pdcl.methods.exact_solving import solved
from pdcl.past.repeats import row_hashes_at
from pdcl.past.statistics import Moments, Running, added, without_empty
from pdcl.streams.data import Data
from pdcl.streams.hashes import data_hashes
from pdcl.streams.samples import read
from pdcl.trees import to

if TYPE_CHECKING:
    from pdcl.methods.exact import Exact


def resolve(learner: Exact) -> None:
    """Solve anew, as at the end of the newest task."""
    learner.use(solved(known_past(learner), stated_limits(learner, learner.tasks_learned - 1)))


# Taking samples out.


def forget(learner: Exact, x: Any, y: Any) -> int:
    """Take these samples out of all statistics, guards and witnesses; how many there were."""
    check_erasable(learner)
    raw = given_data(learner, x, y)
    known = is_known(learner, raw)
    if not bool(known.all()):
        row = int((~known).nonzero()[0])
        raise UsageError(f"row {row} of x, y was never learned here, so it can't be erased; nothing was erased")
    erase(learner, raw)
    note = {"forgotten": len(raw)}
    learner.lineage.note_change(learner.tasks_learned - 1, "", note, FORGOTTEN)
    return len(raw)


def take_out(learner: Exact, x: Tensor | None, y: Any) -> int | None:
    """The same of those samples that were learned here, for `pdcl.forget`. Without y every label is tried."""
    check_erasable(learner)
    if x is None:
        raise UsageError("statistics don't know whose samples they hold; give the samples themselves")
    spec = prepared(learner)
    if y is None and spec.kind != "classification":
        raise UsageError(f"samples={tuple(x.shape)} have no targets, and exact subtracts both; give (x, y)")
    labels = spec.labels or range(spec.outputs)
    given = [given_data(learner, x, y)] if y is not None else [given_data(learner, x, [k] * len(x)) for k in labels]
    found = [raw.subset(is_known(learner, raw).nonzero().flatten()) for raw in given]
    found = [each for each in found if len(each)]
    for each in found:
        erase(learner, each)
    return sum(len(each) for each in found) or None


def check_erasable(learner: Exact) -> None:
    if not learner.erasable:
        raise UsageError(
            "nothing was forgotten: samples are taken out exactly of learners made with erasable=True, which keep "
            "statistics in float64 and know their samples by hash; this one doesn't"
        )


def given_data(learner: Exact, x: Any, y: Any) -> Data:
    """x, y as the learner reads them."""
    spec, samples = prepared(learner), read(x, y, where="x, y")
    unknown = [label for label in samples.targets.tolist() if spec.labels and label not in spec.labels]
    if spec.kind == "classification" and unknown:
        raise UsageError(f"y holds {unknown[0]!r}, a label that was never learned; nothing was erased")
    return held_to_spec(learner, samples.data(encoded(samples.targets, spec)))


def is_known(learner: Exact, raw: Data) -> Tensor:
    """Which of these samples were learned or held back here, [n]."""
    known = torch.cat([learner.ever_held, *learner.trained_hashes.values()])
    return torch.isin(row_hashes_at(features_of(learner, raw), torch.arange(len(raw))), known)


def erase(learner: Exact, raw: Data) -> None:
    """Take known samples out, and solve anew."""
    data = features_of(learner, raw)
    hashes = row_hashes_at(data, torch.arange(len(data)))
    for task in learner.trained_hashes:
        _subtract(learner, task, data, hashes)
    _release(learner, hashes[torch.isin(hashes, learner.ever_held)])
    # Their hashes stay in the lineage: features, ρ and λ were found with them, so they are no audit data.
    forget_samples(learner, data_hashes(raw, learner.lineage.settle().key))
    resolve(learner)


def _subtract(learner: Exact, task: int, data: Data, hashes: Tensor) -> None:
    """Subtract each of these samples as often as the task had it, from its segments too."""
    there, known = learner.trained_hashes[task], learner.trained_codes[task]
    out = torch.isin(there, hashes)
    if not bool(out.any()):
        return
    learner.trained_hashes[task], learner.trained_codes[task] = there[~out], known[~out]
    order = hashes.argsort()
    x, y = data.fetch(order[torch.searchsorted(hashes[order], there[out])])
    features, targets = learner.represent(to(x, learner.place)), learner.numbers(y)
    spec, masks = prepared(learner), learner.held.segments.masks(known[out])
    gone = _moments(features, targets, spec.outputs, task)
    learner.sets.put(task, without_empty(added([learner.sets.holder(task), gone], [1, -1])))
    for name, mask in zip(learner.held.segments.names, masks, strict=True):
        if name in learner.sets.segments and bool(mask.any()):
            part = _moments(features[mask], targets[mask], spec.outputs, task)
            learner.sets.segments[name] = without_empty(added([learner.sets.segments[name], part], [1, -1]))


def _moments(features: Tensor, targets: Tensor, outputs: int, task: int) -> Moments:
    sums = Running(features.shape[1], outputs, exact=True)
    sums.include(features, targets)
    return sums.moments(task)


def _release(learner: Exact, hashes: Tensor) -> None:
    """Take held-back samples out of guards and witnesses."""
    memory = learner.held.memory
    if len(memory):
        memory.keep((~torch.isin(memory["hash"], hashes)).nonzero().flatten())
    learner.ever_held = learner.ever_held[~torch.isin(learner.ever_held, hashes)]


# Adding another learner.


def merge(learner: Exact, other: Exact) -> None:
    """Add what another learner has seen. Tasks of one name are one task; others come behind."""
    check_mergeable(learner, other)
    names = learner.tolerances.names
    before = len(names)
    number = {k: names.index(name) if name in names else -1 for k, name in enumerate(other.tolerances.names)}
    fresh = [k for k, place in number.items() if place < 0]
    number |= {k: before + i for i, k in enumerate(fresh)}
    columns = torch.tensor(
        [learner.labels.index(label) for label in other.labels] or list(range(prepared(other).outputs))
    )
    for k in fresh:
        names.append(other.tolerances.names[k])
        learner.losses_then.append(other.losses_then[k])
        learner.errors_then.append(other.errors_then[k])
        for column in ("task_samples", "smallest_groups", "trained_here"):
            getattr(learner.registry, column).append(getattr(other.registry, column)[k])
    for label, task in other.registry.first_seen.items():
        learner.registry.first_seen.setdefault(str(int(columns[int(label)])), number[task])
    for moments in other.sets.parts:
        _add(learner, renumbered(moments, number, columns))
    for name, moments in other.sets.segments.items():
        learner.sets.add_segment(name, renumbered(moments, number, columns))
    for task, hashes in other.trained_hashes.items():
        mine = learner.trained_hashes.get(number[task], hashes[:0])
        learner.trained_hashes[number[task]] = torch.cat([mine, hashes])
        codes = [each.trained_codes.get(t) for each, t in ((learner, number[task]), (other, task))]
        learner.trained_codes[number[task]] = torch.cat([each for each in codes if each is not None])
    _take_held(learner, other, number, columns)
    learner.samples_seen += other.samples_seen
    learner.tasks_learned = len(names)
    learner.tolerances.set(values_then(learner), learner.losses_then[-1])
    for entry in [each for each in other.lineage.settle().tasks if number[each["task"]] >= before]:
        learner.lineage.entries.append({**entry, "task": number[entry["task"]]})
    learner.lineage.note_change(len(names) - 1, names[-1], {"merged": other.samples_seen}, MERGED)
    stay_within(learner, len(names))
    resolve(learner)


def check_mergeable(learner: Exact, other: Any) -> None:
    """Refuse what can't be added, before anything changes."""
    if not isinstance(other, type(learner)):
        raise UsageError(f"merge takes another exact learner, not {type(other).__name__}")
    if other is learner:
        raise UsageError("merge takes another learner; with itself every sample would count twice")
    mine, theirs = prepared(learner), prepared(other)
    learner.check_features()
    other.check_features()
    if learner.phi_hash != other.phi_hash:
        raise UsageError(
            "the other learner has other features, so its statistics can't be added; fit them once and hand them out: "
            "pdcl.learner('exact', features=first.phi)"
        )
    if mine.kind != theirs.kind or learner.erasable != other.erasable:
        raise UsageError(
            f"the other learner keeps {theirs.kind} in {other.dtype}, this one {mine.kind} in {learner.dtype}; "
            "both must be made alike"
        )
    strange = [label for label in theirs.labels if label not in mine.labels]
    if strange or (not mine.labels and mine.outputs != theirs.outputs):
        what = f"the label {strange[0]!r}" if strange else f"{theirs.outputs} outputs"
        raise UsageError(f"the other learner has {what}, which this one doesn't know; merge into one that knows all")
    if learner.held.segments.table != other.held.segments.table:
        raise UsageError("the other learner has limits on other segments; state the same limits for both")


def renumbered(moments: Moments, tasks: dict[int, int], columns: Tensor) -> Moments:
    """The same set with the numbers that another learner has for tasks and outputs."""
    order = columns[moments.columns].argsort()
    numbers = [tasks[task] for task in moments.tasks]
    rows = torch.tensor(numbers).argsort()
    return replace(
        moments, tasks=tuple(sorted(numbers)), columns=columns[moments.columns][order],
        counts=moments.counts[rows][:, order], cross=moments.cross[order],
    )  # fmt: skip


def _add(learner: Exact, moments: Moments) -> None:
    sets = learner.sets
    if len(moments.tasks) == 1:
        sets.add(moments, alone=learner.tolerances.of(moments.tasks[0]) is not None)
        return
    for task in moments.tasks:
        if task in sets.own:
            sets.merge(task)
    sets.common = (moments if sets.common is None else added([sets.common, moments])).kept_as(sets.dtype)


def _take_held(learner: Exact, other: Exact, number: dict[int, int], columns: Tensor) -> None:
    theirs, mine = other.held.memory, learner.held.memory
    learner.ever_held = torch.cat([learner.ever_held, other.ever_held]).unique()
    if not len(theirs):
        return
    if mine.columns and theirs.columns.keys() != mine.columns.keys():
        raise UsageError("the other learner's guards have other columns (groups or segments); learn both alike")
    names = {name.partition(".")[0] for name in theirs.columns}
    rows: dict[str, Any] = {name: theirs.read(name, torch.arange(len(theirs))) for name in names}
    rows["task"] = torch.tensor([number[int(task)] for task in rows["task"]])
    rows["id"] = rows["id"] + learner.samples_seen
    if prepared(learner).kind == "classification":
        rows["y"] = columns[rows["y"]]
    mine.append(**rows)
