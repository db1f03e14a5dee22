"""Rules by name: what is written is what runs, and what has no effect is refused."""

import math
import re
from dataclasses import dataclass, fields, replace

import pytest
import torch

from pdcl.algorithm.dual_rules import Ascent, DualRule
from pdcl.algorithm.levers import Lever
from pdcl.algorithm.partition_rules import Affine, Generalization, PartitionRule
from pdcl.algorithm.rules import HOMES, _base, describe_rule, register_rule, rule, rule_names, settings
from pdcl.algorithm.selection_rules import ByDual, SelectionRule
from pdcl.errors import UsageError
from pdcl.learning.primal_dual import PrimalDual
from pdcl.learning.progress import Pace
from pdcl.methods.pdcl import PDCL
from pdcl.methods.rule_options import SHORT


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"partition": "uniform", "alpha": 0.3}, "alpha"),
        ({"partition": "affine:alpha=.5", "alpha": 0.3}, "alpha"),
        ({"partition": "generalization", "current_cap": 0.5}, "current_cap"),
        ({"partition": "affine", "minimum": 7}, "minimum"),
        ({"selection": "uniform", "clip": 0.5}, "clip"),
        ({"selection": "uniform", "uniform_share": 0.5}, "uniform_share"),
        ({"dual_steps": 30, "primal_steps": 5}, "dual_steps"),
    ],
)
def test_an_option_without_effect_is_an_error(options, name):
    with pytest.raises(UsageError, match=rf"{name}=\W?{options[name]}.* has no effect .*leave it out"):
        PDCL("mlp:8", **options)


@pytest.mark.parametrize(
    ("options", "kind", "expected"),
    [
        ({"partition": "affine:alpha=.3"}, "partition", Affine(alpha=0.3)),
        ({"partition": "affine : alpha = .3, current_cap = 0".replace(" :", ":")}, "partition", Affine(0.3, 0.0)),
        ({"tolerance": 0.1, "alpha": 0.3}, "partition", Affine(alpha=0.3)),
        ({"partition": "generalization", "minimum": 7}, "partition", Generalization(7)),
        ({"dual": "ascent:lr=.05,decay=.2,gain=1"}, "dual", Ascent(0.05, 0.2, 1.0)),
        ({"dual_lr": 0.05, "decay": 0.2, "gain": 1.0}, "dual", Ascent(0.05, 0.2, 1.0)),
        ({"selection": "dual:balance=false,candidates=0"}, "selection", ByDual(balance=False, candidates=0)),
        ({"selection": "dual", "clip": 1.0, "uniform_share": 0.0}, "selection", ByDual(clip=1.0, uniform_share=0.0)),
        ({"selection": "dual", "rescore": False, "candidates": 2}, "selection", ByDual(candidates=2, rescore=False)),
        ({"partition": Affine(0.9)}, "partition", Affine(0.9)),
    ],
)
def test_a_rule_is_written_as_text_by_short_options_or_given_as_an_object(options, kind, expected):
    learner = PDCL("mlp:8", **options)
    assert learner.rules[kind] == expected
    core = learner.new_core(5)
    assert (core.choices.selection if kind == "selection" else getattr(core, kind)) == expected


@pytest.mark.parametrize("kind", list(HOMES))
def test_every_rule_reads_back_what_describes_it(kind):
    for name in rule_names(kind):
        plain = rule(kind, name)
        assert describe_rule(kind, plain) == name
    assert describe_rule("selection", ByDual(clip=1.0, balance=False)) == "dual:clip=1.0,balance=False"
    assert rule("selection", "dual:clip=1.0,balance=False") == ByDual(clip=1.0, balance=False)


def test_every_number_of_every_rule_is_refused_by_name_below_0():
    refused = []
    for kind in HOMES:
        for name in rule_names(kind):
            numbers = [f.name for f in fields(rule(kind, name)) if not isinstance(f.default, bool)]
            for setting in numbers:
                with pytest.raises(UsageError, match=rf"{setting}=-1"):
                    rule(kind, f"{name}:{setting}=-1")
            refused += numbers
    assert len(refused) > 15


