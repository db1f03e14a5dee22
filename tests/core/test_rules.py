"""Rules by name: what is written is what runs, what has no effect is refused, and a rule of one's own decides."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

import pdcl
from pdcl.algorithm.dual_rules import Ascent
from pdcl.algorithm.pace import Pace
from pdcl.algorithm.partition_rules import Affine, Generalization
from pdcl.algorithm.rules import describe_rule, register_rule, rule, rule_names, settings
from pdcl.algorithm.selection_rules import ByDual
from pdcl.algorithm.slacks import OnMemory
from pdcl.core.primal_dual import PrimalDual
from pdcl.duality import rules
from pdcl.errors import UsageError
from pdcl.learners.pdcl import PDCL
from pdcl.learners.rule_options import SHORT


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"level": "sample", "slack": "ema"}, "slack"),
        ({"slack": "batch", "estimator": "uniform"}, "estimator"),
        ({"slack": "batch", "slack_samples": 100}, "slack_samples"),
        ({"constrain": "drift", "drift": 0.5}, "drift"),
        ({"partition": "uniform", "alpha": 0.3}, "alpha"),
        ({"partition": "affine:alpha=.5", "alpha": 0.3}, "alpha"),
        ({"partition": "generalization", "current_cap": 0.5}, "current_cap"),
        ({"partition": "affine", "minimum": 7}, "minimum"),
        ({"selection": "uniform", "clip": 0.5}, "clip"),
        ({"selection": "uniform", "uniform_share": 0.5}, "uniform_share"),
        ({"constrain": "loss", "drift_tolerance": 0.2}, "drift_tolerance"),
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
        ({"slack_samples": 7}, "slack", OnMemory(samples=7)),
        ({"selection": "dual:balance=false,candidates=0"}, "selection", ByDual(balance=False, candidates=0)),
        ({"selection": "dual", "clip": 1.0, "uniform_share": 0.0}, "selection", ByDual(clip=1.0, uniform_share=0.0)),
        ({"selection": "dual", "rescore": False, "candidates": 2}, "selection", ByDual(candidates=2, rescore=False)),
        ({"partition": Affine(0.9)}, "partition", Affine(0.9)),
    ],
)
def test_a_rule_is_written_as_text_by_short_options_or_given_as_an_object(options, kind, expected):
    learner = PDCL("mlp:8", **options)
    assert learner.rules[kind] == expected
    assert getattr(learner.new_core(5), kind) == expected


@pytest.mark.parametrize("kind", list(rules.HOMES))
def test_every_rule_reads_back_what_describes_it(kind):
    for name in rule_names(kind):
        plain = rule(kind, name)
        assert describe_rule(kind, plain) == name
    assert describe_rule("selection", ByDual(clip=1.0, balance=False)) == "dual:clip=1.0,balance=False"
    assert rule("selection", "dual:clip=1.0,balance=False") == ByDual(clip=1.0, balance=False)


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
        (lambda: register_rule("optimiser", "x"), "no rules of kind 'optimiser'; there are: dual, estimator, slack"),
        (lambda: register_rule("dual", "x")(type("Bare", (), {})), "Bare must be a dataclass"),
        (lambda: describe_rule("dual", Affine()), "Affine isn't registered as a dual rule"),
        (lambda: rule("dual", "ascent:lr=-1"), "dual_lr=-1.0 must not be negative"),
        (lambda: rule("dual", "ascent:decay=-1"), "decay=-1.0 must not be negative"),
        (lambda: rule("dual", "ascent:gain=nan"), "gain=nan must not be negative"),
        (lambda: rule("partition", "affine:alpha=1.01"), "alpha=1.01 must lie between 0 and 1"),
        (lambda: rule("partition", "affine:current_cap=-1"), "current_cap=-1.0 must not be negative"),
        (lambda: rule("partition", "generalization:minimum=0"), "minimum=0 must be at least 1 sample a task"),
        (lambda: rule("selection", "dual:clip=-.1"), "clip=-0.1 must lie between 0 and 1"),
        (lambda: rule("selection", "dual:uniform_share=2"), "uniform_share=2.0 must lie between 0 and 1"),
        (lambda: rule("selection", "dual:candidates=-1"), "candidates=-1 must not be negative: 0 scores all"),
        (lambda: rule("slack", "memory:samples=0"), "slack_samples=0 must be at least 1"),
        (lambda: rule("slack", "ema:smoothing=1.5"), "smoothing=1.5 must lie between 0 and 1"),
        (lambda: rule("constrain", "loss:drift=-1"), "drift=-1.0 must not be negative"),
        (lambda: rule("constrain", "drift:drift_tolerance=-1"), "drift_tolerance=-1.0 must not be negative"),
        (lambda: rule("constrain", "both:drift=-1"), "drift=-1.0 must not be negative"),
        (lambda: rule("constrain", "both:drift_tolerance=-1"), "drift_tolerance=-1.0 must not be negative"),
        (lambda: PrimalDual(5, level="class"), "level='class' is unknown; choose one of task, sample"),
        (lambda: PrimalDual(5, start=-1.0), "start=-1.0 must not be negative"),
        (lambda: PrimalDual(5, dual_steps=3, primal_steps=3), "dual_steps=3 has no effect beside primal_steps=3"),
        (lambda: PrimalDual(5, dual_steps=0), "must be at least 1"),
        (lambda: PrimalDual(5, primal_steps=0), "must be at least 1"),
        (lambda: PrimalDual(5, level="sample", slack="ema"), 'slack="ema" has no effect at level="sample"'),
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


def test_settings_are_the_fields_of_a_rule():
    assert settings(Affine()) == ["alpha", "current_cap"]
    assert settings(rule("slack", "batch")) == []


@pytest.fixture
def own():
    """Rules of a user's own, forgotten after the test."""
    before = {kind: dict(known) for kind, known in rules._KNOWN.items()}
    yield
    for kind, known in before.items():
        rules._KNOWN[kind].clear()
        rules._KNOWN[kind].update(known)


