"""Gradient-based sample selection, greedy: replay from a memory whose gradients point in different directions.

A sample's score is 1 plus the largest cosine between its gradient and those of n random stored samples,

    c = 1 + max_j cos(∇ℓ(x, y), ∇ℓ(x_j, y_j)) ∈ [0, 2]

and small scores are kept. While there is room everything is stored. Then a sample with c < 1, one that opposes all n,
challenges slot k, drawn with probability s_k / Σ s, and takes it with probability s_k / (s_k + c).

Aljundi, Lin, Goujaud, Bengio, "Gradient based sample selection for online continual learning", NeurIPS 2019. There
samples come one by one. Here those of a batch are all compared by the network after the step on that batch, each with
its own n references; `gate="batch"` scores a batch by its mean gradient, and its samples challenge only if that opposes
all n, which is how the numbers in the literature were made. In networks with convolutions, where a reference costs more
than a sample of the step, references come from a pool that is drawn anew at every step: `POOL` times the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lab.methods.er import ER
from pdcl.lab.methods.per_sample import Gradients, chunk_size, only_linear, per_sample_gradients
from pdcl.lab.methods.refusals import only_tensors
from pdcl.learning.batches import Batch
from pdcl.streams.task import Spec

NOTHING_TO_COMPARE_WITH = 0.1
POOL = 2
TINY = 1e-12


@dataclass(eq=False)
class GSS(ER):
    """GSS: experience replay from a memory of diverse gradients.

    references: n, stored samples that a new one is compared with
    gate: what must oppose the references: each sample's gradient (sample), or first the whole batch's (batch)
    """

    references: int = 10
    gate: str = "sample"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gate not in ("sample", "batch"):
            raise UsageError(f"gate={self.gate!r} is unknown; choose sample or batch")
        if self.references < 1:
            raise UsageError(f"references={self.references} must be at least 1")

    def prepare(self, spec: Spec) -> None:
        only_tensors("gss", spec)
        super().prepare(spec)

    def remember(self, batch: Batch) -> None:
        self.held.allocate(**self.rows(batch, score=torch.zeros(len(batch))))
        scores, challenge = self.scored(batch)
        rows = self.rows(batch, score=scores)
        room = min(self.held.capacity - len(self.held), len(batch))
        self.held.append(**{name: value[:room] for name, value in rows.items()})
        challengers = room + (challenge[room:] < 1).nonzero().flatten()
        if len(challengers):
            slots, winners = duels(self.held["score"].cpu(), challenge[challengers], self.generator)
            rows["score"] = challenge
            self.held.write(slots, **{name: value[challengers[winners]] for name, value in rows.items()})

    def scored(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Each sample's score where there is room for it, and what it challenges with (1 or more: not at all)."""
        if self.gate == "sample":
            scores = self._scored_each(batch, self.gradients(batch.x, batch.y))
            return scores, scores
        if not len(self.held):
            return torch.full((len(batch),), NOTHING_TO_COMPARE_WITH), torch.ones(len(batch))
        return self._scored_whole(batch, self.held.draw(self.references, self.generator))

    def _scored_each(self, batch: Batch, own: Gradients) -> Tensor:
        """Each sample against n of those stored before it, earlier ones of the batch too while there is room."""
        n, stored = len(batch), len(self.held)
        follows = (torch.arange(n)[:, None] > torch.arange(n)) & (stored < self.held.capacity)
        possible = torch.cat([self._pool(n).expand(n, stored), follows], 1)
        drawn = draw_some(possible, self.references, self.generator)
        slots = drawn[:, :stored].any(0).nonzero().flatten()
        cosines = torch.cat([self.cosines(own, slots), _cosines(own, own).cpu()], 1)
        compared = torch.cat([drawn[:, slots], drawn[:, stored:]], 1)
        highest = cosines.masked_fill(~compared, -torch.inf).amax(1)
        return torch.where(highest.isinf(), NOTHING_TO_COMPARE_WITH, 1 + highest)

    def _pool(self, n: int) -> Tensor:
        """Which slots n samples may be compared with. Each sample's references stay a uniform draw from memory."""
        if only_linear(self.model):
            return torch.ones(len(self.held), dtype=torch.bool)
        pool = torch.zeros(len(self.held), dtype=torch.bool)
        pool[self.held.draw(max(POOL * n, self.references), self.generator)] = True
        return pool

    def _scored_whole(self, batch: Batch, slots: Tensor) -> tuple[Tensor, Tensor]:
        """The batch's mean gradient g against the references: ⟨g, g_j⟩ = mean_i ⟨g_i, g_j⟩."""
        own = self.gradients(batch.x, batch.y)
        others = self.gradients(self.held.read("x", slots), self.held["y"][slots])
        inner, norms = own.inner(others), others.norms().clamp(min=TINY)
        length = own.inner(own).mean().clamp(min=0).sqrt().clamp(min=TINY)
        whole = float(1 + (inner.mean(0) / (length * norms)).max())
        each = 1 + (inner / (own.norms().clamp(min=TINY)[:, None] * norms)).amax(1).cpu()
        return torch.full((len(batch),), whole), each if whole < 1 else torch.ones(len(batch))

    def cosines(self, own: Gradients, slots: Tensor) -> Tensor:
        """Cosines between these gradients and those of stored samples, in pieces that fit in memory."""
        found = [torch.zeros(len(own.norms()), 0)]
        # An empty tensor splits into one empty part, not into none.
        for part in slots.split(chunk_size(self.model)) if len(slots) else ():
            found.append(_cosines(own, self.gradients(self.held.read("x", part), self.held["y"][part])).cpu())
        return torch.cat(found, 1)

    def gradients(self, raw: Tensor, targets: Tensor) -> Gradients:
        """Per-sample gradients of the loss, unaugmented."""
        assert self.spec is not None
        return per_sample_gradients(self.model, self.spec.transform(raw), targets, self.losses)


def _cosines(left: Gradients, right: Gradients) -> Tensor:
    return left.inner(right) / (left.norms()[:, None] * right.norms()).clamp(min=TINY)


def draw_some(possible: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """In each row, n of the possible places (or all), every subset equally likely: a boolean matrix."""
    luck = torch.rand(possible.shape, generator=generator).masked_fill(~possible, -1)
    places = luck.topk(min(n, luck.shape[1]), dim=1).indices
    drawn = torch.zeros_like(possible).scatter_(1, places, True)
    return drawn & possible


def duels(scores: Tensor, challengers: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(slots, who takes each): in order, each challenger c meets slot k ~ s_k / Σ s and takes it with s_k / (s_k + c).

    A taken slot has its new score from then on.
    """
    scores = scores.double().clamp(min=TINY)
    luck = torch.rand(len(challengers), 2, generator=generator, dtype=torch.float64).tolist()
    taken: dict[int, int] = {}
    for number, (place, chance) in enumerate(luck):
        cumulative = scores.cumsum(0)
        slot = int(torch.searchsorted(cumulative, place * cumulative[-1], right=True).clamp(max=len(scores) - 1))
        challenger = max(float(challengers[number]), TINY)
        if chance < scores[slot] / (scores[slot] + challenger):
            scores[slot] = challenger
            taken[slot] = number
    return torch.tensor([*taken], dtype=torch.long), torch.tensor([*taken.values()], dtype=torch.long)