@pytest.mark.parametrize("kind", list(HOMES))
def test_a_rule_that_lacks_its_method_is_refused_before_it_runs(kind):
    class Empty(_base(kind)):
        pass

    with pytest.raises(UsageError, match=rf"Empty must have the method \w+, as pdcl.{_base(kind).__name__} says"):
        register_rule(kind, "empty")(dataclass(frozen=True)(Empty))
    assert "empty" not in rule_names(kind)


@dataclass(frozen=True)
class Bare:
    """A rule that extends nothing."""


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rule("partition", "afine"), "partition='afine' is unknown; choose one of uniform, affine, .*'affine'"),
        (lambda: rule("partition", "zzz"), r"partition='zzz' is unknown; choose one of [a-z, ]+\.$"),
        (lambda: rule("partition", "affine:beta=1"), "has no setting 'beta': it has alpha, current_cap; write affine:"),
        (lambda: rule("partition", "affine:alpha"), "has no setting 'alpha'"),
        (lambda: rule("partition", "uniform:alpha=1"), "it has no settings"),
        (lambda: rule("partition", "affine:alpha=much"), "partition=affine:alpha is a number, such as 0.5, not 'much'"),
        (lambda: rule("selection", "dual:balance=2"), "selection=dual:balance is true or false, not '2'"),
        (lambda: rule("selection", "dual:candidates=1.5"), "is a number, such as 4, not '1.5'"),
        (
            lambda: register_rule("optimiser", "x"),
            "no rules of kind 'optimiser'; there are: dual, estimator, partition, selection, lever",
        ),
        (lambda: register_rule("dual", "x")(type("Plain", (), {})), "Plain must be a dataclass"),
        (lambda: describe_rule("dual", Affine()), "Affine isn't registered as a dual rule"),
        (lambda: rule("dual", "ascent:lr=-1"), "dual_lr=-1.0 must not be negative"),
        (lambda: rule("dual", "ascent:decay=-1"), "decay=-1.0 must not be negative"),
        (lambda: rule("dual", "ascent:gain=nan"), "gain=nan must not be negative"),
        (lambda: rule("partition", "affine:alpha=1.01"), "alpha=1.01 must lie between 0 and 1"),
        (lambda: rule("partition", "affine:current_cap=-1"), "current_cap=-1.0 must not be negative"),
        (lambda: rule("partition", "generalization:minimum=0"), "minimum=0 must be at least 1 sample a task"),
        (lambda: rule("partition", "room:most=.9"), "most=0.9 must be at least 1: it is a ratio to an even share"),
        (lambda: rule("partition", "room:soft=0"), "soft=0.0 must be above 0: rooms may be 0"),
        (lambda: rule("selection", "dual:clip=-.1"), "clip=-0.1 must lie between 0 and 1"),
        (lambda: rule("selection", "dual:uniform_share=2"), "uniform_share=2.0 must lie between 0 and 1"),
        (lambda: rule("selection", "dual:candidates=-1"), "candidates=-1 must not be negative: 0 scores all"),
        (
            lambda: register_rule("dual", "x")(Bare),
            "Bare must extend pdcl.DualRule, which has what others ask of a rule",
        ),
        (lambda: register_rule("lever", "x")(Bare), "Bare must extend pdcl.Lever"),
        (lambda: rule("estimator", "stratified"), "estimator='stratified' is unknown; choose one of dual, whole"),
        (lambda: PrimalDual(5, slack_samples=0), "slack_samples=0 must be at least 1"),
        (lambda: PrimalDual(5, drift=-1.0), "drift=-1.0 must not be negative"),
        (lambda: PrimalDual(5, soften=1.5), "soften=1.5 must lie between 0 and 1"),
        (lambda: PrimalDual(5, base_most=-1.0), "base_most=-1.0 must not be negative"),
        (
            lambda: PrimalDual(5, guard=3, level="sample"),
            "guard=3 has no effect where stored samples steer; leave it out",
        ),
        (lambda: PrimalDual(5, level="class"), "level='class' is unknown; choose one of task, sample"),
        (lambda: PrimalDual(5, start=-1.0), "start=-1.0 must not be negative"),
        (lambda: PrimalDual(5, dual_steps=3, primal_steps=3), "dual_steps=3 has no effect beside primal_steps=3"),
        (lambda: PrimalDual(5, dual_steps=0), "must be at least 1"),
        (lambda: PrimalDual(5, primal_steps=0), "must be at least 1"),
    ],
)
def test_what_cannot_be_is_named_with_the_way_out(call, words):
    with pytest.raises(UsageError, match=words):
        call()


