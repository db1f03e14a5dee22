"""Limits of all tasks: read as mappings and as text, written back as the same."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pdcl import PDCL
from pdcl.algorithm.lagrangian import Lagrangian
from pdcl.duality import Fixed, Limits, PerTask, Relative, Rise, as_limits, describe_limits
from pdcl.limits.limit import Limit
from pdcl.limits.limits import judged

rates = st.floats(0, 1)
single = st.one_of(
    st.builds(Fixed, st.floats(0, 1e6)),
    st.builds(Fixed, rates, st.just("error")),
    st.builds(Relative, st.floats(1e-6, 1e6), rates, st.just("error")),
    st.builds(Rise, st.floats(0, 100)),
)
lists = st.builds(PerTask, st.lists(rates, min_size=1, max_size=3), st.just("error"))
# Signs that mean something are drawn often; so are the two names that do.
names = st.one_of(st.text(':,="\\ *', min_size=1), st.text(min_size=1), st.sampled_from(["*", "new", "legacy"]))
whole = st.builds(
    dict,
    tasks=st.dictionaries(names, single, max_size=3),
    segments=st.dictionaries(st.tuples(names, names), single, max_size=3),
    rest=st.none() | single | lists,
    new=st.none() | st.builds(Fixed, rates, st.just("error")),
).filter(lambda fields: any(fields.values()))


@given(whole)
def test_a_description_is_read_back_as_the_same_limits(fields):
    limits = Limits(**fields)
    assert as_limits(describe_limits(limits)) == limits


WRITTEN = {"legacy": "+2pt", "plan=gold": "+1pt", "*": "+3pt", "new": "10%"}
MEANT = Limits({"legacy": Rise(2)}, {("plan", "gold"): Rise(1)}, Rise(3), Fixed(0.1, "error"))


def test_a_mapping_and_its_text_mean_the_same():
    text = "legacy:+2pt, plan=gold:+1pt, *:+3pt, new:10%"
    assert as_limits(WRITTEN) == as_limits(text) == MEANT
    assert describe_limits(MEANT) == text


@pytest.mark.parametrize(
    ("written", "rest"),
    [(0.05, Fixed(0.05)), ("5%,10%", PerTask((0.05, 0.1), "error")), ("+2pt", Rise(2)), (Rise(2), Rise(2))],
)
def test_one_tolerance_is_a_limit_for_every_task(written, rest):
    assert as_limits(written) == Limits(rest=rest)


def test_a_name_wins_over_the_rest_and_a_list_goes_by_position():
    limits = as_limits('"a:b":0.2, *:5%,10%')
    assert limits.of("a:b", 1) == Fixed(0.2)
    assert limits.of("c", 1) == Fixed(0.1, "error")
    with pytest.raises(ValueError, match="no tolerance for task 2"):
        limits.of("c", 2)
    assert as_limits({"a": "+2pt"}).of("c", 0) is None


def test_names_may_hold_any_sign():
    limits = as_limits({"a:b,c": "1%", '"a=b"': "2%", '"new"': "3%", ("x=y", "z"): "4%"})
    assert set(limits.tasks) == {"a:b,c", "a=b", "new"}
    assert set(limits.segments) == {("x=y", "z")}
    assert limits.new is None


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("new:+2pt", r"new task is \+2pt, .* what it must reach"),
        ({"new": "1.1x"}, "new task is 1.1x, but a new task was never measured"),
        ({"new": "5%,10%"}, "new task is 5%,10%"),
        ({"legacy": "+2%"}, r"write \+2pt for two points more"),
        ("legacy:5%,10%", "limit of legacy is a list, 5%,10%: one name has one limit"),
        ("a=b:5%,10%", "limit of a=b is a list"),
        ("a:1%, a:2%", "a has two limits"),
        ("*:1%, *:2%", r"\* has two limits"),
        ("5%, new:10%", "can't read a limit from '5%': write NAME:LIMIT"),
        ('5"disk:2%', "in double quotes"),
        (":2%", "name of a task or segment from ''"),
        ("plan=:2%", "name of a task or segment from 'plan='"),
        ('"\\q":2%', r'quoted name "\\q"'),
        ({}, "at least one"),
    ],
)
def test_limits_that_can_not_be_read_are_one_line(written, says):
    with pytest.raises(ValueError, match=says) as caught:
        as_limits(written)
    assert "\n" not in str(caught.value)


def test_tasks_have_names_and_not_numbers():
    with pytest.raises(TypeError, match="by task name or \\(column, value\\), not by 3"):
        as_limits({3: "5%"})


def test_every_kind_of_tolerance_can_be_judged():
    assert judged(Rise(2)) == Limit("+2pt", rise=0.02)
    assert judged(Fixed(0.05, "error")) == Limit("5%", value=0.05)
    assert judged(PerTask((0.1, 0.2)), 1) == Limit("0.2", "loss", value=0.2)
    assert judged(Relative(1.1, 0.02)) == Limit("1.1x>=0.02", "loss", value=0.02, factor=1.1)


def test_points_reach_the_dual_ascent():
    lagrangian = Lagrangian("+2pt")
    lagrangian.set_tolerance(0, reached=0.1)
    assert lagrangian.tolerances.tolist() == pytest.approx([0.12])
    with pytest.raises(ValueError, match=r"call set_tolerance\(1, value\) before"):
        lagrangian.loss(torch.ones(1), torch.tensor([1]))


@pytest.mark.parametrize("array", [np.array([0.1, 0.2]), torch.tensor([0.1, 0.2], dtype=torch.float64)])
def test_an_array_is_the_list_that_it_holds_so_a_learner_can_be_shown_and_written(array):
    learner = PDCL(tolerance=array, memory=20)
    assert learner.tolerance == [0.1, 0.2]
    assert "tolerance=[0.1, 0.2]" in repr(learner)


def test_a_learner_takes_points_and_limits_by_name():
    tolerances = PDCL(tolerance={"legacy": "+2pt", "*": 0.3}, memory=20).new_core(20).tolerances
    tolerances.names[:] = ["legacy", "2026-12"]
    assert [tolerances.of(0), tolerances.of(1)] == [Rise(2), Fixed(0.3)]
    assert [tolerances.unit(0), tolerances.unit(1)] == ["error", "loss"]


def test_a_limit_is_a_number_once_the_reference_is_known_and_no_error_rate_is_above_1():
    rise, share = Limit("+2pt", rise=0.02), Limit("1.5x>=5%", value=0.05, factor=1.5)
    assert [rise.of(then) for then in (0.25, 0.99, None)] == [0.27, 1.0, None]
    assert [share.of(then) for then in (0.2, 0.01, 0.8, None)] == pytest.approx([0.3, 0.05, 1.0, None])
    assert Limit("1.5x", "loss", factor=1.5).of(2.0) == 3.0
    assert Limit("5%", value=0.05).of(None) == Limit("5%", value=0.05).of(0.5) == 0.05