def test_a_dual_rule_of_ones_own_sets_the_duals(own, constant):
    @pdcl.register_rule("dual", "twice")
    @dataclass(frozen=True)
    class Twice:
        factor: float = 2.0

        def step(self, state, look):
            return state + 1, self.factor * look.slacks + state

    found = constant([[1.0], [3.0]], [5.0], tolerance=0.5, steps=2).by_learner(dual="twice:factor=4", dual_lr=None)
    assert found.duals.tolist() == [[2.0, 10.0], [3.0, 11.0]]


def test_a_partition_rule_of_ones_own_divides_memory(own, constant):
    @register_rule("partition", "newest")
    @dataclass(frozen=True)
    class Newest:
        def counts(self, duals, capacity, available):
            past = [1] * (len(duals) - 1)
            return [*past, min(available[-1], capacity - sum(past))]

    found = constant([[1.0] * 5, [3.0] * 5], [5.0] * 5).by_learner(partition="newest", memory=6)
    assert found.learner.held.counts(3) == [1, 1, 4]


def test_a_selection_rule_of_ones_own_chooses_samples(own, constant):
    @register_rule("selection", "easy")
    @dataclass(frozen=True)
    class Easy:
        balance: bool = False
        by_dual: ClassVar[bool] = True

        def weights(self, duals):
            return (duals < 1.5).double()

    found = constant([[1.0, 9.0] * 3], [1.0, 9.0] * 3, dual_lr=1.0).by_learner(
        selection="easy", memory=6, level="sample"
    )
    assert found.learner.held["y"].flatten().tolist() == [1.0] * 6


