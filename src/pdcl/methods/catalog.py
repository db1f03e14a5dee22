"""The methods by name: what each is, without importing any of them (or torch)."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from pdcl.errors import UsageError
from pdcl.laboratory import lab

Kind = TypeVar("Kind", bound=type)


@dataclass(frozen=True)
class Method:
    """A method's entry: `target` is `module:Class`, or the class itself where a user registered one."""

    name: str
    target: str | type
    summary: str
    family: str = "own"
    uses_memory: bool = True
    needs_boundaries: bool = True
    reference: str = ""
    defaults: dict[str, Any] = field(default_factory=dict)

    def load(self) -> Any:
        """The learner class."""
        if isinstance(self.target, type):
            return self.target
        module, _, name = self.target.partition(":")
        return getattr(import_module(module), name)


PAPER = "Elenter et al., Primal Dual Continual Learning, 2024"

_OWN = [
    Method("finetune", "pdcl.methods.plain:Finetune", "plain training, forgets", "bounds", False, False),
    Method("joint", "pdcl.methods.plain:Joint", "retrains on everything seen", "bounds", False, False),
    Method(
        "even", "pdcl.methods.pdcl:PDCL", "replay, every past task at equal weight", "primal-dual", True, True, PAPER,
        {"partition": "uniform", "selection": "uniform", "level": "task", "dual": "frozen"},
    ),
    Method(
        "pdcl0", "pdcl.methods.pdcl:PDCL", "replay weighed by duals", "primal-dual", True, True, PAPER,
        {"partition": "uniform", "selection": "uniform", "level": "task"},
    ),
    Method(
        "pdcl", "pdcl.methods.pdcl:PDCL", "+ memory divided by duals", "primal-dual", True, True, PAPER,
        {"selection": "uniform", "level": "task"},
    ),
    Method(
        "pdcl-s", "pdcl.methods.pdcl:PDCL", "duals per sample choose what is kept", "primal-dual", True, True, PAPER,
        {"selection": "dual", "level": "sample"},
    ),
    Method(
        "exact", "pdcl.methods.exact:Exact", "fixed features, head and limits in closed form", "features", True, True,
        "this project; Zhuang et al., ACIL: Analytic Class-Incremental Learning, 2022 (without limits)",
    ),
]  # fmt: skip

_METHODS = {method.name: method for method in _OWN}
_outside_read = False


def methods() -> dict[str, Method]:
    """All known methods: ours, the lab's, those of installed plug-ins, those registered in this process."""
    global _outside_read
    if not _outside_read:
        _outside_read = True
        _METHODS.update({each.name: each for each in lab("methods").METHODS if each.name not in _METHODS})
        for point in entry_points(group="pdcl.methods"):
            _METHODS.setdefault(point.name, Method(point.name, point.value, "a plug-in", "plug-in"))
    return _METHODS


def method(name: str) -> Method:
    """The entry of this name; a misspelt one suggests the nearest."""
    known = methods()
    if not isinstance(name, str):
        raise UsageError(f"a method is called by a text such as 'pdcl', not {name!r}")
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"there is no method {name!r}.{hint} Known: {', '.join(known)}")
    return known[name]


def register(name: str, summary: str = "", **about: Any) -> Callable[[Kind], Kind]:
    """Make a learner class known by name to the command line, studies, resume and reports.

    ```python
    @pdcl.register("mine", summary="what it does", family="replay")
    @dataclass(eq=False)
    class Mine(pdcl.Learner): ...
    ```
    """

    def remember(kind: Kind) -> Kind:
        if name in _METHODS and _METHODS[name].target is not kind and not isinstance(_METHODS[name].target, type):
            raise UsageError(f"the name {name!r} belongs to {_METHODS[name].target}; register under another one")
        _METHODS[name] = Method(name, kind, summary or (kind.__doc__ or "").strip().split("\n")[0], **about)
        return kind

    return remember
