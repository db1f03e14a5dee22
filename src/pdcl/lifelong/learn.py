"""Learn or adopt one task by one call; its labels may be new."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.given import few, short
from pdcl.learning.events import Infeasible, Listener, SetAside, Warned, ignore
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule, portions
from pdcl.learning.stated import check_columns, check_enough, check_kind, own_limit
from pdcl.lifelong.arguments import SHARE, check_arguments, task_name
from pdcl.lifelong.audit_split import plan_aside
from pdcl.lifelong.entry import ADOPTED, LEARNED, Entry
from pdcl.lifelong.growth import Grow
from pdcl.lifelong.new_task import check_labels, kind_of, new_task, prepare_for, prepared, unknown_labels
from pdcl.lifelong.owners import note_owners
from pdcl.lifelong.showing import shown
from pdcl.lifelong.undo import all_or_nothing
from pdcl.lifelong.violation import REPORT, ROLLBACK, breaks, check_choice, rolled_back
from pdcl.lifelong.warning import Warnings, warn_of_broken
from pdcl.past.repeats import groups_in
from pdcl.streams.data import Collate, Data
from pdcl.streams.encoding import Kind
from pdcl.streams.hashes import as_numbers, data_hashes
from pdcl.streams.labels import like_numbers
from pdcl.streams.samples import Samples, read
from pdcl.streams.task import Stream, Task
from pdcl.streams.transform import Transform

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

WRITTEN = (bool, int, float, str, type(None))


def learn(
    learner: Learner,
    x: Any,
    y: Any = None,
    *,
    name: str | None = None,
    tolerance: Any = None,
    test: Any = None,
    groups: Any = None,
    columns: Any = None,
    kind: Kind | None = None,
    transform: Transform | None = None,
    epochs: int | None = None,
    batch: int | None = None,
    grow: Grow | None = None,
    listener: Listener = ignore,
    audit: str | Path | None = None,
    audit_share: float = SHARE,
    audit_budget: int | None = None,
    on_violation: str = REPORT,
    collate: Collate | None = None,
) -> Entry:
    """Learn one task: `learn(x, y, name="2026-12")`. Labels are any integers or strings, new ones included.

    name; tolerance: of this task alone, from now on; test: (x, y) to score afterwards; groups: one per sample;
    columns: {"plan": [...]}, further facts of every sample; epochs, batch: otherwise by size; grow: widens the
    network in place of our own rule; kind, transform: of the first task; listener: hears the events. audit: a
    directory to set `audit_share` (0.1) of the task aside in, at most `audit_budget` samples in all, for the gate.
    on_violation: what to do where a limit is BROKEN: "report" it, or "rollback", which puts the learner back to
    what it was.
    x may be a task of `pdcl.table`, a dict or tuple of arrays, or a list of sequences; collate: makes batches of a
    Dataset's inputs.

    Where limits are stated, the entry's `promises` (and the learner's) is the table of their verdicts, and
    broken ones are warned of with `pdcl.LimitBroken`. Without a listener, what else people should know is a
    `pdcl.LearningWarning`.
    """
    check_choice(on_violation, learner)
    check_can_learn(learner)
    name = task_name(name, learner)
    tolerance = own_limit(tolerance, name)
    check_arguments(test, transform, grow, listener, audit, audit_share, audit_budget)
    unsaid = kind is None and learner.spec is None
    kind = kind_of(learner, kind, transform)
    samples = read(x, y, groups, where="x, y", columns=columns, collate=collate)
    check_limits(learner, tolerance, samples, kind)
    doubt = like_numbers(samples.targets) if unsaid else None
    chosen = _stated_schedule(learner, epochs, batch)
    aside = None
    if audit is not None:
        title = name or str(learner.tasks_learned)
        aside = plan_aside(samples, audit, title, learner, audit_share, audit_budget)
        samples = aside.rest
    with Warnings(learner, listener) as told, all_or_nothing(learner) as before:
        if aside is not None:
            listener(SetAside(learner.tasks_learned, **asdict(aside.about)))
            if aside.note is not None:
                told.on_event(Warned(learner.tasks_learned, aside.note))
        if doubt is not None:
            told.on_event(Warned(learner.tasks_learned, doubt))
        classes = 0 if learner.spec is None else len(learner.spec.labels)
        task, raw = new_task(learner, samples, test, name, kind, transform, grow)
        check_enough(learner.tolerance, task.index + 1)
        learner.check_room(task)
        learner.agree_on(task.index, tolerance)
        schedule = replace(Schedule(*portions(len(task.data))), **chosen)
        learner.learned_before = known_before(learner, raw, classes)
        result = _trained(learner, task, schedule, test is not None, told)
        result["audit"] = None if aside is None else asdict(aside.about)
        if on_violation == ROLLBACK and breaks(learner.promises):
            return rolled_back(learner, before, task, result)
        settings = {"epochs": schedule.epochs, "batch": schedule.batch, **_settings(learner)}
        _note(learner, replace(task, data=raw), samples, settings, result, LEARNED)
        before.settle(*[] if aside is None else [aside.writing(learner)])
    warn_of_broken(learner.promises)
    return Entry(learner.lineage.entries[-1])


def check_can_learn(learner: Learner) -> None:
    """Refuse a learner whose saved state used an option that this version has no more."""
    if learner.learned_with is not None:
        raise UsageError(
            f"this model was learned with {learner.learned_with}, which pdcl has no more: it predicts, but can't learn "
            "on; make a new learner with its network, and adopt what it knows"
        )


def _stated_schedule(learner: Learner, epochs: int | None, batch: int | None) -> dict[str, int]:
    """What the user says of the schedule, checked before anything is done; one pass, where more have no effect."""
    stated = {"epochs": epochs, "batch": batch}
    found = {name: value for name, value in stated.items() if value is not None}
    Schedule(**found)
    for name in found:
        if name in learner.unused:
            raise UsageError(f"{name}={found[name]} has no effect on {type(learner).__name__}; leave it out")
    return {**dict.fromkeys((name for name in stated if name in learner.unused), 1), **found}


def _trained(learner: Learner, task: Task, schedule: Schedule, tested: bool, told: Warnings) -> dict[str, Any]:
    assert learner.spec is not None
    stream = Stream("life", [task] if tested else [], learner.spec)
    drawn = shown(learner, schedule.epochs, told.on_event) if told.speaks else nullcontext(told.on_event)
    try:
        with drawn as hear:
            history = Loop(learner, stream, schedule, hear).learn(task)
    finally:
        learner.emit, learner.learned_before = ignore, None
    return _result(learner, task.index, history.class_il[-1], told.infeasible)


def check_limits(learner: Learner, tolerance: Any, samples: Samples, kind: Kind) -> None:
    """What is stated for the learner and for this task fits the data, before anything is done."""
    stated = learner.tolerance
    check_columns(stated, samples.columns, "the data")
    for each in (stated, tolerance):
        check_kind(each, kind if learner.spec is None else learner.spec.kind, learner.objective)
    check_labels(learner, samples, kind)


def known_before(learner: Learner, raw: Data, classes: int) -> Tensor | None:
    """Which of these samples an earlier task had, or others of their group; None: none that is known of.

    classes: how many it knew by then. An input that comes again with a class that is new was never learned as such. A
    group that is held back so far was never learned either.
    """
    lineage = learner.lineage
    if not learner.report().has_tolerances or not learner.tasks_learned:
        return None
    known = torch.zeros(len(raw), dtype=torch.bool)
    # Tasks of a run wait until their samples are first asked for: now.
    if raw.in_memory and len(samples := lineage.settle().samples):
        known = torch.isin(data_hashes(raw, lineage.key), samples)
        if prepared(learner).kind == "classification":
            known &= raw.targets < classes
    if raw.groups is not None:
        held = groups_in(learner.store, replayed=False)
        known |= torch.isin(raw.groups, as_numbers(lineage.groups)) & ~torch.isin(raw.groups, held)
    return known if bool(known.any()) else None


def adopt(
    learner: Learner,
    x: Any,
    y: Any = None,
    *,
    name: str | None = None,
    tolerance: Any = None,
    labels: Sequence[Any] | None = None,
    groups: Any = None,
    columns: Any = None,
    transform: Transform | None = None,
    kind: Kind | None = None,
    collate: Collate | None = None,
    unseen: bool = False,
) -> Entry:
    """Enter data that the network knows already as a past task; no weight changes.

    name; tolerance: of this task alone; labels: what the network's outputs mean, in their order; groups; columns;
    unseen: whether the network was never trained on these samples (no). Only then can they show that a limit is
    kept: on memorised samples a network makes no errors, however bad it is on others.
    """
    if isinstance(learner.network, str) and learner.spec is None:
        raise UsageError("adopt needs a network that has learned elsewhere: give the learner a module, not a name")
    name = task_name(name, learner)
    kind = kind_of(learner, kind, transform, labels)
    samples = read(x, y, groups, where="x, y", columns=columns, collate=collate)
    tolerance = own_limit(tolerance, name)
    if not isinstance(unseen, bool):
        raise UsageError(f"unseen={short(unseen)} must be True or False")
    check_limits(learner, tolerance, samples, kind)
    with Warnings(learner) as told, all_or_nothing(learner) as before:
        if learner.spec is None:
            prepare_for(learner, samples, kind, transform, labels)
        assert learner.spec is not None
        strangers = unknown_labels(learner.spec, samples)
        if strangers:
            raise UsageError(
                f"adopt trains nothing, so the network can't know {few(strangers)}; use learn for new classes"
            )
        task, raw = new_task(learner, samples, None, name, kind, None, None)
        learner.check_room(task)
        weights = copy.deepcopy(learner.model.state_dict())
        learner.agree_on(task.index, tolerance)
        if unseen:
            learner.vouch_for(task.index)
        learner.emit = told.on_event
        try:
            learner.absorb(task)
        finally:
            learner.emit = ignore
        learner.model.load_state_dict(weights)
        learner.optimiser = learner.new_optimiser()
        learner.tasks_learned += 1
        result = _result(learner, task.index, [], [])
        _note(learner, replace(task, data=raw), samples, _settings(learner), result, ADOPTED)
        before.settle()
    warn_of_broken(learner.promises)
    return Entry(learner.lineage.entries[-1])


def _settings(learner: Learner) -> dict[str, Any]:
    """The learner's options that can be written down."""
    own = {f.name: getattr(learner, f.name) for f in fields(learner) if f.init}
    return {name: value for name, value in own.items() if isinstance(value, WRITTEN)}


def _result(learner: Learner, task: int, scores: list[float], heard: list[Infeasible]) -> dict[str, Any]:
    """The numbers of this task alone, so that an entry's size doesn't grow with the number of tasks."""
    store, tolerances, duals = learner.store, learner.report().tolerances, learner.final_duals()
    table = learner.promises
    return {
        "test": scores[0] if scores else None,
        "dual": duals[-1] if duals else None,
        "tolerance": tolerances[task] if task < len(tolerances) else None,
        "held": None if store is None else store.counts(task + 1)[task],
        "over_tolerance": [{"task": e.constrained, "tolerance": e.tolerance, "reached": e.reached} for e in heard],
        "promises": None if table is None else table.as_json(),
    }


def _note(
    learner: Learner, task: Task, samples: Samples, settings: dict[str, Any], result: dict[str, Any], how: str
) -> None:
    assert learner.spec is not None
    learner.lineage.note(task, learner.spec, settings, result, how)
    note_owners(learner, task.data, samples)
    learner.lineage.settle()
