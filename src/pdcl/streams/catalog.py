"""Which streams there are. Nothing heavy is imported until one of them is loaded."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from pdcl.errors import UsageError
from pdcl.laboratory import lab

if TYPE_CHECKING:
    from pdcl.streams.task import Stream

Loader = Callable[..., "Stream"]
GROUP = "pdcl.streams"


class UnknownStream(UsageError, LookupError):
    """A name that no stream has."""


@dataclass(frozen=True)
class Entry:
    """A stream as a list shows it. `loader` is "module:function"; `size` the bytes to download."""

    name: str
    loader: str
    summary: str
    tasks: int | None = None
    classes: int | None = None
    regime: str = "offline"
    size: int = 0
    licence: str = ""
    needs_download: bool = False
    reference: str = ""

    def resolve(self) -> Loader:
        """The function that makes the stream."""
        module, _, function = self.loader.partition(":")
        loader: Loader = getattr(importlib.import_module(module), function)
        return loader


_OWN = (
    Entry(
        "digits",
        "pdcl.streams.digits:load",
        "scikit-learn's 1,797 handwritten digits, 8×8; embedded",
        tasks=5,
        classes=10,
        licence="CC BY 4.0",
        reference="E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI 1998",
    ),
)


def built_in() -> tuple[Entry, ...]:
    """Our own streams, then the benchmarks of the lab."""
    found: tuple[Entry, ...] = (*_OWN, *lab("benchmarks").BENCHMARKS)
    return found


_registered: dict[str, Loader] = {}


def register_stream(name: str) -> Callable[[Loader], Loader]:
    """Make a function that returns a `Stream` known by `name`; its parameters are the stream's options."""

    def remember(loader: Loader) -> Loader:
        if name in {entry.name for entry in built_in()}:
            raise UsageError(f"{name!r} is a built-in stream; choose another name")
        _registered[name] = loader
        return loader

    return remember


def catalog() -> list[Entry]:
    """Every known stream: built in, registered in this process, and from installed packages."""
    own = [
        Entry(name, f"{loader.__module__}:{getattr(loader, '__qualname__', name)}", _first_line(loader))
        for name, loader in _registered.items()
    ]
    return [*built_in(), *own, *_installed(skip={*_registered, *(entry.name for entry in built_in())})]


def load(name: str, **options: Any) -> Stream:
    """The stream of this name. Unknown names and options are errors that suggest the nearest one.

    Every stream has `held_out` (with `held_out_seed`): that share of training data in place of test data, and the
    options of `derive` (noise, permuted, …), except those that its loader has under the same name.
    """
    derivations = lab("benchmarks.derivation").OPTIONS
    loader = find(name)
    share = options.pop("held_out", None)
    seed = 0 if share is None else options.pop("held_out_seed", 0)
    known = inspect.signature(loader).parameters
    derived = {option: options.pop(option) for option in derivations if option in options and option not in known}
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        for option in options:
            if option not in known:
                there = {*known, *derivations, "held_out"}
                raise UsageError(f"stream {name!r} has no option {option!r}{_nearest(option, there)}")
    stream = loader(**options)
    stream = stream if share is None else stream.for_tuning(share, seed)
    return stream.derive(**derived) if derived else stream


def find(name: str) -> Loader:
    """The function that makes the stream of this name."""
    if not isinstance(name, str):
        raise UnknownStream(f"a stream is called by a text such as 'digits', not {name!r}")
    if name in _registered:
        return _registered[name]
    entries = {entry.name: entry for entry in catalog()}
    if name not in entries:
        raise UnknownStream(f"no stream is called {name!r}{_nearest(name, entries)}")
    return entries[name].resolve()


def _installed(skip: set[str]) -> list[Entry]:
    points = entry_points(group=GROUP)
    return [Entry(point.name, point.value, "from an installed package") for point in points if point.name not in skip]


def _nearest(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"{hint} There are: {', '.join(names) or 'none'}"


def _first_line(loader: Loader) -> str:
    return (inspect.getdoc(loader) or "registered here").splitlines()[0]
