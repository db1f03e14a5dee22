"""X-DER: dark experience whose stored outputs are revised, with heads of future tasks prepared before they come.

With head h the outputs of task h's classes, t the current task, (x′, z′) and (x″, y″) draws from memory:

    L = ℓ(f(x)|_{head t}, y) + α ‖f(x′) − z′‖² / K + β ℓ(f(x″)|_{heads < t}, y″)
        + η mean_{violators} (max_{heads > t} f + m − max_{own head} f) + λ contrast(future heads, strong views)

Stored outputs are revised: what the network now says in heads ≥ t is implanted, scaled to stay below the true class.
Contrast on future heads needs strong views, so it is there only for streams that augment their images.

Boschini, Bonicelli, Buzzega, Porrello, Calderara, "Class-Incremental Continual Learning into the eXtended DER-verse",
TPAMI 2022.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from pdcl.algorithm.selection import select
from pdcl.errors import UsageError
from pdcl.lab.methods.even_shares import task_rows
from pdcl.lab.methods.refusals import only_classification, only_tensors
from pdcl.lab.methods.xder_terms import implant, mean_positive, supervised_contrast, untracked, violation
from pdcl.lab.methods.xder_views import strong_views
from pdcl.learning.batches import Batch, Step
from pdcl.methods.replay import Rehearsal
from pdcl.streams.task import Spec, Task

PIECE = 256


@dataclass(eq=False)
class XDER(Rehearsal):
    """X-DER: needs to know all tasks beforehand, each with the same number of new classes.

    alpha: α, the weight of the distance to stored outputs
    beta: β, the weight of replayed labels, among past classes
    gamma: implanted outputs stay below this share of the true class's
    eta: η, the weight of the margin constraint
    margin: m, by which a sample's own head must exceed future heads
    past_constraint: hold current samples to the margin against past heads too, in probability
    contrast: λ, the weight of contrast on future heads
    temperature: τ of the contrast
    contrast_replay: stored samples in the contrast
    views: strong views of each sample in the contrast
    """

    alpha: float = 0.3
    beta: float = 0.8
    gamma: float = 0.85
    eta: float = 0.1
    margin: float = 0.3
    past_constraint: bool = False
    contrast: float = 0.05
    temperature: float = 5.0
    contrast_replay: int = 64
    views: int = 4

    # Its loss is its own, without a weight for each sample.
    unused: ClassVar[tuple[str, ...]] = ("class_weights",)
    persistent: ClassVar[tuple[str, ...]] = ("samples_seen",)
    cannot: ClassVar[tuple[str, ...]] = ("unequal", "returning", "grow")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha", "beta", "eta", "margin", "contrast"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name}={getattr(self, name)} must not be negative")
        if not 0 < self.gamma <= 1 or self.views < 2 or not self.temperature > 0:
            raise UsageError("gamma must lie in (0, 1], views be at least 2 and temperature positive")

    def prepare(self, spec: Spec) -> None:
        only_classification("xder", spec)
        only_tensors("xder", spec)
        self.classes = classes_per_head(spec)
        super().prepare(spec)
        self.contrasts = spec.transform.augments and len(spec.shape) == 3 and self.contrast > 0

    def step(self, batch: Batch) -> Step:
        t, c = batch.task, self.classes
        draws = [self.held.draw(self.portion(batch), self.generator) for _ in range(2)] if len(self.held) else []
        now, *then = self._forward(batch, draws)
        losses = cross_entropy(now[:, t * c : (t + 1) * c], batch.y - t * c, reduction="none")
        scalar = losses.mean()
        if draws:
            scalar = scalar + self.rehearsed(draws, then, t)
            self.revise(draws, then, t)
        if t + 1 < self.heads:
            scalar = scalar + self.eta * self.future_violation(batch, now, draws, then)
            if self.contrasts:
                scalar = scalar + self.contrast * self.future_contrast(batch)
        if t and self.past_constraint:
            scalar = scalar + self.eta * self.past_violation(now, t)
        self.descend(scalar)
        return Step(losses.detach())

    @property
    def heads(self) -> int:
        assert self.spec is not None
        return self.spec.outputs // self.classes

    def _forward(self, batch: Batch, draws: list[Tensor]) -> list[Tensor]:
        """Outputs of the batch and of both draws.

        Batch statistics are tracked only in a pass that sees past and present in the proportion of their tasks.
        """
        stored = [self.held.read("x", slots) for slots in draws]
        if not self.batch_statistics:
            inputs = [batch.x, *stored]
            return list(self.outputs(torch.cat(inputs)).split([len(x) for x in inputs]))
        if not draws:
            return [self.outputs(batch.x)]
        beside = batch.x[: max(1, len(draws[0]) // batch.task)]
        first = self.outputs(torch.cat([stored[0], beside]))[: len(draws[0])]
        with untracked(self.model):
            return [self.outputs(batch.x), first, self.outputs(stored[1])]

    def rehearsed(self, draws: list[Tensor], outputs: list[Tensor], t: int) -> Tensor:
        """α ‖f(x′) − z′‖² / K + β ℓ(f(x″)|_{heads < t}, y″)"""
        kept = mse_loss(outputs[0], self.held["outputs"][draws[0]])
        labelled = cross_entropy(outputs[1][:, : t * self.classes], self.held["y"][draws[1]])
        return self.alpha * kept + self.beta * labelled

    @torch.no_grad()
    def revise(self, draws: list[Tensor], outputs: list[Tensor], t: int) -> None:
        """Implant heads ≥ t of replayed samples, each with probability 1 / (times it was replayed in this task)."""
        slots, fresh = _without_repeats(draws, outputs)
        self.held["uses"][slots] += 1
        uses = self.held["uses"][slots].cpu()
        chosen = torch.rand(len(slots), generator=self.generator) * uses < 1
        self._implant(slots[chosen], fresh[chosen.to(fresh.device)], t)

    def _implant(self, slots: Tensor, fresh: Tensor, t: int) -> None:
        stored, targets = self.held["outputs"][slots], self.held["y"][slots]
        self.held["outputs"][slots] = implant(stored, fresh, targets, slice(t * self.classes, None), self.gamma)

    def future_violation(self, batch: Batch, now: Tensor, draws: list[Tensor], then: list[Tensor]) -> Tensor:
        """By how much future heads come too near to a sample's own head, over those where they do."""
        own = torch.full_like(batch.y, batch.task)
        if draws:
            slots, outputs = _without_repeats(draws, then)
            now, own = torch.cat([now, outputs]), torch.cat([own, self.held["y"][slots] // self.classes])
        rivals = slice((batch.task + 1) * self.classes, None)
        return mean_positive(violation(now, own, self.classes, rivals, self.margin))

    def past_violation(self, now: Tensor, t: int) -> Tensor:
        """The same of current samples and past heads, in probability; past heads themselves aren't moved."""
        c = self.classes
        likely = now[:, : (t + 1) * c].softmax(1)
        gap = likely[:, : t * c].amax(1).detach() + self.margin - likely[:, t * c :].amax(1)
        return mean_positive(gap)

    def future_contrast(self, batch: Batch) -> Tensor:
        """Contrast between classes, in every future head, over strong views of current and stored samples."""
        assert self.spec is not None
        slots = self.held.draw(self.contrast_replay, self.generator) if len(self.held) else None
        raw = batch.x if slots is None else torch.cat([self.held.read("x", slots), batch.x])
        labels = batch.y if slots is None else torch.cat([self.held["y"][slots], batch.y])
        transform = self.spec.transform
        images = transform.scaled(raw).repeat(self.views, 1, 1, 1)
        seen = replace(transform, scale=1.0).normalised(strong_views(images, transform.flip, self.generator))
        with untracked(self.model):
            outputs = self.model(seen).float()
        future = outputs[:, (batch.task + 1) * self.classes :]
        return supervised_contrast(future, labels.repeat(self.views), self.classes, self.temperature)

    @torch.no_grad()
    def end(self, task: Task) -> None:
        first = torch.zeros(1, dtype=torch.long)
        assert self.spec is not None
        blank = {"outputs": torch.zeros(1, self.spec.outputs), "uses": first}
        self.held.allocate(**task_rows(self, task, first, **blank))
        kept = self._kept(self.held.capacity // ((task.index + 1) * self.classes))
        targets = task.data.targets
        count = min(self.held.capacity - len(kept), len(targets))
        chosen = select(torch.ones(len(targets)), count, self.generator, targets)
        self.held.replace(kept, **self._rows(task, chosen))
        if task.index:
            slots = (self.held["task"] < task.index).nonzero().flatten()
            self._implant(slots, self._outputs(self.held.read("x", slots)), task.index)
        self.held["uses"].zero_()
        super().end(task)

    def _kept(self, quota: int) -> Tensor:
        """The first `quota` stored samples of each class."""
        y = self.held["y"].cpu()
        of_class = y[:, None] == y.unique()
        rank: Tensor = (of_class.cumsum(0) * of_class).sum(1)
        return (rank <= quota).nonzero().flatten()

    def _rows(self, task: Task, chosen: Tensor) -> dict[str, Tensor]:
        rows = task_rows(self, task, chosen)
        outputs, targets = self._outputs(rows["x"].to(self.place)), rows["y"].to(self.place)
        if task.index:
            outputs = implant(outputs, outputs, targets, slice(0, task.index * self.classes), self.gamma)
        return rows | {"outputs": outputs, "uses": torch.zeros(len(chosen), dtype=torch.long)}

    def _outputs(self, raw: Tensor) -> Tensor:
        """Outputs as in training, leaving running statistics alone."""
        with untracked(self.model):
            return torch.cat([self.outputs(part) for part in raw.split(PIECE)])


def classes_per_head(spec: Spec) -> int:
    """C, or why this stream has no equal heads."""
    if spec.heads is None:
        raise UsageError("xder prepares the heads of future tasks and so has to know all tasks beforehand; use derpp")
    sizes = [len(classes) for classes in spec.heads]
    if [c for classes in spec.heads for c in sorted(classes)] != list(range(spec.outputs)) or len(set(sizes)) != 1:
        raise UsageError(
            f"xder needs tasks with the same number of classes, each class in one task; this stream's tasks have "
            f"{', '.join(map(str, sizes))} of {spec.outputs} classes; use derpp"
        )
    return sizes[0]


def _without_repeats(draws: list[Tensor], outputs: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Both draws as one, a sample that is in both only once."""
    new = ~torch.isin(draws[1], draws[0])
    return torch.cat([draws[0], draws[1][new]]), torch.cat([outputs[0], outputs[1][new.to(outputs[1].device)]])