def test_an_estimator_of_ones_own_decides_what_is_replayed(own, constant):
    @register_rule("estimator", "first")
    @dataclass(frozen=True)
    class First:
        def draw(self, pool, m, generator):
            return pool.members[:1], torch.tensor([0.25])

    learner, stream = constant([[1.0] * 3], [5.0]).prepared(estimator="first", start=1.0)
    learner.begin(stream.tasks[1], 1)
    drawn = learner.core.draw(10)
    assert (drawn.slots.tolist(), drawn.weights.tolist()) == ([0], [[0.25]])


@pytest.mark.parametrize(
    ("estimator", "slots"), [("whole", {3}), ("uniform", {8}), ("stratified", {8}), ("dual", {8}), (None, {8})]
)
def test_estimators_have_effect_at_the_sample_level(constant, estimator, slots):
    """The whole memory of three, or eight draws; uniform ones weigh by dual, those by dual weigh the same."""
    learner, stream = constant([[1.0, 2.0, 3.0]], [5.0], dual_lr=1.0).prepared(estimator=estimator, level="sample")
    learner.begin(stream.tasks[1], 1)
    learner.core.observe(torch.tensor([0]), torch.tensor([5.0]), 1, None)
    learner.core.measure(learner.evaluated)
    drawn = learner.core.draw(8)
    duals = learner.held["y"].flatten()[drawn.slots]
    assert {len(drawn.slots)} == slots
    expected = {
        "whole": duals / 3,
        "uniform": 3 * duals / 3 / 8,
        "stratified": duals / 3 / torch.bincount(drawn.slots)[drawn.slots],
    }
    flat = torch.full((8,), 2.0 / 8)
    assert drawn.weights[0].tolist() == pytest.approx(expected.get(estimator, flat).tolist())


# "alpha: … (.5)" in the description of PDCL; the tolerance has examples in brackets instead.
WRITTEN = re.findall(r"^    (\w+): (?:.*\n        )*?.*\((yes|no|[\d.]+)[;,)]", PDCL.__doc__, re.MULTILINE)
STATED = [(option, value) for option, value in WRITTEN if option != "tolerance"]


@pytest.mark.parametrize(("option", "value"), STATED)
def test_defaults_are_those_that_the_description_states(option, value):
    stated = {"yes": True, "no": False}.get(value) if value in ("yes", "no") else float(value)
    if option == "dual_steps":
        assert Pace().dual_steps_of(6000) == stated
        return
    kind, setting = SHORT[option]
    usual = PDCL("mlp:8", tolerance=0.1).rules[kind]
    known = [usual] if setting in settings(usual) else [rule(kind, name) for name in rule_names(kind)]
    assert {getattr(found, setting) for found in known if setting in settings(found)} == {stated}


def test_the_description_states_a_default_for_every_short_option():
    assert {name for name, _ in STATED} == {*SHORT, "dual_steps"}


def test_whatever_can_be_left_out_has_the_default_of_the_paper_or_what_works():
    """Of the options that aren't short for a rule's setting."""
    learner = PDCL("mlp:8")
    found = {name: getattr(learner, name) for name in ("tolerance", "level", "start", "warm", "normalise")}
    assert found == {"tolerance": None, "level": "task", "start": 0.0, "warm": False, "normalise": True}
    core, own = PrimalDual(5), learner.new_core(5)
    names = ("level", "start", "warm", "normalise", "base", "dual", "estimator", "slack", "partition", "selection")
    assert {name: getattr(core, name) for name in names} == {name: getattr(own, name) for name in names}


def test_a_setting_is_read_as_the_type_of_its_default(own):
    @register_rule("dual", "typed")
    @dataclass(frozen=True)
    class Typed:
        free: Any
        text: str = "a"
        number: int = 1
        real: float = 1.0
        switch: bool = True

    found = rule("dual", "typed:free=1,text=2,number=3,real=4,switch=0")
    assert found == Typed("1", "2", 3, 4.0, False)
    assert rule("dual", "typed:free=x,switch=TRUE") == Typed("x")
