"""ε of every task so far: set when a task ends, moved for what-if, stated anew for a model that was saved."""

import math

import pytest

from pdcl.errors import UsageError
from pdcl.limits.tolerances import ToleranceChange, Tolerances, usual_partition


def learned(stated, *reached):
    """After tasks a, b, …, which reached this."""
    found = Tolerances(stated)
    found.names = list("abcd"[: len(reached)])
    found.set(reached, 0.0)
    return found


def test_a_limit_is_set_by_what_its_task_reached_and_each_change_is_told():
    limits = Tolerances({"a": "+2pt", "b": 0.5})
    limits.names = ["a", "b", "c"]
    assert limits.set([0.25], 0.3) == [
        ToleranceChange(0, None, 0.27, "error", "task learned; +2pt", reached=0.25, reached_on_all=0.3)
    ]
    assert limits.set([0.25, 0.1], 0.2) == [ToleranceChange(1, None, 0.5, "loss", "task learned; 0.5", 0.1, 0.2)]
    moved = ToleranceChange(0, 0.27, 0.37, "error", "other samples of it are stored; +2pt", 0.35, None)
    assert limits.set([0.35, 0.1, 0.9], 0.9) == [moved]
    assert limits.values[:2] == [0.37, 0.5]
    assert math.isnan(limits.values[2]), "c has no limit"


def test_a_limit_is_loosened_for_the_next_task_alone_as_often_as_asked():
    limits = learned(0.5, 0.1, 0.1, 0.1)
    limits.loosen(1, 0.25)
    limits.loosen(1, 0.5)
    assert limits.now(2) == [0.5, 1.25]
    assert limits.values == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("stated", "units", "kinds", "rises", "partition"),
    [
        (None, ["loss", "loss"], set(), False, "uniform"),
        (0.05, ["loss", "loss"], {"loss"}, False, "affine"),
        ("1.1x", ["loss", "loss"], {"loss"}, False, "affine"),
        ("5%", ["error", "error"], {"error"}, False, "room"),
        ("+2pt", ["error", "error"], {"error"}, True, "room:power=1"),
        ({"b": "5%"}, ["loss", "error"], {"error"}, False, "room"),
        ({"later": "+2pt", "*": 0.3}, ["loss", "loss"], {"error", "loss"}, True, "room:power=1"),
        ({"plan=gold": "+1pt"}, ["loss", "loss"], {"error"}, True, "room:power=1"),
        ("5%,10%", ["error", "error"], {"error"}, False, "room"),
    ],
)
def test_units_and_the_usual_partition_follow_from_what_is_stated(stated, units, kinds, rises, partition):
    limits = learned(stated, 0.1, 0.1)
    assert [limits.unit(k) for k in range(2)] == units
    assert (limits.in_error, limits.in_loss) == ("error" in kinds, "loss" in kinds)
    assert (limits.rises, usual_partition(limits), limits.stated_any) == (rises, partition, stated is not None)


def test_the_unit_of_a_task_beyond_a_list_is_loss_and_its_limit_is_asked_for():
    limits = learned("5%,10%", 0.1, 0.1)
    assert limits.unit(2) == "loss"
    with pytest.raises(ValueError, match="no tolerance for task 2: 2 are given"):
        limits.set([0.1] * 3, 0.1)


@pytest.mark.parametrize(
    ("stated", "limit"),
    [(None, None), ("5%", None), ("+2pt", None), (0.05, 0.05), ("1.1x>=0.3", 0.3), ([0.1, 0.2], 0.2)],
)
def test_the_task_being_learned_is_compared_with_a_loss_or_with_a_floor(stated, limit):
    assert learned(stated, 0.1).of_current() == limit


def test_an_agreed_limit_goes_before_the_stated_one():
    limits = learned("+2pt", 0.25, 0.25)
    limits.agree_on(1, "+5pt")
    limits.set([0.25, 0.25], 0.3)
    assert limits.values == pytest.approx([0.27, 0.30])
    assert learned(None, 0.1).stated_any is False


def test_a_saved_model_gets_the_limits_that_are_stated_anew_at_once():
    """Those of a and b are as they were, whatever these tasks have now; that of c is another."""
    saved = learned({"a": "+2pt", "*": "+3pt"}, 0.25, 0.25, 0.25).state_dict()
    limits = Tolerances({"a": "+2pt", "b": "+3pt", "c": "+5pt"})
    limits.load_state_dict(saved)
    limits.restate(saved["stated"], [0.4, 0.4, 0.25])
    assert limits.values == pytest.approx([0.27, 0.28, 0.30])
    limits = Tolerances({"a": "+2pt"})
    limits.load_state_dict(saved)
    limits.restate(saved["stated"], [0.4, 0.4, 0.4])
    assert limits.values[0] == pytest.approx(0.27)
    assert math.isnan(limits.values[1]), "it has no limit any more"


def test_what_cannot_be_read_is_named_with_the_option():
    with pytest.raises(UsageError, match="tolerance='5 points': "):
        Tolerances("5 points")
