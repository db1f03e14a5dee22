"""What a learner says of new samples: labels, probabilities, "none of these", and how often it is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset

from pdcl.errors import UsageError
from pdcl.learning.batches import EVALUATION_BATCH
from pdcl.lifelong import rows
from pdcl.lifelong.backbone import unchanged
from pdcl.lifelong.inputs import check_inputs
from pdcl.lifelong.new_task import encoded, held_to_spec, prepared
from pdcl.streams.arrow import inputs_alone, is_arrow
from pdcl.streams.checks import check_targets
from pdcl.streams.data import Collate, Data, DatasetData, TensorData, everything
from pdcl.streams.gathering import collected
from pdcl.streams.inputs import refuse_containers, tree_of
from pdcl.streams.mapped import mapped_rows
from pdcl.streams.readers import fetched
from pdcl.streams.samples import read
from pdcl.streams.table import TableTask
from pdcl.trees import Tree, conformed, length

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


# What torch can count to as the size of a part.
MOST = 2**62


def predict(
    learner: Learner,
    x: Any,
    collate: Collate | None = None,
    *,
    threshold: float | None = None,
    otherwise: Any = None,
    batch: int | None = None,
) -> Any:
    """The label of every sample, as the user writes it; numbers where targets are numbers; a class for each token.

    threshold: the least probability that is an answer; below it a sample gets `otherwise` (None). batch: samples in
    one forward pass, otherwise 250.
    """
    spec = prepared(learner)
    _check_threshold(spec.kind, threshold, otherwise)
    scores = _scores(learner, x, collate, batch)
    if spec.kind == "regression":
        return scores.numpy()
    if spec.kind == "tokens":
        return scores.argmax(_class_axis(scores)).numpy()
    if spec.kind == "multilabel":
        return (scores > 0).numpy() if threshold is None else (scores.sigmoid() >= threshold).numpy()
    known = scores[:, : len(spec.labels)]
    named = [spec.labels[index] for index in known.argmax(1).tolist()]
    if threshold is None:
        return _column(named, spec.labels)
    sure = known.softmax(1).amax(1) >= threshold
    answers = [label if certain else otherwise for label, certain in zip(named, sure.tolist(), strict=True)]
    return _column(answers, spec.labels)


def predict_proba(
    learner: Learner, x: Any, collate: Collate | None = None, *, batch: int | None = None
) -> npt.NDArray[np.float32]:
    """The probability of every known label, samples × `labels`: the softmax of the method's scores.

    For several labels per sample, each label's own probability; for tokens, those of each token.
    """
    spec = prepared(learner)
    if spec.kind == "regression":
        raise UsageError("regression has no probabilities; predict gives the numbers")
    scores = _scores(learner, x, collate, batch)
    if spec.kind == "multilabel":
        return scores.sigmoid().numpy()
    if spec.kind == "tokens":
        return scores.softmax(_class_axis(scores)).numpy()
    return scores[:, : len(spec.labels)].softmax(1).numpy()


def evaluate(
    learner: Learner, x: Any, y: Any = None, collate: Collate | None = None, *, batch: int | None = None
) -> float:
    """The mean score on these samples: accuracy, where there are classes."""
    spec = prepared(learner)
    if isinstance(x, TableTask) and y is None:
        y = rows.labels_of(learner, x)
    samples = read(rows.inputs_of(learner, x), y, where="x, y", collate=collate)
    if not len(samples):
        raise UsageError("there is nothing to evaluate: x and y hold no samples")
    targets = encoded(samples.targets, spec)
    check_targets(targets, spec, "y")
    scores = _read_and_scored(learner, held_to_spec(learner, samples.data(targets)), batch)
    return float(learner.goal.score(scores, targets).double().mean())


def _check_threshold(kind: str, threshold: float | None, otherwise: Any) -> None:
    if threshold is None:
        if otherwise is not None:
            raise UsageError(f"otherwise={otherwise!r} has no effect without threshold=, such as threshold=0.7")
        return
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 < threshold < 1:
        raise UsageError(f"threshold={threshold!r} must lie between 0 and 1: the least probability that is an answer")
    if kind not in ("classification", "multilabel"):
        raise UsageError(f"threshold={threshold} has no effect on {kind}; it is for classes and labels")
    if kind == "multilabel" and otherwise is not None:
        raise UsageError(f"otherwise={otherwise!r} has no effect: a sample of a multi-label stream may have no label")


def _column(labels: list[Any], known: Sequence[Any]) -> npt.NDArray[Any]:
    """Labels as an array of their type, or of objects if they, or those `known`, are of several: NumPy would write 3 as
    "3" beside a text."""
    kinds = {np.dtype(type(label)).kind for label in (*labels, *known)}
    if len(kinds) > 1 or kinds == {"O"}:
        return np.asarray([*labels, None], dtype=object)[:-1]
    return np.asarray(labels) if labels else np.asarray(known)[:0]


def _class_axis(scores: Tensor) -> int:
    """Classes of tokens come last in n × length × classes, second in n × classes × height × width."""
    return 2 if scores.dim() == 3 else 1


def _scores(learner: Learner, x: Any, collate: Collate | None, batch: int | None) -> Tensor:
    """Scores of whatever a user hands over, on the CPU; a Dataset is read in pieces."""
    x = rows.inputs_of(learner, x)
    refuse_containers(x, "x")
    if is_arrow(x):
        x = inputs_alone(x)
    if isinstance(x, Dataset):
        blank = torch.zeros(len(x))  # type: ignore[arg-type]
        if not len(blank):
            raise UsageError("x is a Dataset without samples; there is nothing to predict")
        return _read_and_scored(learner, held_to_spec(learner, DatasetData(x, blank, collate=collate)), batch)
    if collate is not None:
        raise UsageError("collate has no effect on arrays and tensors; it makes batches of a Dataset's samples")
    raw = tree_of(x)
    if not (isinstance(raw, Tensor) and raw.ndim == 0) and not length(raw):
        return _none(learner)
    if mapped := mapped_rows(x):
        data = TensorData(raw, torch.zeros(length(raw)), mapped=mapped)
        return _read_and_scored(learner, held_to_spec(learner, data), batch)
    seen = unchanged(learner)(raw if learner.backbone is not None else conformed(raw, prepared(learner).leaves))
    check_inputs(seen, prepared(learner))
    return learner.evaluated(seen, _size(batch)).cpu()


def _none(learner: Learner) -> Tensor:
    """The scores of no samples, as wide as those of any."""
    return learner.evaluated(prepared(learner).blank(1)).cpu()[:0]


def _read_and_scored(learner: Learner, data: Data, batch: int | None) -> Tensor:
    parts = (learner.evaluated(x, _size(batch)).cpu() for x in _pieces(learner, data, _size(batch)))
    return collected(parts, len(data))


def _pieces(learner: Learner, data: Data, size: int) -> Iterator[Tree]:
    """The inputs as the learner sees them, so many at a time, checked."""
    through, parts = unchanged(learner), everything(data).split(size)
    for index, (raw, _) in zip(parts, fetched(data, parts, ahead=1), strict=True):
        x = through(raw)
        check_inputs(x, prepared(learner), int(index[0]))
        yield x


def _size(batch: int | None) -> int:
    if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int) or batch < 1):
        raise UsageError(f"batch={batch!r} must be a whole number of at least 1: samples in one forward pass")
    return EVALUATION_BATCH if batch is None else min(batch, MOST)
