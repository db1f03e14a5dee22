"""A dual rule that keeps two numbers of each constraint: nothing but the rule itself has to know of the second."""

from dataclasses import dataclass

import pytest
import torch

import pdcl
from pdcl.algorithm import rules
from pdcl.algorithm.algorithm1 import Duals
from pdcl.learning.events import Stepped
from pdcl.learning.primal_dual import PrimalDual
from pdcl.storage.serialize import same
from pdcl.streams.data import TensorData
from pdcl.testing import SITUATIONS, gaussian_stream

BOTH = pytest.mark.parametrize("by", ["core", "learner"])
LEVELS = pytest.mark.parametrize("level", ["task", "sample"])


@dataclass(frozen=True)
class Momentum(pdcl.DualRule):
    """v ← keep v + η_d s, λ ← [λ + v]₊; the state of a constraint is (λ, v)."""

    lr: float = 0.1
    keep: float = 0.5

    def init(self, duals):
        return torch.stack([duals, torch.zeros_like(duals)], 1)

    def step(self, state, look):
        speed = self.keep * state[:, 1] + self.lr / look.share * look.slacks
        duals = (state[:, 0] + speed).clamp(min=0)
        return torch.stack([duals, speed], 1), duals


@pytest.fixture(autouse=True)
def known():
    """The rule by its name, forgotten after the test."""
    rules._KNOWN["dual"]["momentum"] = Momentum
    yield
    del rules._KNOWN["dual"]["momentum"]


@BOTH
@LEVELS
def test_duals_gain_speed(constant, by, level):
    """Slack 2 at each step: v = .2, .3, .35; λ = .2, .5, .85. The artificial dual has a slack of 5."""
    found = constant([[2.0, 2.0], [0.0]], [5.0], steps=3).solve(by, dual="momentum", dual_lr=None, level=level)
    assert found.duals[:, 0].tolist() == pytest.approx([0.2, 0.5, 0.85])
    assert (found.duals[:, -1] == 0).all()
    assert found.core.progress.current_dual == pytest.approx(5 / 2 * 0.85)


@BOTH
def test_the_solution_is_that_of_plain_ascent(problem, by):
    """min (θ − 2)² s.t. θ² ≤ .25: θ = .5, λ = 3."""
    made = problem([([[1.0]], [0.0])], ([[1.0]], [2.0]), [0.25, 9.0], start=(2.0,), steps=300)
    found = made.solve(by, dual="momentum:lr=.25,keep=.5", dual_lr=None)
    assert (found.theta.item(), found.dual.item()) == pytest.approx((0.5, 3.0), abs=1e-6)


def test_warm_duals_go_on_from_rest(constant):
    made = constant([[1.0]], [3.0])
    learner, stream = made.prepared(warm=True, dual="momentum", dual_lr=None, memory=3)
    for _ in range(2):
        learner.begin(stream.tasks[1], 1)
        learner.core.observe(torch.tensor([0]), torch.tensor([3.0]), 1)
        learner.core.measure(learner.evaluated)
        learner.core.end("new", stream.tasks[1].data, learner.evaluated, 9)
    assert learner.final_duals() == pytest.approx([0.2, 0.6, 0.3])


def test_constraints_may_come_and_go_by_hand():
    """As in a loop of one's own: join, measure some, keep some, start again, save."""
    duals = Duals(torch.zeros(0).double(), torch.zeros(0).double(), Momentum())
    duals.join(torch.tensor([0.1, 0.2], dtype=torch.float64))
    for _ in range(2):
        duals.ascend(torch.tensor([2.0], dtype=torch.float64), torch.tensor([1]))
    duals.join(torch.tensor([0.3], dtype=torch.float64))
    assert duals.state.tolist() == [[0, 0], [pytest.approx(0.5), pytest.approx(0.3)], [0, 0]]
    duals.take(torch.tensor([2, 1]))
    assert duals.values.tolist() == pytest.approx([0.0, 0.5])
    other = Duals(torch.zeros(0), torch.zeros(0), Momentum())
    other.load_state_dict(duals.state_dict())
    for each in (duals, other):
        each.ascend(torch.tensor([1.0, 2.0], dtype=torch.float64))
        assert each.values.tolist() == pytest.approx([0.1, 0.85])
    duals.reset()
    assert duals.state.tolist() == [[0, 0], [0, 0]]
    assert duals.limits.tolist() == [0.3, 0.2]


def steps(core, generator_seed, count):
    """Steps of a loop by hand, whose losses depend on the step alone."""
    for step in range(count):
        core.draw(4)
        core.observe(torch.tensor([0]), torch.tensor([1.0]), 1)
        if core.due():
            loss = float(torch.rand((), generator=torch.Generator().manual_seed(generator_seed + step)))
            core.measure(lambda x, loss=loss: torch.stack([x[:, 0] + loss, -x[:, 0]], 1))


@LEVELS
def test_a_core_by_hand_is_saved_in_the_middle_of_a_task_and_goes_on_to_the_bit(level):
    x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    data = TensorData(x, (x[:, 0] < 0).long())

    def made(seed):
        core = PrimalDual(
            20, 0.01, dual="momentum:lr=.3", level=level, witness=0, slack_samples=9, primal_steps=1,
            generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip
        for task in range(2):
            core.begin(20, 1)
            core.end(str(task), data, lambda x: x, 20 * task)
        core.begin(20, 9)
        return core

    one, other = made(1), made(2)
    steps(one, 0, 5)
    memory, state, generator = one.memory.state_dict(), one.state_dict(), one.generator.get_state()
    steps(one, 5, 4)
    assert max(one.task_duals()) > 0
    for _ in range(2):
        # Twice: what goes on from a state leaves it as it was.
        other.memory.load_state_dict(memory)
        other.load_state_dict(state)
        other.generator.set_state(generator)
        assert other.algorithm.duals.state.shape == (len(one.algorithm.duals.values), 2)
        steps(other, 5, 4)
        assert same(other.state_dict(), one.state_dict())


class Stop(Exception):
    pass


def test_a_run_is_cut_off_and_resumed_to_the_bit(tmp_path):
    torch.set_default_dtype(torch.float32)
    stream = gaussian_stream(SITUATIONS["plain"])
    options = {"epochs": 2, "batch": 8, "checkpoint_every": 2}

    def learner():
        return pdcl.PDCL("mlp:8", memory=12, tolerance=0.2, dual="momentum:keep=.7", warm=True)

    def listener(event):
        if isinstance(event, Stepped) and (event.task, event.step) == (2, 3):
            raise Stop

    whole = pdcl.run(stream, learner(), **options)
    with pytest.raises(Stop):
        pdcl.run(stream, learner(), out=tmp_path, listeners=[listener], **options)
    again = pdcl.run(stream, learner(), resume=next(tmp_path.iterdir()), **options)
    assert max(whole.learner.final_duals()) > 0
    assert same(again.learner.state_dict(), whole.learner.state_dict())
