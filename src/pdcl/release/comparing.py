"""`pdcl.compare`: two logs of the same items, judged against stated limits. Any models, any framework, no torch.

Items are paired by task and id. Right or wrong is counted: newly wrong and newly right items give exact bounds of the
change. Scores and means over several answers are judged by betting. Both are those of `pdcl.gate`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.errors import UsageError
from pdcl.given import path_of, short
from pdcl.limits.limits import Limits, as_limits, describe_limits
from pdcl.limits.tolerance import Fixed, Rise, Tolerance, describe
from pdcl.logs.log import Key, Log, digest
from pdcl.logs.reading import Form, Reader, read_log
from pdcl.release.changes import change_of
from pdcl.release.deciding import PASS, UNDECIDED, Judged, Row, decide
from pdcl.release.estimates import estimate_of
from pdcl.release.leaning import leaning
from pdcl.release.ledger import Ledger
from pdcl.release.ledgers import others_of, tell
from pdcl.release.looks import Sample
from pdcl.release.noise import noise_floor
from pdcl.release.outcome import Verdict
from pdcl.release.output import number, title
from pdcl.release.plan_file import Plan, changed, read_plan
from pdcl.storage.cache import LEDGER, ledgers_directory

Floats = npt.NDArray[np.float64]
SHOWN = 3


def compare(
    before: Any,
    after: Any,
    limits: Any,
    *,
    by: str | None = None,
    groups: str | None = None,
    rerun: Any = None,
    columns: Mapping[str, str] | None = None,
    metric: str | None = None,
    reader: Reader | None = None,
    unpaired: str = "undecided",
    confidence: float | None = None,
    looks: int | None = None,
    ledger: str | Path | None = None,
    evidence: str | Path | None = None,
) -> Verdict:
    """PASS, FAIL or UNDECIDED for the model of the logs `after`, compared with that of `before` on the same items.

    before, after, rerun: a file or directory; formats: docs/logs.md. limits: what a user writes ("math:+2pt, *:+3pt"),
    a mapping, or the path of a plan (limits.toml), whose ledger lies beside it. by: "task", a column, or "all".
    groups: a column whose items aren't independent, such as a document. rerun: the model of `before` once more; how
    often its outcomes flip by themselves is said beside the change. columns: names by role (id, score, task, epoch,
    prompt). metric: which of several scores. reader: a function from a file to rows. unpaired: with "drop", items that
    only one side has don't forbid a PASS. confidence, looks, ledger, evidence: as in `pdcl.gate`.
    """
    if unpaired not in ("undecided", "drop"):
        raise UsageError(f"unpaired={short(unpaired)} must be undecided or drop")
    form = Form(dict(columns or {}), metric, reader)
    plan, stated = stated_of(limits)
    by = by or (plan.by if plan else None) or "task"
    confidence = confidence if plan is None or confidence is not None else plan.confidence
    looks = looks if plan is None or looks is not None else plan.looks
    place = None if evidence is None else path_of(evidence, "evidence")
    if place is not None:
        from pdcl.release.log_evidence import check_place

        check_place(place)
    case = Compared.of(read_log(before, form, "before"), read_log(after, form, "after"), stated, by, groups)
    book = Ledger(ledger or beside(plan, before))
    floor = None if rerun is None else noise_floor(case, read_log(rerun, form, "rerun"))
    verdict = case.judged(book, confidence, looks, plan, unpaired == "drop", [] if floor is None else [floor])
    if place is not None:
        from pdcl.release.log_evidence import write_log_evidence

        write_log_evidence(case, verdict, book, plan, place)
    return verdict


@dataclass(frozen=True)
class Compared:
    """Paired items in the order of their hashes, so that how logs lie can't move a p-value. Errors are 1 − score."""

    keys: list[Key]
    old: Floats
    new: Floats
    before: Log
    after: Log
    stated: Limits
    by: str
    groups: str | None
    lone: dict[str, list[Key]]

    @classmethod
    def of(cls, before: Log, after: Log, stated: Limits, by: str, groups: str | None) -> Compared:
        both = before.items.keys() & after.items.keys()
        other = {key for key in both if _differ(before.items[key].prompt, after.items[key].prompt)}
        lone = {
            "only before has": sorted(before.items.keys() - both),
            "only after has": sorted(after.items.keys() - both),
            "have other prompts under one id": sorted(other),
        }
        keys = sorted(both - other, key=lambda key: digest(list(key)))
        if not keys:
            raise UsageError(f"the two logs share no item; {_told(lone)}")
        old, new = (np.array([1 - log.items[key].score for key in keys]) for log in (before, after))
        return cls(keys, old, new, before, after, stated, by, groups, {k: v for k, v in lone.items() if v})

    def column(self, name: str) -> npt.NDArray[Any]:
        """The value of each item, by task or by a column of the log before."""
        if name == "all":
            return np.full(len(self.keys), "all")
        if name == "task":
            return np.array([key[0] for key in self.keys])
        values = [self.before.items[key].columns.get(name) for key in self.keys]
        if None in values:
            there = sorted({each for key in self.keys for each in self.before.items[key].columns})
            raise UsageError(f"not every item has a column {name!r}; columns: {', '.join(['task', *there])}")
        return np.array(values)

    def rows(self) -> tuple[list[Row], list[str]]:
        """One row per group with a limit, and the groups without one."""
        clusters = None if self.groups is None else self.column(self.groups)
        made, free = [], []
        values = self.column(self.by)
        names = dict.fromkeys(sorted(values.tolist()))
        for name in names:
            limit = self.stated.of(str(name), 0)
            if limit is None:
                free.append(str(name))
            else:
                made.append(self._row(str(name), limit, values == name, clusters))
        for (column, value), limit in self.stated.segments.items():
            made.append(self._row(f"{column}={value}", limit, self.column(column) == value, clusters))
        if strange := [name for name in self.stated.tasks if name not in names]:
            raise UsageError(f"a limit is given for {strange[0]!r}, which is no {self.by} here: {', '.join(names)}")
        if not made:
            raise UsageError(f"no limit is on any {self.by} here: {', '.join(names)}")
        return made, free

    def mask(self, group: str) -> npt.NDArray[np.bool_]:
        """Which items a row is about."""
        for column, value in self.stated.segments:
            if group == f"{column}={value}":
                return np.asarray(self.column(column) == value)
        return np.asarray(self.column(self.by) == group)

    def _row(self, name: str, limit: Tolerance, mask: npt.NDArray[np.bool_], clusters: Any) -> Row:
        if not mask.any():
            raise UsageError(f"a limit is given for {name}, and no item is of it")
        new, old = self.new[mask], self.old[mask]
        who = None if clusters is None else clusters[mask]
        rates = float(old.mean()), float(new.mean())
        if isinstance(limit, Rise):
            return Row("drop", name, limit.floor, change_of(new, old, who), int(mask.sum()), *rates)
        return Row("error", name, limit.of(0), estimate_of(new, who), int(mask.sum()), *rates)

    def judged(
        self,
        ledger: Ledger,
        confidence: float | None,
        looks: int | None,
        plan: Plan | None,
        drop: bool,
        floor: list[dict[str, Any]],
    ) -> Verdict:
        made, free = self.rows()
        question = self.question(drop)
        sample = Sample(self.marks, question["audit"])
        others, unread = others_of(ledger)
        look = ledger.look(question, looks, confidence, sample, others, None if plan is None else plan.content)
        decision = decide(made, look.level)
        if self.lone and not drop and decision.verdict == PASS:
            decision = replace(decision, verdict=UNDECIDED)
        answers = [[row.criterion, row.group, row.verdict] for row in decision.rows]
        ledger.note(look, {"verdict": decision.verdict, "rows": answers})
        shelf = Ledger(ledgers_directory() / f"logs-{question['audit'][:32]}" / LEDGER)
        untold = tell(shelf, ledger, ledger.past(sample))
        notes = [*self.notes(free, drop), *(each["text"] for each in floor), *(changed(ledger, plan) if plan else [])]
        notes += [f"Ledger: {ledger.path}", *unread, *(f"{each} can't be written." for each in untold)]
        help_ = {title(row): advice(row, look.looks) for row in decision.rows if row.verdict != PASS}
        more = {"noise": floor[0]} if floor else {}
        return Verdict(decision, look, question, notes, help_, more=more)

    def notes(self, free: list[str], drop: bool) -> list[str]:
        lines = [f"{len(self.keys):,} items paired by task and id; an item counts once, whatever its answers."]
        if most := max(self.before.items[key].answers for key in self.keys):
            lines += [f"Up to {most} answers an item: their mean counts."] if most > 1 else []
        what = "independent items" if self.groups is None else f"that groups ({self.groups}) are independent"
        lines.append(f"Assumes {what}.")
        if self.lone:
            lines.append(f"{'Left out' if drop else 'UNDECIDED at best'}: {_told(self.lone)}.")
        return lines + ([f"Not judged, as no limit is stated: {', '.join(free)}."] if free else [])

    def question(self, drop: bool) -> dict[str, Any]:
        return {
            "before": self.before.hash,
            "after": self.after.hash,
            "audit": digest([list(key) for key in sorted(self.keys)]),
            "samples": len(self.keys),
            "limits": describe_limits(self.stated),
            "by": self.by,
            "groups": self.groups,
            "unpaired": {what: len(keys) for what, keys in self.lone.items()},
            "drop": drop,
        }

    @property
    def marks(self) -> npt.NDArray[np.int64]:
        """48 bits of a hash per item, as ledgers hold them."""
        found = [hashlib.sha256(repr((*key, self.before.items[key].prompt)).encode()).digest()[:6] for key in self.keys]
        return np.unique([int.from_bytes(each, "little") for each in found]).astype(np.int64)


