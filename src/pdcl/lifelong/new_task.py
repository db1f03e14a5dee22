"""One call's data as a task in the learner's own encoding: checks, new labels, and the first task's spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from pdcl.errors import UsageError
from pdcl.lifelong.backbone import features_of
from pdcl.lifelong.growth import Grow, extend_labels, grow_outputs
from pdcl.lifelong.inputs import fitting
from pdcl.networks import eval_mode
from pdcl.objective import outputs_each
from pdcl.streams.checks import FIRST_BATCH, check_task
from pdcl.streams.data import Collate, Data, everything, shaped
from pdcl.streams.encoding import Encoding, Kind, described
from pdcl.streams.hashes import group_numbers
from pdcl.streams.labels import declared, encode, in_order, labels_in, unknown
from pdcl.streams.samples import Column, Samples, is_dataset, read
from pdcl.streams.task import Spec, Task
from pdcl.streams.transform import Transform
from pdcl.trees import Tree, call, logits_of, take, to

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def new_task(
    learner: Learner,
    samples: Samples,
    test: Any,
    name: str | None,
    kind: Kind,
    transform: Transform | None,
    grow: Grow | None,
) -> tuple[Task, Data]:
    """The task in the learner's own encoding, after all checks, and its raw data; new labels are known from now on."""
    if learner.spec is None:
        prepare_for(learner, samples, kind, transform, None)
    spec = prepared(learner)
    new = unknown_labels(spec, samples)
    wanted = samples.targets.shape[1] if _has_columns(spec, samples) else len(spec.labels) + len(new)
    wider = replace(spec, labels=(*spec.labels, *new), outputs=max(spec.outputs, wanted))
    index = learner.tasks_learned
    groups = None if samples.groups is None else group_numbers(samples.groups.tolist(), learner.lineage.key)
    raw = held_to_spec(learner, samples.data(encoded(samples.targets, wider), groups))
    data = features_of(learner, raw)
    held = data
    if test is not None:
        held = features_of(learner, held_to_spec(learner, _test(test, wider, samples.collate)))
    classes = tuple(torch.unique(raw.targets).tolist()) if spec.kind == "classification" else ()
    task = Task(index, name or str(index), data, held, classes)
    check_task(task, wider)
    probe = data.fetch(everything(data)[:1000])[0]
    if new:
        extend_labels(learner, new, probe, grow)
    elif wider.outputs > spec.outputs:
        grow_outputs(learner, wider.outputs, probe, grow)
    if learner.spec is not None and learner.spec.heads is not None:
        learner.spec = replace(learner.spec, heads=(*learner.spec.heads[:index], classes))
    return task, raw


def kind_of(
    learner: Learner, kind: Kind | None, transform: Transform | None = None, labels: Sequence[Any] | None = None
) -> Kind:
    """What targets are. UsageError for what only the first task can say, unless it says what stands."""
    if learner.spec is None:
        return kind or "classification"
    standing = {"kind": learner.spec.kind, "transform": learner.reading, "labels": list(learner.spec.labels)}
    stated = {"kind": kind, "transform": transform, "labels": None if labels is None else list(labels)}
    for name, value in stated.items():
        if value is not None and value != standing[name]:
            raise UsageError(
                f"{name}={value!r} has no effect after the first task: it is {standing[name]!r}; leave it out"
            )
    return learner.spec.kind  # type: ignore[return-value]


def prepare_for(
    learner: Learner, samples: Samples, kind: Kind, transform: Transform | None, labels: Sequence[Any] | None
) -> None:
    """The spec that the first data shows; a given module may have more outputs than labels so far, or fewer."""
    found = Encoding.of(kind, [samples])
    names = found.labels if labels is None else declared(labels)
    targets = found.targets(samples.targets, "y") if labels is None else encode(samples.targets, names)
    outputs = len(names) if kind == "classification" else found.outputs([targets])
    learner.reading = transform or Transform()
    some = torch.arange(min(len(samples), FIRST_BATCH))
    first = features_of(learner, samples.data(targets).subset(some)).fetch(some)[0]
    shown = Transform() if learner.backbone is not None else transform or Transform()
    shape, dtype, leaves = described(first, shown)
    first = take(first, some[:1])
    spec = Spec(shape, dtype, outputs, kind, names, None, shown, leaves)
    width = outputs if isinstance(learner.network, str) else _width(learner.network, spec, first)
    if labels is not None and width != len(names):
        raise UsageError(f"{len(names)} labels for a network with {width} outputs; name every output in order")
    if labels is None and isinstance(learner.network, nn.Module) and width < outputs:
        learner.prepare(replace(spec, outputs=width, labels=names[:width]))
        if kind == "multilabel":
            grow_outputs(learner, outputs, first)
        extend_labels(learner, names[width:], first)
    else:
        learner.prepare(replace(spec, outputs=max(width, outputs)))


@torch.no_grad()
def _width(network: nn.Module, spec: Spec, first: Tree) -> int:
    device = next((p.device for p in network.parameters()), torch.device("cpu"))
    with eval_mode(network):
        outputs = fitting("network", first, lambda: logits_of(call(network, to(_seen(spec, first), device))))
    if not isinstance(outputs, Tensor) or outputs.dim() == 0 or len(outputs) != 1:
        raise UsageError(f"the network gave shape {tuple(outputs.shape)} for one sample; it must give a row per sample")
    if spec.kind == "tokens":
        return outputs_each(outputs, spec.kind)
    return outputs.shape[-1] if outputs.dim() > 1 else 1


def _seen(spec: Spec, raw: Tree) -> Tree:
    """What the network is given of raw inputs: a tensor is normalised, anything else is taken as it is."""
    return spec.transform(raw) if isinstance(raw, Tensor) else raw


def check_labels(learner: Learner, samples: Samples, kind: Kind) -> None:
    """Raise BadData for labels that are none, or that are known in another type."""
    if learner.spec is None:
        Encoding.of(kind, [samples])
    else:
        unknown_labels(learner.spec, samples)


def unknown_labels(spec: Spec, samples: Samples) -> list[Any]:
    if spec.kind != "classification":
        return []
    return in_order(unknown(labels_in(samples.targets), spec.labels))


def _has_columns(spec: Spec, samples: Samples) -> bool:
    return spec.kind == "multilabel" and samples.targets.ndim == 2


def encoded(targets: Column, spec: Spec, where: str = "y") -> Tensor:
    """Targets in the learner's encoding; labels that came later than these are not known of them: NaN."""
    found = Encoding(spec.kind, spec.labels).targets(targets, where)  # type: ignore[arg-type]
    missing = spec.outputs - found.shape[1] if spec.kind == "multilabel" else 0
    return nn.functional.pad(found, (0, missing), value=torch.nan) if missing > 0 else found


def _test(test: Any, spec: Spec, collate: Collate | None) -> Data:
    x, y = (test, None) if is_dataset(test) else test
    samples = read(x, y, where="test", collate=collate if isinstance(x, Dataset) else None)
    return samples.data(encoded(samples.targets, spec, "test y"))


def held_to_spec(learner: Learner, data: Data) -> Data:
    """The data in the form of the first task's, unless a backbone stands between them."""
    return data if learner.backbone is not None else shaped(data, prepared(learner).expected)


def prepared(learner: Learner) -> Spec:
    if learner.spec is None:
        raise UsageError("this learner has learned nothing yet; call learn(x, y) first")
    return learner.spec
