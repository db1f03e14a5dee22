"""A stream made from another: fewer samples, wrong labels, unequal classes, new domains, blurred boundaries.

Options of every stream: `pdcl.stream("mnist", noise=0.1)`, `--stream-option noise=0.1` on the command line,
`stream_options = { noise = 0.1 }` in a study, and `stream.derive(noise=0.1)` for a stream of one's own.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from pdcl.given import seed_of
from pdcl.lab.benchmarks import changes, resampling
from pdcl.streams.checks import BadData
from pdcl.streams.encoding import fingerprint
from pdcl.streams.task import Stream


@dataclass(frozen=True)
class Derivation:
    """What is changed, in the order in which it is done; all of it is decided by the options and `derive_seed` alone.

    domains: this many tasks, each with all samples and classes of the stream; wants permuted, rotated or gain
    permuted: every task but the first reads the positions of its inputs in an order of its own
    rotated: task k is turned by k times so many degrees (images)
    gain: task k is multiplied by this number to the power of k
    per_class: at most so many training samples of each class in each task
    unbalanced: how many times more training samples the most frequent class keeps than the rarest
    noise: the share of training labels that become another label of their task; the column `true_label` keeps the old
    blurry: the share of its training samples that a task exchanges with its neighbours
    derive_seed: of everything random here
    """

    domains: int | None = None
    permuted: bool = False
    rotated: float | None = None
    gain: float | None = None
    per_class: int | None = None
    unbalanced: float | None = None
    noise: float | None = None
    blurry: float | None = None
    derive_seed: int = 0

    def __post_init__(self) -> None:
        _whole("domains", self.domains, 2)
        _whole("per_class", self.per_class, 1)
        seed_of(self.derive_seed, "derive_seed")
        if not isinstance(self.permuted, bool):
            raise BadData(f"permuted is {self.permuted!r}; it must be true or false")
        _number("rotated", self.rotated, lambda degrees: degrees != 0, "a number of degrees other than 0")
        _number("gain", self.gain, lambda gain: gain > 0 and gain != 1, "a positive number other than 1")
        _number("unbalanced", self.unbalanced, lambda ratio: ratio > 1, "a ratio above 1")
        for name in ("noise", "blurry"):
            _number(name, getattr(self, name), lambda share: 0 < share < 1, "a share between 0 and 1")
        if self.domains and not (self.permuted or self.rotated or self.gain):
            raise BadData(f"domains={self.domains} repeats one task; add permuted, rotated or gain")
        if self.derive_seed and not (self.permuted or self.per_class or self.unbalanced or self.noise or self.blurry):
            raise BadData("derive_seed has no effect: nothing else that is asked for is random")

    def options(self) -> dict[str, Any]:
        """Those that were chosen, by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}


OPTIONS = tuple(field.name for field in fields(Derivation))


def _whole(name: str, value: Any, least: int) -> None:
    if value is not None and (type(value) is not int or value < least):
        raise BadData(f"{name} is {value!r}; it must be a whole number of at least {least}")


def _number(name: str, value: Any, fits: Any, what: str) -> None:
    number = type(value) in (int, float) and abs(value) < float("inf")
    if value is not None and not (number and fits(value)):
        raise BadData(f"{name} is {value!r}; it must be {what}")


def derive(stream: Stream, **options: Any) -> Stream:
    """The stream under these options (see `Derivation`). Inputs are changed when they are fetched, never copied.

    A derived stream derived again is as if all options had been given at once.

    >>> import pdcl
    >>> digits = pdcl.stream("digits")
    >>> [len(task.data) for task in derive(digits, per_class=10).tasks]
    [20, 20, 20, 20, 20]
    >>> [task.name for task in derive(digits, domains=3, permuted=True).tasks]
    ['domain 0', 'domain 1', 'domain 2']
    >>> derive(digits, domains=2, rotated=90).tasks[1].classes
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    >>> [len(task.data) for task in derive(digits, domains=2, gain=0.5).tasks]
    [1438, 1438]
    >>> counts = [task.data.targets.unique(return_counts=True)[1] for task in derive(digits, unbalanced=10).tasks]
    >>> max(int(count.max()) for count in counts), min(int(count.min()) for count in counts)
    (144, 15)
    >>> first = derive(digits, noise=0.1).tasks[0].data
    >>> int((first.columns["true_label"].codes != first.targets).sum()), len(first)
    (29, 288)
    >>> [task.classes for task in derive(digits, blurry=0.2).tasks][:2]
    [(0, 1, 2, 3), (0, 1, 2, 3, 4, 5)]
    """
    base = stream.derived_from or stream
    asked = _derivation({**chosen(stream), **options})
    if not asked.options():
        return base
    made = _applied(base, asked)
    return replace(made, fingerprint={**base.fingerprint, "derived": fingerprint(made.tasks)}, derived_from=base)


def chosen(stream: Stream) -> dict[str, Any]:
    """The options by which the stream was derived."""
    if stream.derived_from is None:
        return {}
    return {name: value for name, value in stream.options.items() if name in OPTIONS}


def _derivation(options: dict[str, Any]) -> Derivation:
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise BadData(f"derive has no option {unknown[0]!r}; it has: {', '.join(OPTIONS)}")
    return Derivation(**options)


def _applied(base: Stream, asked: Derivation) -> Stream:
    """The order matters: samples keep their domain when they cross a boundary, and labels are wrong after thinning."""
    tasks, spec, seed = list(base.tasks), base.spec, asked.derive_seed
    for option in ("gain", "rotated", "permuted"):
        if spec.leaves and getattr(asked, option):
            raise BadData(f"{option} needs inputs that are one tensor; this stream has {spec.inputs()}")
    if asked.domains:
        tasks = resampling.domains(tasks, asked.domains)
    if asked.gain:
        tasks = changes.amplified(tasks, asked.gain)
    if asked.rotated:
        tasks = changes.rotated(tasks, spec, asked.rotated)
    if asked.permuted:
        tasks, spec = changes.permuted(tasks, spec, seed)
    if asked.per_class:
        tasks = resampling.per_class(tasks, spec, asked.per_class, seed)
    if asked.unbalanced:
        tasks = resampling.unbalanced(tasks, spec, asked.unbalanced, seed)
    if asked.noise:
        tasks = resampling.noisy(tasks, spec, asked.noise, seed)
    if asked.blurry:
        tasks = resampling.blurry(tasks, asked.blurry, seed)
    spec = replace(spec, heads=tuple(task.classes for task in tasks))
    return replace(base, tasks=tasks, spec=spec, options={**base.options, **asked.options()})