@pytest.mark.parametrize(
    "written",
    ["dual:clip=0", "dual:clip=1", "dual:uniform_share=0", "dual:uniform_share=1", "dual:candidates=0"],
)
def test_the_ends_of_a_range_belong_to_it(written):
    assert rule("selection", written)


def test_a_strict_task_may_be_given_no_more_than_an_even_share():
    assert rule("partition", "room:most=1").counts([0.0, 0.5, 0.5], 30, [30, 30, 30]) == [10, 10, 10]


def test_settings_are_the_fields_of_a_rule():
    assert settings(Affine()) == ["alpha", "current_cap"]
    assert settings(rule("estimator", "whole")) == []


# "alpha: … (.5)" in the description of PDCL; the tolerance has examples in brackets instead.
WRITTEN = re.findall(r"^    (\w+): (?:.*\n        )*?.*\((yes|no|[\d.]+)[;,)]", PDCL.__doc__, re.MULTILINE)
STATED = [(option, value) for option, value in WRITTEN if option != "tolerance"]


@pytest.mark.parametrize(("option", "value"), STATED)
def test_defaults_are_those_that_the_description_states(option, value):
    stated = {"yes": True, "no": False}.get(value) if value in ("yes", "no") else float(value)
    if option == "dual_steps":
        assert Pace().dual_steps_of(6000) == stated
        return
    if option not in SHORT:
        assert getattr(PDCL("mlp:8").new_core(5).choices, option) == stated
        return
    kind, setting = SHORT[option]
    usual = PDCL("mlp:8", tolerance=0.1).rules[kind]
    known = [usual] if setting in settings(usual) else [rule(kind, name) for name in rule_names(kind)]
    assert {getattr(found, setting) for found in known if setting in settings(found)} == {stated}


def test_the_description_states_a_default_for_every_option_that_is_a_number():
    assert {name for name, _ in STATED} == {*SHORT, "dual_steps", "slack_samples", "drift", "soften"}


def test_whatever_can_be_left_out_has_the_default_of_the_paper_or_what_works():
    """Of the options that aren't short for a rule's setting."""
    learner = PDCL("mlp:8")
    found = {name: getattr(learner, name) for name in ("tolerance", "level", "start", "warm", "normalise")}
    assert found == {"tolerance": None, "level": "task", "start": 0.0, "warm": False, "normalise": True}
    core, own = PrimalDual(5), learner.new_core(5)
    assert (core.dual, core.partition, core.pace) == (own.dual, own.partition, own.pace)
    assert replace(own.choices, drift=0.0, soften=0.0) == core.choices, "a core by hand has no drift unless told"


def test_dropping_outliers_takes_the_largest_duals_out_of_the_draw():
    duals = torch.tensor([0.0, 1.0, 2.0, 3.0, 400.0])
    assert rule("selection", "dual:clip=1,uniform_share=0").weights(duals).argmax() == 4
    weights = rule("selection", "dual:clip=1,uniform_share=0,drop=.2").weights(duals)
    assert weights[4] == 0
    assert (weights[1:4] / weights[1:4].sum()).tolist() == pytest.approx([1 / 6, 1 / 3, 1 / 2])


def test_what_a_rule_of_ones_own_leaves_unsaid_is_the_usual():
    """Rules with nothing but what every rule of their kind must have."""
    dual, selection, partition, lever = (
        type("Own", (base,), dict.fromkeys(base.__abstractmethods__))()  # type: ignore[attr-defined]
        for base in (DualRule, SelectionRule, PartitionRule, Lever)
    )
    assert (dual.moves, dual.most, dual.shadow_lr, dual.relaxation) == (True, math.inf, 0.1, 0.0)
    assert dual.init(torch.ones(2)).tolist() == [1.0, 1.0]
    assert (selection.by_dual, selection.balance, selection.rescore, selection.pool(7, 2)) == (True, True, True, 7)
    assert (partition.by_room, lever.state_dict()) == (False, {})
