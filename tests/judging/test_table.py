"""The table reads as designed, and comes back from JSON as it was."""

import json
import warnings

import pytest

from pdcl.errors import LimitBroken
from pdcl.judging.promise import Promise
from pdcl.judging.table import RISE, Promises
from pdcl.judging.verdicts import judge_task
from pdcl.limits.limit import Limit

TAKEN = "(5.0 points of error are old samples called new)"

DESIGNED = """\
task      limit            then     now (witnesses, 95 %)   verdict
legacy    +2pt → 12.1 %    10.1 %    9.4 % (7.9 – 11.6)     kept
2026-10   +2pt →  9.0 %     7.0 %    8.1 % (5.5 – 11.4)     undecided: 140 witnesses; about 520 would decide
2026-11   +2pt →  6.0 %     4.0 %    9.2 % (6.4 – 12.7)     BROKEN by 3.2 points (2.6 points of error are \
old samples called new); more memory (…), looser limit (…)
2026-12   new              –         7.8 %                  learned"""


def row(task="a", verdict="kept", **changes):
    usual = {
        "kind": "task", "written": "+2pt", "limit": 0.06, "unit": "error", "then": 0.04, "now": 0.05, "low": 0.03,
        "high": 0.055, "samples": 400, "paired": True,
    }  # fmt: skip
    return Promise(task=task, verdict=verdict, **(usual | changes))


def designed():
    advice = ("more memory (…)", "looser limit (…)")
    new = {"kind": "new", "written": None, "limit": 0.5, "then": None, "low": None, "high": None, "paired": False}
    return Promises(
        (
            row("legacy", limit=0.121, then=0.101, now=0.094, low=0.079, high=0.116),
            row(
                "2026-10", "undecided", limit=0.09, then=0.07, now=0.081, low=0.055, high=0.114, samples=140, wants=518
            ),
            row("2026-11", "BROKEN", now=0.092, low=0.064, high=0.127, over=3.2, taken_by_new=0.026, advice=advice),
            row("2026-12", "learned", now=0.078, **new),
        )
    )


def test_the_table_is_printed_as_designed():
    lines = str(designed()).splitlines()
    assert "\n".join(lines[:5]) == DESIGNED
    assert lines[5:] == [RISE]


def test_rows_are_sorted_by_what_became_of_them():
    table = Promises((*designed(), row("n", "NOT LEARNED"), row("w", "no witnesses")))
    assert [r.task for r in table.kept] == ["legacy", "2026-12"]
    assert [r.task for r in table.broken] == ["2026-11", "n"]
    assert [r.task for r in table.undecided] == ["2026-10", "w"]
    assert len(table) == 6
    assert table[0].task == "legacy"


def test_json_gives_back_the_same_table():
    table = designed()
    assert Promises.from_json(json.loads(json.dumps(table.as_json()))) == table


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (row(verdict="BROKEN", over=3.2), "BROKEN by 3.2 points"),
        (row(verdict="BROKEN", over=3.2, taken_by_new=0.05), f"BROKEN by 3.2 points {TAKEN}"),
        (row(verdict="BROKEN", over=0.02, unit="loss"), "BROKEN by 0.02"),
        (row(verdict="undecided", wants=None), "undecided: 400 witnesses; too near the limit to tell"),
        (row(verdict="undecided", wants=13370), "undecided: 400 witnesses; about 13,000 would decide"),
        (row(verdict="undecided", wants=7), "undecided: 400 witnesses; about 7 would decide"),
        (row(verdict="NOT LEARNED", over=24.0), "NOT LEARNED: 24.0 points above its limit"),
        (row(verdict="NOT LEARNED", over=9.0, written=None),
         "NOT LEARNED: 9.0 points above 6.0 %, half-way from chance"),
        (row(steered=True), "kept (steered on these)"),
        (row(verdict="undecided", wants=900, steered=True),
         "undecided: 400 samples; about 900 would decide (steered on these)"),
        (row(verdict="no witnesses", samples=0), "undecided: no witnesses; more memory, or witness=, gives some"),
    ],
)  # fmt: skip
def test_a_verdict_is_a_sentence(given, says):
    assert given.sentence == says


def test_absolute_limits_losses_and_missing_values_have_their_place():
    plain = {"paired": False, "then": None}
    loss = {"unit": "loss", "written": "1.1x", "limit": 0.055, "then": 0.05, "now": 0.052, "low": 0.05, "high": 0.0541}
    missing = {"limit": None, "then": None, "now": None, "low": None, "high": None}
    table = Promises((row(written="5%", **plain), row("b", **loss), row("c", "no witnesses", **missing)), level=0.1)
    assert str(table).splitlines()[:4] == [
        "task   limit            then     now (witnesses, 90 %)    verdict",
        "a      5%               –         5.0 % (3.0 – 5.5)       kept",
        "b      1.1x →  0.055     0.050    0.052 (0.050 – 0.054)   kept",
        "c      +2pt             –        –                        "
        "undecided: no witnesses; more memory, or witness=, gives some",
    ]


def test_a_table_in_a_notebook_shows_names_as_they_are():
    shown = Promises((row("<b>", "kept"),))._repr_html_()
    assert "<td>&lt;b&gt;</td>" in shown
    assert shown.count("<tr>") == 2


def test_broken_limits_warn_at_the_line_that_asked():
    with pytest.warns(LimitBroken, match=r"2026-11: BROKEN by 3\.2 points") as caught:
        designed().warn()
    assert caught[0].filename == __file__
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Promises((row(),)).warn()


def test_no_rows_are_a_table_too():
    assert str(Promises(())).startswith("task")


def test_where_nothing_was_kept_apart_the_heading_says_samples():
    steered = judge_task("a", Limit("5%", value=0.05), None, [0] * 90, steered=True)
    assert "now (samples, 95 %)" in str(Promises((steered,)))
