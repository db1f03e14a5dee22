"""Rules of one's own: registered by name or handed over as objects, each decides what it is there for."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import pdcl
from pdcl.algorithm import rules
from pdcl.algorithm.draws import Estimator
from pdcl.algorithm.dual_rules import DualRule
from pdcl.algorithm.partition_rules import PartitionRule
from pdcl.algorithm.rules import register_rule, rule
from pdcl.algorithm.selection_rules import SelectionRule


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
    class Twice(pdcl.DualRule):
        factor: float = 2.0

        def step(self, state, look):
            return state + 1, self.factor * look.slacks + state

    found = constant([[1.0], [3.0]], [5.0], tolerance=0.5, steps=2).by_learner(dual="twice:factor=4", dual_lr=None)
    assert found.duals.tolist() == [[2.0, 10.0], [3.0, 11.0]]


def test_a_partition_rule_of_ones_own_divides_memory(own, constant):
    @register_rule("partition", "newest")
    @dataclass(frozen=True)
    class Newest(PartitionRule):
        def counts(self, duals, capacity, available):
            past = [1] * (len(duals) - 1)
            return [*past, min(available[-1], capacity - sum(past))]

    found = constant([[1.0] * 5, [3.0] * 5], [5.0] * 5).by_learner(partition="newest", memory=6)
    assert found.learner.held.counts(3) == [1, 1, 4]


def test_a_selection_rule_of_ones_own_chooses_samples(own, constant):
    @register_rule("selection", "easy")
    @dataclass(frozen=True)
    class Easy(SelectionRule):
        balance: bool = False

        def weights(self, duals):
            return (duals < 1.5).double()

    found = constant([[1.0, 9.0] * 3], [1.0, 9.0] * 3, dual_lr=1.0).by_learner(
        selection="easy", memory=6, level="sample"
    )
    assert found.learner.held["y"].flatten().tolist() == [1.0] * 6


def test_an_estimator_of_ones_own_decides_what_is_replayed(own, constant):
    @register_rule("estimator", "first")
    @dataclass(frozen=True)
    class First(Estimator):
        def draw(self, pool, m, generator):
            return pool.members[:1], torch.tensor([0.25])

    learner, stream = constant([[1.0] * 3], [5.0]).prepared(estimator="first", start=1.0)
    learner.begin(stream.tasks[1], 1)
    drawn = learner.core.draw(10)
    assert (drawn.slots.tolist(), drawn.weights.tolist()) == ([0], [0.25])


@pytest.mark.parametrize(("estimator", "drawn"), [("whole", 3), ("dual", 8)])
def test_estimators_have_effect_at_the_sample_level(constant, estimator, drawn):
    """The whole memory of three, each by its dual; or eight draws by dual, which weigh the same."""
    learner, stream = constant([[1.0, 2.0, 3.0]], [5.0], dual_lr=1.0).prepared(estimator=estimator, level="sample")
    learner.begin(stream.tasks[1], 1)
    learner.core.observe(torch.tensor([0]), torch.tensor([5.0]), 1)
    learner.core.measure(learner.evaluated)
    found = learner.core.draw(8)
    duals = learner.held["y"].flatten()[found.slots]
    assert len(found.slots) == drawn
    expected = duals / 3 if estimator == "whole" else torch.full((8,), 2.0 / 8)
    assert found.weights.tolist() == pytest.approx(expected.tolist())


@pytest.mark.parametrize("by", ["core", "learner"])
def test_a_lever_of_ones_own_acts_after_each_dual_step_and_at_once(own, constant, by):
    """b = 1, 1/2, 1/4 before λ = .3, .6: what is replayed weighs b + λ from that very step on."""

    @register_rule("lever", "fade")
    @dataclass(frozen=True)
    class Fade(pdcl.Lever):
        factor: float = 0.9

        def pull(self, core, moved):
            pulled.append((moved.duals, moved.slacks, moved.tolerances, moved.current))
            core.algorithm.constraints.base.mul_(self.factor)

    pulled = []
    made = constant([[3.5]], [5.0], tolerance=0.5, dual_lr=0.1, steps=2)
    found = made.solve(by, lever="fade:factor=.5", base=1.0)
    near = pytest.approx
    assert pulled == [(near([0.3]), [3.0], [0.5], near(0.45)), (near([0.6]), [3.0], [0.5], near(0.9))]
    assert found.core.algorithm.norm == pytest.approx(0.25 + 0.6)
    assert found.core.draw(1).weights.tolist() == pytest.approx([0.25 + 0.6])
    assert found.core.state_dict()["lever"]["own"] == {}, "it remembers nothing"


def test_a_run_is_described_with_its_lever_and_without_one_names_none(own):
    @register_rule("lever", "fade")
    @dataclass(frozen=True)
    class Fade(pdcl.Lever):
        factor: float = 0.9

        def pull(self, core, moved):
            pass

    assert pdcl.PDCL.settled({"lever": "fade:factor=0.5"})["lever"] == "fade:factor=0.5"
    assert "lever" not in pdcl.PDCL.settled({})


def test_a_setting_is_read_as_the_type_of_its_default(own):
    @register_rule("dual", "typed")
    @dataclass(frozen=True)
    class Typed(DualRule):
        free: Any
        text: str = "a"
        number: int = 1
        real: float = 1.0
        switch: bool = True

        def step(self, state, look):
            return state, state

    found = rule("dual", "typed:free=1,text=2,number=3,real=4,switch=0")
    assert found == Typed("1", "2", 3, 4.0, False)
    assert rule("dual", "typed:free=x,switch=TRUE") == Typed("x")
