"""Which other ledgers know of looks: those beside one, the user's, a model's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdcl.errors import Locked, StateError
from pdcl.release.ledger import Ledger
from pdcl.release.looks import LedgerError, Taken
from pdcl.storage.cache import LEDGER, ledgers_directory

# The ledger beside a saved model.
OWN = "looks.jsonl"


def others_of(ledger: Ledger, model: Path | None = None) -> tuple[list[Taken], list[str]]:
    """Looks that other ledgers know of: those beside this one, the user's, the model's; and what can't be read.

    To damage one of them is as good as to delete it, so that it is said and the others count.
    """
    beside = sorted(ledger.path.parent.glob(f"*{LEDGER}"))
    users = sorted(ledgers_directory().glob(f"*/{LEDGER}"))
    own = [] if model is None else [Ledger(model / OWN, stranger=True)]
    found, notes = list[Taken](), list[str]()
    for each in (*map(Ledger, beside), *map(Ledger, users), *own):
        if each.path.absolute() != ledger.path.absolute():
            try:
                found += each.taken()
            except (LedgerError, StateError) as error:
                notes.append(f"Looks that only this ledger knows of don't count, as it can't be read: {error}.")
    return found, notes


def tell(other: Ledger, ledger: Ledger, looks: list[Taken], stated: Mapping[str, Any] | None = None) -> list[str]:
    """Write looks, and the plan of the newest, into another ledger; its name, if it can't be written."""
    if other.path.absolute() == ledger.path.absolute():
        return []
    try:
        other.learn_of(looks, stated)
    except (LedgerError, StateError, Locked):
        return [str(other.path)]
    return []
