"""The methods by name: what each is, without importing any of them (or torch)."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from pdcl.errors import UsageError

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

_BUILT_IN = [
    Method("finetune", "pdcl.learners.plain:Finetune", "plain training, forgets", "bounds", False, False),
    Method("joint", "pdcl.learners.plain:Joint", "retrains on everything seen", "bounds", False, False),
    Method(
        "er", "pdcl.learners.replay:ER", "replay from a reservoir", "replay", True, False,
        "Chaudhry et al., On Tiny Episodic Memories, 2019",
    ),
    Method(
        "er-ring", "pdcl.learners.replay:ERRing", "replay from one ring per class", "replay", True, True,
        "Chaudhry et al., On Tiny Episodic Memories, 2019",
    ),
    Method(
        "er-ace", "pdcl.learners.er_ace:ERACE", "replay; new classes don't push old ones away", "replay", True, False,
        "Caccia et al., New Insights on Reducing Abrupt Representation Change, 2022",
    ),
    Method(
        "der", "pdcl.learners.der:DER", "replay of stored outputs", "replay", True, False,
        "Buzzega et al., Dark Experience for General Continual Learning, 2020",
    ),
    Method(
        "derpp", "pdcl.learners.derpp:DERpp", "replay of stored outputs and labels", "replay", True, False,
        "Buzzega et al., Dark Experience for General Continual Learning, 2020",
    ),
    Method(
        "xder", "pdcl.learners.xder:XDER", "stored outputs revised, future heads prepared", "replay", True, True,
        "Boschini et al., Class-Incremental Continual Learning into the eXtended DER-verse, 2022",
    ),
    Method(
        "icarl", "pdcl.learners.icarl:ICaRL", "exemplars by herding, nearest class mean", "replay", True, True,
        "Rebuffi et al., iCaRL, 2017",
    ),
    Method(
        "ncm", "pdcl.learners.ncm:NCM", "nearest class mean of frozen features", "features", False, False,
        "Mensink et al., Distance-Based Image Classification, 2013",
    ),
    Method(
        "slda", "pdcl.learners.slda:SLDA", "streaming discriminant analysis of frozen features", "features", False,
        False, "Hayes, Kanan, Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis, 2020",
    ),
    Method(
        "exact", "pdcl.learners.exact:Exact", "fixed features, head and limits in closed form", "features", True, True,
        "this project; Zhuang et al., ACIL: Analytic Class-Incremental Learning, 2022 (without limits)",
    ),
    Method(
        "gss", "pdcl.learners.gss:GSS", "replay of samples with diverse gradients", "replay", True, False,
        "Aljundi et al., Gradient Based Sample Selection for Online Continual Learning, 2019",
    ),
    Method(
        "agem", "pdcl.learners.agem:AGEM", "gradient projected against a replayed one", "projection", True, True,
        "Chaudhry et al., Efficient Lifelong Learning with A-GEM, 2019",
    ),
    Method(
        "gem", "pdcl.learners.gem:GEM", "gradient projected against each past task's", "projection", True, True,
        "Lopez-Paz, Ranzato, Gradient Episodic Memory, 2017",
    ),
    Method(
        "ewc", "pdcl.learners.ewc:EWC", "important weights are held, by Fisher information", "regularisation", False,
        True, "Kirkpatrick et al., Overcoming catastrophic forgetting, 2017; Schwarz et al., 2018",
    ),
    Method(
        "si", "pdcl.learners.si:SI", "important weights are held, by path integral", "regularisation", False, True,
        "Zenke et al., Continual Learning Through Synaptic Intelligence, 2017",
    ),
    Method(
        "lwf", "pdcl.learners.lwf:LwF", "distils its former self on new data", "regularisation", False, True,
        "Li, Hoiem, Learning without Forgetting, 2016",
    ),
    Method(
        "even", "pdcl.learners.pdcl:PDCL", "replay, every past task at equal weight", "primal-dual", True, True, PAPER,
        {"partition": "uniform", "selection": "uniform", "level": "task", "dual": "frozen"},
    ),
    Method(
        "pdcl0", "pdcl.learners.pdcl:PDCL", "replay weighed by duals", "primal-dual", True, True, PAPER,
        {"partition": "uniform", "selection": "uniform", "level": "task"},
    ),
    Method(
        "pdcl", "pdcl.learners.pdcl:PDCL", "+ memory divided by duals", "primal-dual", True, True, PAPER,
        {"selection": "uniform", "level": "task"},
    ),
    Method(
        "pdcl-s", "pdcl.learners.pdcl:PDCL", "duals per sample choose what is kept", "primal-dual", True, True, PAPER,
        {"selection": "dual", "level": "sample"},
    ),
]  # fmt: skip

_METHODS = {method.name: method for method in _BUILT_IN}
_outside_read = False


def methods() -> dict[str, Method]:
    """All known methods: ours, those of installed plug-ins, those registered in this process."""
    global _outside_read
    if not _outside_read:
        _outside_read = True
        for point in entry_points(group="pdcl.learners"):
            _METHODS.setdefault(point.name, Method(point.name, point.value, "a plug-in", "plug-in"))
    return _METHODS


def method(name: str) -> Method:
    """The entry of this name; a misspelt one suggests the nearest."""
    known = methods()
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
