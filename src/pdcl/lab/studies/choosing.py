"""A part of a study by words: `mnist pdcl er m500 s0`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from pdcl.lab.studies.spec import RunSpec
from pdcl.lab.studies.study import Study
from pdcl.lab.studies.toml_table import only


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
