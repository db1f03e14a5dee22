"""From a study to its runs: the product of all axes, without those that a method doesn't use."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pdcl.errors import UsageError
from pdcl.lab.presets import stream_options
from pdcl.lab.studies.spec import RunSpec
from pdcl.lab.studies.study import OnStream, Study
from pdcl.lab.studies.toml_table import check_count, only, product
from pdcl.methods.catalog import Method, method

Chosen = Mapping[tuple[str, str], Mapping[str, Any]]


def expand(study: Study, chosen: Chosen | None = None) -> list[RunSpec]:
    """All runs of a study. `chosen` are options found by tuning, for a stream and a label; they stand above others."""
    if study.parts:
        # Parts may share runs, which are carried out once.
        return list(dict.fromkeys(spec for part in study.parts.values() for spec in expand(part, chosen)))
    check(study)
    # Counted before they are listed; options that a method lacks count too.
    grid, counted = math.prod(map(len, study.grid.values())), 0
    for stream in study.streams:
        own = study.on_stream.get(stream, OnStream()).memory
        sizes = len(study.memory if own is None else own) or 1
        counted += len(study.labels(stream)) * len(_seeds(study, stream)) * sizes * grid
    check_count(counted, "streams × methods × seeds × memory × [grid]")
    found = [
        spec
        for stream in study.streams
        for label in study.labels(stream)
        for spec in cells(study, stream, label, (chosen or {}).get((stream, label), {}))
    ]
    order = {stream: place for place, stream in enumerate(study.streams)}
    # Stable: within a stream and seed, methods stay in the order of the file.
    return sorted(found, key=lambda spec: (order[spec.stream], _seeds(study, spec.stream).index(spec.seed)))


def cells(study: Study, stream: str, label: str, chosen: Mapping[str, Any]) -> list[RunSpec]:
    """The runs of one method, or variant of one, on one stream."""
    on, known = study.on_stream.get(stream, OnStream()), known_options(method_of(study, label))
    own = {**own_options(study, stream, label), **chosen}
    lists = {name: values for name, values in study.grid.items() if name in known and name not in own}
    sizes = study.memory if on.memory is None else on.memory
    return [
        spec_of(study, stream, label, seed, size, {**chosen, **cell})
        for seed in _seeds(study, stream)
        for size in (sizes if sizes and "memory" in known and "memory" not in own else (None,))
        for cell in product(lists)
    ]


def spec_of(
    study: Study, stream: str, label: str, seed: int, memory: int | str | None, options: Mapping[str, Any]
) -> RunSpec:
    """One run, with `options` above all else that the study says."""
    on, entry = study.on_stream.get(stream, OnStream()), method_of(study, label)
    known = known_options(entry)
    common = {name: value for name, value in {**study.options, **on.options}.items() if name in known}
    full = {**common, **own_options(study, stream, label), **options}
    preset = on.preset or study.preset
    asked = {**stream_options(stream, preset), **on.stream_options}
    return RunSpec(stream, entry.name, label, seed, memory, preset, full, asked)


def method_of(study: Study, label: str) -> Method:
    return method(study.variants[label].method if label in study.variants else label)


def own_options(study: Study, stream: str, label: str) -> dict[str, Any]:
    """Options that speak of this method: [methods.M] < [variants.L] < [streams.S.M] < [streams.S.L]."""
    entry = method_of(study, label)
    at = study.on_stream.get(stream, OnStream()).own
    variant = study.variants[label].options if label in study.variants else {}
    found = {**study.method_options.get(entry.name, {}), **variant, **at.get(entry.name, {}), **at.get(label, {})}
    only(found, sorted(known_options(entry)), f"options of {label!r}")
    return found


def known_options(entry: Method) -> frozenset[str]:
    """Names of all options that a method has."""
    from pdcl.running.options import names

    return frozenset(names(entry.load()))


def check(study: Study) -> None:
    """Refuse what would have no effect: options, streams and labels that nothing in the study has."""
    from pdcl.streams.catalog import find

    for stream in study.streams:
        find(stream)
    labels = [label for stream in study.streams for label in study.labels(stream)]
    entries = [method_of(study, label) for label in labels]
    methods = {*labels, *(entry.name for entry in entries)}
    only(study.on_stream, study.streams, "[streams]")
    only(study.method_options, sorted(methods), "[methods]")
    only(study.tuning.candidates if study.tuning else (), labels, "[tune] candidates")
    known = {label: known_options(method_of(study, label)) for label in labels}
    only(study.options, sorted(set().union(*known.values())), "[options]")
    only(study.grid, sorted(set().union(*known.values())), "[grid]")
    for stream, on in study.on_stream.items():
        only(on.own, sorted(methods), f"[streams.{stream}]")
        only(on.options, sorted(set().union(*(known[label] for label in study.labels(stream)))), f"[streams.{stream}]")
    for label, candidates in (study.tuning.candidates if study.tuning else {}).items():
        for options in candidates:
            only(options, sorted(known[label]), f"[tune] candidates of {label!r}")
            if both := [name for name in options if name in study.grid]:
                raise UsageError(f"{', '.join(both)} is an axis of [grid] and tuned for {label!r}; choose one of them")
    if study.whatif is not None and (without := [m.name for m in entries if "tolerance" not in known_options(m)]):
        raise UsageError(f"[whatif] asks for other tolerances, and {without[0]} has none; leave it out")
    if study.whatif is not None and study.tuning is not None:
        raise UsageError("[whatif] and [tune] don't go together; put the chosen options into a study of its own")


def _seeds(study: Study, stream: str) -> tuple[int, ...]:
    own = study.on_stream.get(stream, OnStream()).seeds
    return study.seeds if own is None else own


def chosen_by(study: Study, words: Iterable[str]) -> Callable[[RunSpec], bool]:
    """Runs that match a word of every kind (stream, method, memory, seed) that is among the words.

    A method without memory has no size to match, so words about memory leave it in.
    """
    words = list(words)
    if not words:
        return lambda spec: True
    known: dict[str, set[str]] = defaultdict(set)
    for spec in study.runs():
        for kind, word in _words(spec).items():
            known[kind].add(word)
    only(words, sorted(set().union(*known.values())), "--only")
    asked = {kind: choices & set(words) for kind, choices in known.items() if choices & set(words)}

    def matches(spec: RunSpec) -> bool:
        own = _words(spec)
        return all(kind not in own or own[kind] in choices for kind, choices in asked.items())

    return matches


def _words(spec: RunSpec) -> dict[str, str]:
    memory = {} if spec.memory is None else {"memory": f"m{spec.memory}"}
    return {"stream": spec.stream, "method": spec.label, "seed": f"s{spec.seed}", **memory}
