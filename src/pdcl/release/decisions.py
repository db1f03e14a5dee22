"""What was decided about an update, and why: in the lineage of the model, and as the answer of `pdcl.update`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pdcl.errors import UsageError
from pdcl.judging.promise import BROKEN
from pdcl.judging.table import Promises
from pdcl.lifelong.entry import LEARNED, REFUSED, ROLLED_BACK
from pdcl.lifelong.lineage import Lineage
from pdcl.printable import printable
from pdcl.release.covering import Coverage
from pdcl.release.deciding import FAIL, PASS, UNDECIDED, Judged
from pdcl.release.outcome import CODES, Verdict
from pdcl.release.output import number

PROMOTED = "promoted"
# Of many groups those that are worst off stay in the lineage.
ROWS = 12


@dataclass(frozen=True)
class Update:
    """What became of an update. `bool(update)` is whether the model in use is the updated one.

    decision: promoted, refused, or rolled back (since). verdict: of the gate, None where it wasn't asked or where the
    decision was made before (`repeated`). changed: limits that this call states otherwise than
    that decision. record: what the lineage holds of it.
    """

    name: str
    decision: str
    why: str
    record: dict[str, Any] = field(repr=False)
    verdict: Verdict | None = field(default=None, repr=False)
    repeated: bool = False
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.decision == PROMOTED

    @property
    def exit_code(self) -> int:
        """0 promoted, 1 refused for a broken limit, 2 refused since the data can't tell."""
        return 0 if self else CODES.get(self.record.get("verdict", FAIL), 1) or 1

    def __str__(self) -> str:
        before = " (decided before: same name, same data)" if self.repeated else ""
        return printable(" ".join([f"{self.name}: {self.decision}{before}. {self.why}", *self.remarks]))

    @property
    def remarks(self) -> list[str]:
        """What the reason alone doesn't say: limits that changed."""
        lines = (
            [f"Decided under other limits ({', '.join(self.changed)}); --again decides anew."] if self.changed else []
        )
        moved = self.record.get("changed")
        return lines + ([f"Limits changed since the update before: {', '.join(moved)}."] if moved else [])

    @property
    def undecided(self) -> bool:
        """Whether the gate couldn't tell."""
        return self.record.get("verdict") == UNDECIDED


def gated(verdict: Verdict) -> dict[str, Any]:
    """What the lineage keeps of the gate's answer."""
    worst = sorted(verdict.rows, key=lambda row: (row.verdict == PASS, row.limit - row.estimate))[:ROWS]
    return {
        "verdict": verdict.verdict,
        "why": _reason(verdict),
        "look": [verdict.look.number, verdict.look.looks],
        "rows": [_row(row) for row in worst],
    }


def _row(row: Judged) -> dict[str, Any]:
    kept = ("criterion", "group", "limit", "estimate", "lower", "upper", "verdict", "samples", "before", "now")
    return {name: getattr(row, name) for name in kept}


def _reason(verdict: Verdict) -> str:
    if verdict.verdict == PASS:
        # Whether the look was taken before a crash or after it is no part of the reason.
        first = replace(verdict, look=replace(verdict.look, repeated=False))
        return f"The gate says PASS, {first.confidence_text}."
    open_ = [row for row in verdict.rows if row.verdict != PASS]
    # Against the old model and since it was learned may be the same numbers.
    named = list(dict.fromkeys(f"{r.group} {number(r, r.estimate)} of {number(r, r.limit)}" for r in open_))
    told = "; ".join([*named[:3], *Coverage.from_json(verdict.question).reasons[:3]])
    return f"The gate says {verdict.verdict}: {told}."


def broken(promises: Promises | None) -> dict[str, Any]:
    """What the lineage keeps where guards and witnesses show a broken limit, so that the gate isn't asked."""
    rows = [row for row in promises or () if row.verdict == BROKEN]
    return {"verdict": FAIL, "why": f"A limit is broken: {rows[0].task} {rows[0].sentence}.", "look": None, "rows": []}


def ungated(promises: Promises | None) -> dict[str, Any]:
    """What the lineage keeps where no gate was asked: what the model's own limits came to, on its witnesses."""
    if not promises:
        why = "No gate was asked and no limit is stated, so nothing was judged; state one: --audit DIR --max-drop 0.02."
    else:
        counts = f"{len(promises.kept)} kept, {len(promises.undecided)} undecided, none broken"
        why = f"No gate was asked; the model's own limits, on its witnesses: {counts}."
    return {"verdict": None, "why": why, "look": None, "rows": []}


def reason_of(accept_undecided: bool, why: str | None) -> str | None:
    """Why an undecided update is to be accepted; both are given, or none."""
    if not accept_undecided:
        if why is not None:
            raise UsageError("why has no effect without accept_undecided")
        return None
    if not isinstance(why, str) or not why.strip():
        raise UsageError("accept_undecided needs why: the reason stands in lineage, ledger and report")
    return why.strip()


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Limits that stand otherwise, as `max_drop: 0.02 → 0.05`."""
    names = [name for name in dict.fromkeys([*then, *now]) if name not in ("looks", "confidence")]
    moved = [name for name in names if then.get(name) != now.get(name)]
    return tuple(f"{name}: {then.get(name, 'none')} → {now.get(name, 'none')}" for name in moved)


def changed_since(lineage: Lineage, now: Mapping[str, Any]) -> list[str]:
    """What is asked otherwise than of the newest update."""
    for entry in reversed(lineage.entries):
        record = entry["result"].get("update")
        if record is not None and entry["how"] in (LEARNED, REFUSED):
            return list(changes(record["limits"], now))
    return []


def decided(lineage: Lineage, name: str, data: str) -> Update | None:
    """The newest decision about this name and this data. Other data under a name that was learned is refused."""
    for entry in reversed(lineage.entries):
        record = entry["result"].get("update")
        if record is not None and record["data"] == data and record["name"] == name:
            decision = {LEARNED: PROMOTED, REFUSED: REFUSED}.get(entry["how"], ROLLED_BACK)
            return Update(name, decision, record["why"], record, repeated=True)
    for entry in lineage.tasks:
        record = entry["result"].get("update") or {}
        if str(entry["name"]) == name:
            raise UsageError(f"the model has learned a task {name!r} from other data; choose another name")
        if record.get("data") == data:
            raise UsageError(f"the model has learned this very data as {entry['name']!r}; nothing is left to learn")
    return None
