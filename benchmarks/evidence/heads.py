"""Would another head than the trained one know past classes better? Heads made of stored samples' features, at the end.

    python benchmarks/evidence/heads.py --out runs/heads
    python benchmarks/evidence/heads.py --out runs/heads --table

`even` learns a stream of `limits_kept.py`; then the same network predicts the held-out data by its own outputs; by the
nearest mean of stored features (unit length, as iCaRL); by both, their log-probabilities added; by ridge regression and
by linear discriminant analysis on stored features. Every result is a line of results.jsonl.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from limits_kept import Book, command, loaded, run
from limits_page import interval
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from pdcl.networks import eval_mode

STREAMS = ("digits", "mnist", "banking77", "organa", "speech")
# How sharp distances of unit features are beside outputs, and how far a covariance is drawn to a multiple of I.
SHARPNESS, SHRINKAGE = 5.0, 0.5
Head = Callable[[Tensor, Tensor], Tensor]


def carry_out(book: Book, seeds: int) -> None:
    for name in STREAMS:
        data = loaded(name, held_out=True)
        for seed in range(seeds):
            if f"{name} {seed}" not in book.known:
                learner = run(name, data, "even", seed).learner
                heads = heads_of(learner)
                found = {
                    head: [error(learner, task.test, score) for task in data.tasks] for head, score in heads.items()
                }
                book.add(f"{name} {seed}", stream=name, seed=seed, errors=found["outputs"], heads=found)


def heads_of(learner: Any) -> dict[str, Head]:
    """By name: a function of features and outputs (both n × …) that scores classes."""
    features, outputs = both(learner, learner.held["x"])
    y = one_hot(learner.held["y"], outputs.shape[1]).float()
    counts = y.sum(0).clamp(min=1)[:, None]
    near, means, centre = normalize(y.T @ normalize(features) / counts), y.T @ features / counts, features.mean(0)
    spread = features - means[learner.held["y"]]
    within = drawn_to_identity(spread.T @ spread / len(features), SHRINKAGE)
    slopes = torch.linalg.solve(within, means.T)
    own = features - centre
    width = own.shape[1]
    ridge = torch.linalg.solve(own.T @ own + own.square().sum() / width * torch.eye(width), own.T @ (y - y.mean(0)))

    def nearest(phi: Tensor) -> Tensor:
        return -torch.cdist(normalize(phi), near).square()

    return {
        "outputs": lambda phi, out: out,
        "nearest mean": lambda phi, out: nearest(phi),
        "both": lambda phi, out: out.log_softmax(1) + (SHARPNESS * nearest(phi)).log_softmax(1),
        "ridge": lambda phi, out: (phi - centre) @ ridge,
        "discriminant": lambda phi, out: phi @ slopes - (means.T * slopes).sum(0) / 2,
    }


def drawn_to_identity(matrix: Tensor, share: float) -> Tensor:
    return (1 - share) * matrix + share * matrix.diagonal().mean() * torch.eye(len(matrix))


@torch.no_grad()
def both(learner: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    """Features and outputs."""
    with eval_mode(learner.model):
        parts = [(learner.features(part).flatten(1), learner.scores(part)) for part in x.split(500)]
    features, outputs = zip(*parts, strict=True)
    return torch.cat(features), torch.cat(outputs)


def error(learner: Any, data: Any, head: Head) -> float:
    x, y = data.fetch(torch.arange(len(data)))
    return float((head(*both(learner, x)).argmax(1) != y).float().mean())


def table(book: Book) -> str:
    names = list(book.rows[0]["heads"])
    lines = [
        f"| stream | seeds | {' | '.join(names)} | nearest mean − outputs (paired 95 %) |",
        "|---" * (len(names) + 3) + "|",
    ]
    for stream in dict.fromkeys(row["stream"] for row in book.rows):
        own = [row["heads"] for row in book.rows if row["stream"] == stream]
        scores = {name: [100 - 100 * statistics.mean(each[name]) for each in own] for name in names}
        gaps = [new - old for new, old in zip(scores["nearest mean"], scores["outputs"], strict=True)]
        cells = [f"{statistics.mean(found):.1f}" for found in scores.values()]
        lines.append(f"| {stream} | {len(own)} | {' | '.join(cells)} | {interval(gaps)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    command(__doc__, "runs/heads", 3, carry_out, table)