def advice(row: Judged, looks: int) -> list[str]:
    """What can be done about a row that doesn't pass."""
    lines = [leaning(row)] if row.verdict == UNDECIDED else []
    if row.loosest is not None and row.loosest > row.limit:
        lines.append(f"the loosest limit that would pass: {number(row, row.loosest)}")
    if row.verdict != UNDECIDED:
        return lines
    if row.needed is None:
        return [*lines, "no number of further items would decide it: the estimate sits on the limit"]
    lines.append(f"about {row.needed:,} further items would decide it, if they turn out like these {row.units:,}")
    if looks > 1:
        lines.append(f"where no more items exist: plan fewer looks at the next set (here {looks}), or a looser limit")
    return lines


def stated_of(limits: Any) -> tuple[Plan | None, Limits]:
    if isinstance(limits, Path) or (isinstance(limits, str) and limits.endswith(".toml")):
        plan = read_plan(path_of(limits, "limits"))
        return plan, _checked(plan.limits)
    try:
        return None, _checked(as_limits(limits))
    except (ValueError, TypeError) as error:
        raise error if isinstance(error, UsageError) else UsageError(f"limits: {error}") from None


def _checked(limits: Limits) -> Limits:
    every = [*limits.tasks.items(), *((f"{c}={v}", t) for (c, v), t in limits.segments.items()), ("*", limits.rest)]
    for name, limit in every:
        right = isinstance(limit, Rise) or (isinstance(limit, Fixed) and limit.unit == "error" and 0 < limit.value < 1)
        if limit is not None and not right:
            raise UsageError(
                f"the limit {describe(limit)} of {name} is on a loss; logs hold scores: write +2pt for two points more "
                "error than before, or 5% for an error of at most 5 %"
            )
    if limits.new is not None:
        raise UsageError("a limit of the new task has no effect on logs: name the group")
    return limits


def beside(plan: Plan | None, before: Any) -> Path:
    if plan is not None:
        return plan.path.with_name(f"{plan.path.stem}.{LEDGER}")
    if isinstance(before, Log):
        raise UsageError("give ledger=: where looks are written, since logs in memory lie nowhere")
    path = Path(before)
    return path / LEDGER if path.is_dir() else path.with_name(f"{path.stem}.{LEDGER}")


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _told(lone: Mapping[str, list[Key]]) -> str:
    parts = []
    for what, keys in lone.items():
        first = ", ".join("/".join(key) for key in keys[:SHOWN]) + (" …" if len(keys) > SHOWN else "")
        parts += [f"{len(keys):,} items {what} ({first})"] if keys else []
    return "; ".join(parts)
