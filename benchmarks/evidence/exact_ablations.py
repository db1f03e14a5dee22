"""What each part of `exact` is worth: head, ρ, balanced classes; rare, unbalanced and recurring classes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from exact_book import Job, Row
from exact_streams import features_of
from torch import Tensor

import pdcl
from pdcl.algorithm.guard_search import Weights
from pdcl.methods.exact import Exact
from pdcl.methods.exact_limits import known_past
from pdcl.methods.exact_solving import Solved, with_guards
from pdcl.past.quadratics import exact_loss

STREAMS = ("mnist", "minilm", "tiny, 10 tasks", "speech")
RHOS = (1e-5, 1e-3, 1e-1)
RARE, TIMES = 30, 10
Parts = list[tuple[Tensor, Tensor, Tensor, Tensor]]


@pdcl.register("exact-plain", summary="exact, every sample of equal weight", family="features")
@dataclass(eq=False)
class Plain(Exact):
    """Ridge on all samples alike, as ACIL has it: neither classes nor tasks are balanced."""

    def use(self, found: Solved) -> None:
        past = known_past(self)
        weights = Weights(exact_loss(with_guards(past), past.outputs, True), [], found.rho, "ridge", past.counts)
        super().use(replace(found, W=weights.solve([]), head="ridge", whole=None))


def jobs(seeds: int) -> Iterator[Job]:
    for name in STREAMS:
        for seed in range(min(seeds, 3)):
            for kind in ("rare", "unbalanced", "recurring"):
                yield {"stream": name, "kind": kind, "seed": seed}, lambda n=name, k=kind, s=seed: compared(n, k, s)
        for head in ("ridge", "lda"):
            for rho in RHOS:
                yield {"stream": name, "kind": f"{head} {rho:g}"}, lambda n=name, h=head, r=rho: fixed(n, h, r)
        yield {"stream": name, "kind": "chosen"}, lambda n=name: fixed(n, None, None)


def fixed(name: str, head: str | None, rho: float | None) -> Row:
    result = run(features_of(name), "exact", 0, head=head, rho=rho)
    solution = result.learner.solution
    return {"accuracy": mean(result), "head": solution.head, "rho": solution.rho}


def compared(name: str, kind: str, seed: int) -> Row:
    """The same changed stream for exact, for samples of equal weight, for slda, and for joint training."""
    parts, rare = CHANGES[kind](features_of(name), torch.Generator().manual_seed(seed))
    row: Row = {}
    for method in ("exact", "exact-plain", "slda"):
        result = run(parts, method, seed)
        row[method] = {"mean": mean(result)} | ({} if rare is None else {"recall": recall(result, parts, rare)})
    row["joint"] = joint(parts, rare)
    return row


def run(parts: Parts, method: str, seed: int, **options: Any) -> Any:
    stream = pdcl.from_tasks(parts, name="changed")
    own = {"features": torch.nn.Identity(), **options} if method.startswith("exact") else {}
    return pdcl.run(stream, method, seed=seed, batch=500, **own)


def mean(result: Any) -> float:
    return statistics.mean(result.accuracy["class_il"][-1])


def recall(result: Any, parts: Parts, label: int) -> float:
    test = torch.cat([x[y == label] for _, _, x, y in parts])
    return float((torch.as_tensor(result.learner.predict(test)) == label).double().mean())


def joint(parts: Parts, label: int | None) -> Row:
    """Logistic regression on all data at once, classes balanced, its strength chosen on a fifth of it."""
    from sklearn.linear_model import LogisticRegression

    x, y = (torch.cat([part[side] for part in parts]) for side in (0, 1))
    scale = x.std(0).clamp(min=1e-6)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    out, rest = order[: len(y) // 5], order[len(y) // 5 :]

    def fitted(strength: float, some: Tensor) -> Any:
        model = LogisticRegression(C=strength, class_weight="balanced", max_iter=60)
        return model.fit((x[some] / scale).numpy(), y[some].numpy())

    best = max((1e-3, 1e-1), key=lambda c: fitted(c, rest).score((x[out] / scale).numpy(), y[out].numpy()))
    model = fitted(best, order)
    scores = [float(model.score((test / scale).numpy(), answers.numpy())) for _, _, test, answers in parts]
    test = torch.cat([part[2][part[3] == label] for part in parts]) if label is not None else None
    own = {} if test is None else {"recall": float((model.predict((test / scale).numpy()) == label).mean())}
    return {"mean": statistics.mean(scores), **own}


def rare(parts: Parts, generator: torch.Generator) -> tuple[Parts, int]:
    """One class of one task has 30 samples."""
    place = int(torch.randint(len(parts), (1,), generator=generator))
    label = int(parts[place][1].unique()[0])
    return [_thinned(part, {label: RARE}) for part in parts], label


def unbalanced(parts: Parts, generator: torch.Generator) -> tuple[Parts, None]:
    """Every second class has a tenth of its samples."""
    labels = torch.cat([part[1] for part in parts]).unique().tolist()
    few = {label: max(8, int((torch.cat([p[1] for p in parts]) == label).sum()) // TIMES) for label in labels[::2]}
    return [_thinned(part, few) for part in parts], None


def recurring(parts: Parts, generator: torch.Generator) -> tuple[Parts, None]:
    """Half of every task's samples come in other tasks, in unequal shares."""
    x, y = (torch.cat([part[side] for part in parts]) for side in (0, 1))
    owner = torch.cat([torch.full((len(part[1]),), k) for k, part in enumerate(parts)])
    moved = torch.rand(len(y), generator=generator) < 0.5
    shares = torch.arange(1, len(parts) + 1).double()
    owner[moved] = torch.multinomial(shares, int(moved.sum()), True, generator=generator)
    return [(x[owner == k], y[owner == k], part[2], part[3]) for k, part in enumerate(parts)], None


def _thinned(part: Any, most: dict[int, int]) -> Any:
    x, y, test, answers = part
    kept = torch.ones(len(y), dtype=torch.bool)
    for label, count in most.items():
        kept[(y == label).nonzero().flatten()[count:]] = False
    return x[kept], y[kept], test, answers


CHANGES: dict[str, Any] = {"rare": rare, "unbalanced": unbalanced, "recurring": recurring}
