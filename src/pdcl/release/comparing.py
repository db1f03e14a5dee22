"""`pdcl.compare`: two logs of the same items, judged against stated limits. Any models, any framework, no torch.

Items are paired by task and id. Right or wrong is counted: newly wrong and newly right items give exact bounds of the
change. Scores and means over several answers are judged by betting. Both are those of `pdcl.gate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pdcl.errors import UsageError
from pdcl.given import path_of, short
from pdcl.limits.limits import Limits, as_limits
from pdcl.limits.tolerance import Fixed, Rise, describe
from pdcl.logs.log import Log
from pdcl.logs.reading import Form, Reader, read_log
from pdcl.release.deciding import PASS, UNDECIDED, decide
from pdcl.release.leaning import about_row
from pdcl.release.ledger import Ledger
from pdcl.release.ledgers import others_of, tell
from pdcl.release.looks import LedgerError, Sample
from pdcl.release.noise import noise_floor
from pdcl.release.outcome import Verdict
from pdcl.release.output import title
from pdcl.release.pairing import APART, Compared
from pdcl.release.plan_file import Plan, read_plan, remarks
from pdcl.storage.cache import LEDGER, ledgers_directory


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
    check_apart({"before": before, "after": after, "rerun": rerun})
    case = Compared.of(read_log(before, form, "before"), read_log(after, form, "after"), stated, by, groups)
    book = Ledger(ledger or beside(plan, before))
    floor = None if rerun is None else noise_floor(case, read_log(rerun, form, "rerun"))
    verdict = judged(case, book, confidence, looks, plan, unpaired == "drop", floor)
    if place is not None:
        from pdcl.release.log_evidence import write_log_evidence

        write_log_evidence(case, verdict, book, plan, place)
    return verdict


def judged(
    case: Compared,
    ledger: Ledger,
    confidence: float | None,
    looks: int | None,
    plan: Plan | None,
    drop: bool,
    floor: dict[str, Any] | None,
) -> Verdict:
    question = case.question(drop)
    sample = Sample(case.marks, question["audit"])
    others, unread = others_of(ledger)
    try:
        look = ledger.look(question, looks, confidence, sample, others, None if plan is None else plan.content)
    except LedgerError as error:
        if all(case.prompt(key) is not None for key in case.keys):
            raise
        raise LedgerError(
            f"{error}. Items without prompts are known by task and id: if these are others, {APART}"
        ) from None
    decision = decide([row for row, _ in case.made], look.level)
    if case.lone and not drop and decision.verdict == PASS:
        decision = replace(decision, verdict=UNDECIDED)
    answers = [[row.criterion, row.group, row.verdict] for row in decision.rows]
    ledger.note(look, {"verdict": decision.verdict, "rows": answers})
    shelf = Ledger(ledgers_directory() / f"logs-{question['audit'][:32]}" / LEDGER)
    untold = tell(shelf, ledger, ledger.past(sample), None if plan is None else plan.content)
    notes = case.notes(drop) + ([] if floor is None else [floor["text"]])
    notes += remarks(plan, case.stated, ledger.stated(sample, others))
    notes += [f"Ledger: {ledger.path}", *unread, *(f"{each} can't be written." for each in untold)]
    help_ = {title(row): about_row(row, look.looks) for row in decision.rows if row.verdict != PASS}
    return Verdict(decision, look, question, notes, help_, more={} if floor is None else {"noise": floor})


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


def check_apart(given: Mapping[str, Any]) -> None:
    """Raise where one log is given twice: a comparison with itself finds no change."""
    paths = [(side, Path(each)) for side, each in given.items() if isinstance(each, str | Path) and Path(each).exists()]
    for place, (side, path) in enumerate(paths):
        for other, earlier in paths[:place]:
            if path.samefile(earlier):
                raise UsageError(f"{side}={path} is the very log that {other} names; give the log of another run")
