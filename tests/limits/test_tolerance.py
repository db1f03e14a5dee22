"""Tolerances: where ε_k comes from, in what unit, and how it is written."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pdcl.duality import Fixed, PerTask, Relative, Rise, as_tolerance, describe

losses = st.floats(0, 1e6)
rates = st.floats(0, 1)


def tolerances():
    fixed = st.one_of(st.builds(Fixed, losses), st.builds(Fixed, rates, st.just("error")))
    lists = st.lists(losses, min_size=1, max_size=5), st.lists(rates, min_size=1, max_size=5)
    per_task = st.one_of(st.builds(PerTask, lists[0]), st.builds(PerTask, lists[1], st.just("error")))
    factors = st.floats(1e-6, 1e6)
    relative = st.one_of(
        st.builds(Relative, factors),
        st.builds(Relative, factors, losses),
        st.builds(Relative, factors, rates, st.just("error")),
    )
    return st.one_of(fixed, per_task, relative, st.builds(Rise, st.floats(0, 100)))


@given(tolerances())
def test_a_description_is_read_back_as_the_same_tolerance(tolerance):
    assert as_tolerance(describe(tolerance)) == tolerance


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.05, Fixed(0.05)),
        (0, Fixed(0.0)),
        (np.float32(0.5), Fixed(0.5)),
        ("0.05", Fixed(0.05)),
        (" 5% ", Fixed(0.05, "error")),
        ("7%", Fixed(0.07, "error")),
        ("1.1x", Relative(1.1, 0.01)),
        ("1.1x>=0.02", Relative(1.1, 0.02)),
        ("1.1x >= 2%", Relative(1.1, 0.02, "error")),
        ("+2pt", Rise(2.0)),
        (" +0.5 pt ", Rise(0.5)),
        ("+.5pt", Rise(0.5)),
        ([0.1, 0.2], PerTask((0.1, 0.2))),
        (["1%", "2%"], PerTask((0.01, 0.02), "error")),
        ("0.1,0.2", PerTask((0.1, 0.2))),
        (torch.tensor([0.5, 0.25]), PerTask((0.5, 0.25))),
        (torch.tensor(0.5), Fixed(0.5)),
        (Relative(2.0), Relative(2.0)),
    ],
)
def test_what_users_write_is_what_they_mean(written, meant):
    assert as_tolerance(written) == meant


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (Fixed(0.05, "error"), "5%"),
        (Relative(1.1), "1.1x"),
        (Relative(1.1, 0.02, "error"), "1.1x>=2%"),
        (Fixed(0.5, "error"), "50%"),
        (Rise(2), "+2pt"),
        (Rise(0.5), "+0.5pt"),
    ],
)
def test_descriptions_are_what_a_user_would_write(written, text):
    assert describe(written) == text


def test_each_kind_gives_its_epsilon():
    assert Fixed(0.3).of(7, None) == 0.3
    assert PerTask([0.1, 0.2]).of(1, reached=9.0) == 0.2
    assert Relative(1.1, 0.01).of(0, reached=0.5) == pytest.approx(0.55)
    assert Rise(2).of(0, reached=0.101) == pytest.approx(0.121)


def test_the_floor_keeps_a_task_that_reached_nothing_feasible():
    assert Relative(1.1, 0.02).of(0, reached=1e-9) == 0.02


def test_a_relative_error_rate_never_exceeds_one():
    assert Relative(2.0, 0.01, "error").of(0, reached=0.8) == 1.0
    assert Rise(30).of(0, reached=0.8) == 1.0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Fixed(-0.1), "-0.1"),
        (lambda: Fixed(float("nan")), "finite, not nan"),
        (lambda: Fixed(float("inf")), "large number"),
        (lambda: Fixed(1.5, "error"), r"\[0, 1\], but is 1.5"),
        (lambda: Fixed(0.1, "accuracy"), "not 'accuracy'"),
        (lambda: PerTask([0.1, -2.0]), "task 1 .* -2.0"),
        (lambda: PerTask([]), "no values"),
        (lambda: Relative(0.0), "positive, not 0.0"),
        (lambda: Relative(1.1, -1.0), "floor .* -1.0"),
        (lambda: Relative(1.1).of(3, None), "task 3 needs what the task had reached"),
        (lambda: Relative(1.1).of(3, float("nan")), "task 3 must be finite"),
        (lambda: PerTask([0.1, 0.2]).of(2, None), "task 2: 2 are given"),
        (lambda: as_tolerance("soon"), "'soon': write 0.05"),
        (lambda: as_tolerance("nan%"), "finite"),
        (lambda: as_tolerance("x"), "can't read"),
        (lambda: as_tolerance(["1%", 0.2]), "one unit"),
        (lambda: as_tolerance([]), "no values"),
        (lambda: Rise(-1), "between 0 and 100 points, but is -1.0"),
        (lambda: Rise(101), "between 0 and 100 points, but is 101.0"),
        (lambda: Rise(float("nan")), "finite, not nan"),
        (lambda: Rise(2).of(3), r"\+2pt of task 3 needs the error rate"),
        (lambda: Rise(2).of(3, 1.5), r"task 3 .* \[0, 1\], but is 1.5"),
        (lambda: as_tolerance("+infpt"), "finite"),
        (lambda: as_tolerance("+twopt"), "'two': write 0.05"),
        (lambda: as_tolerance("+2pt,+3pt"), "name the tasks"),
    ],
)
def test_nonsense_is_named_and_the_way_out_is_shown(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize("text", ["+2%", "+0.05", "+5", "2pt", "-2pt", "++2pt", "+5%pt", "+pt", "+2%,3%", "+1.1x"])
def test_a_sign_without_points_is_refused_because_it_was_read_as_absolute(text):
    with pytest.raises(ValueError, match=r"write \+2pt for two points more than it had, or 2% for an absolute error"):
        as_tolerance(text)


@pytest.mark.parametrize("value", [b"5%", bytearray(b"5%"), memoryview(b"5%"), [b"5%"]])
def test_bytes_are_no_list_of_losses(value):
    with pytest.raises(TypeError, match=r"not bytes|not bytearray|not memoryview|must be a number"):
        as_tolerance(value)


@pytest.mark.parametrize("value", [None, True, [None]])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match="must be a number"):
        as_tolerance(value)
