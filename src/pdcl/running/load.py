"""Load: a saved learner, as it was. The directory names a method by name, never code; the rest is handed in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from pdcl.errors import StateError, UsageError
from pdcl.given import path_of
from pdcl.lifelong.backbone import tensors_hash, unchanged
from pdcl.lifelong.learner import Learner
from pdcl.lifelong.lineage import Lineage
from pdcl.lifelong.save import KIND, spec_from_json, transform_from_json
from pdcl.methods.catalog import methods
from pdcl.networks.heads import widen
from pdcl.records.checkpoint import fitting
from pdcl.storage.serialize import from_parts
from pdcl.storage.vault import MANIFEST, PREVIOUS, Held, Vault
from pdcl.streams.table_reader import TableReader


def load(path: str | Path, *, learner: type[Learner] | None = None, **handed: Any) -> Learner:
    """The learner saved in this directory.

    handed: what was given as an object and can't be in a file: `network=build()`, `objective=`, `backbone=`,
    `transform=`; and `device=`. learner: its class, where it is neither ours nor registered.
    """
    place = path_of(path, "path")
    held = _read(place)
    with fitting(place):
        state = from_parts(held.parts)
        about = state["model"]
        options = _options(place, about, handed)
        transform = options.pop("transform", None)
        kind = learner or _class(about["learner"])
        found: Learner = kind(**effective(kind, options))
        found.learned_with = kind.gone(options)
        spec = spec_from_json(about["spec"], transform)
        if isinstance(found.network, nn.Module):
            _complete(found.network, about, state["learner"]["network"])
            _fit_head(found.network, state["learner"]["network"])
        found.prepare(spec)
        _freeze(found, about["frozen"])
        # Older states don't say beside each ε what was stated then; their options do.
        state["learner"]["method"].setdefault("stated", about["options"].get("tolerance"))
        found.load_state_dict(state["learner"])
        found.lineage = Lineage.from_state(state["lineage"])
        found.promises = found.lineage.promises
        found.table = TableReader.from_json(about.get("table"))
        found.reading, found.backbone_hash = transform_from_json(about["reading"], transform), about["backbone"]
        unchanged(found)
        _check_targets(found)
        found.home = place
    return found


def _check_targets(learner: Learner) -> None:
    """Stored classes are outputs of the network: a damaged one would fail only when it is replayed."""
    store, spec = learner.store, learner.spec
    if store is None or spec is None or spec.kind != "classification" or not len(store):
        return
    y = store["y"]
    if int(y.min()) < 0 or int(y.max()) >= spec.outputs:
        raise UsageError(f"memory holds class {int(y.max())}, and the network has {spec.outputs} outputs")


def _read(place: Path) -> Held:
    if not place.is_dir():
        raise StateError(f"{place}: there is no such directory", place)
    try:
        return Vault(place, KIND).read(fall_back=False)
    except StateError as error:
        if (place / PREVIOUS / MANIFEST).is_file():
            raise StateError(f"{error}. The state before it: pdcl.load({str(place / PREVIOUS)!r})", place) from error
        raise


def _options(place: Path, about: dict[str, Any], handed: dict[str, Any]) -> dict[str, Any]:
    missing = [name for name in about["handed"] if name not in handed]
    if missing:
        asked = ", ".join(f"{name}=…" for name in missing)
        raise UsageError(f"{place} was made with objects that no file can hold; hand them in: pdcl.load(…, {asked})")
    return {**about["options"], **handed}


def effective(kind: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Options of an older state as they worked then: without those that had no effect, which a learner refuses now,
    and with the former value of those that it doesn't name yet."""
    options = {**kind.former, **kind.translated(options)}
    idle = kind.without_effect(options)
    return {name: value for name, value in options.items() if name not in idle}


def _class(name: str) -> Any:
    for method in methods().values():
        target = method.target
        if (target.partition(":")[2] if isinstance(target, str) else target.__name__) == name:
            return method.load()
    raise UsageError(f"no known method is a {name!r}; import what registers it, or hand it in: pdcl.load(…, learner=…)")


def _complete(network: nn.Module, about: dict[str, Any], saved: dict[str, Any]) -> None:
    """Parameters that were left out on saving are those of the network handed in, if they are the very same."""
    if "left_out" in about:
        left_out = {name: p.detach() for name, p in network.named_parameters() if name in about["frozen"]}
        if tensors_hash(left_out) != about["left_out"]:
            raise UsageError(
                "it was saved without the parameters that don't learn, and those of the network handed in are others; "
                "hand in the pretrained network that it was made with"
            )
        saved |= left_out


def _fit_head(network: nn.Module, saved: dict[str, Any]) -> None:
    """A module handed in as it began gets the outputs that the saved one has grown."""
    own = network.state_dict()
    layers = [(name, layer) for name, layer in network.named_modules() if isinstance(layer, nn.Linear)]
    if layers and own.keys() == saved.keys():
        name, last = layers[-1]
        rows = len(saved[f"{name}.weight"])
        if rows > last.out_features:
            widen(network, rows, last.out_features)


def _freeze(learner: Learner, frozen: list[str]) -> None:
    for name, parameter in learner.model.named_parameters():
        parameter.requires_grad_(name not in frozen)
