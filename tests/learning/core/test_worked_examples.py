"""W1, W2 and W3: what trains reaches solutions that were computed independently."""

import pytest
import torch
from torch import nn

from pdcl.algorithm.dual_rules import effective_tolerance
from pdcl.algorithm.prices import sample_prices, value_bound
from pdcl.objective import Objective, no_error_rate

BOTH = pytest.mark.parametrize("by", ["core", "learner"])


@pytest.fixture
def w1(problem):
    """min (θ − 2)² s.t. θ² ≤ ε, from θ = 2: one sample x = 1, y = 0 of the past, and x = 1, y = 2 now."""

    def make(epsilon=0.25, steps=4, **options):
        return problem([([[1.0]], [0.0])], ([[1.0]], [2.0]), [epsilon, 9.0], start=(2.0,), steps=steps, options=options)

    return make


@BOTH
def test_w1_the_first_alternating_steps_are_those_computed_by_hand(w1, by):
    found = w1().solve(by)
    expected = [(2, 1.875), (1.25, 2.53125), (0.7671875, 2.70053833), (0.59938615, 2.75517021)]
    for theta, dual, exact in zip(found.thetas, found.duals, expected, strict=True):
        assert (theta.item(), dual.item()) == pytest.approx(exact, abs=5e-9)


@BOTH
def test_w1_reaches_its_solution(w1, by):
    found = w1(steps=300).solve(by)
    assert (found.theta.item(), found.dual.item()) == pytest.approx((0.5, 3.0), abs=1e-9)
    assert (found.theta.item() - 2) ** 2 == pytest.approx(2.25, abs=1e-9)


@BOTH
def test_w1_decay_relaxes_the_tolerance_by_kappa_lambda(w1, by):
    found = w1(steps=150).solve(by, decay=0.1)
    assert found.dual.item() == pytest.approx(1.98605446, abs=5e-9)
    assert found.theta.item() ** 2 - 0.25 == pytest.approx(0.19860545, abs=5e-9)
    assert effective_tolerance(0.25, found.dual, 0.1).item() == pytest.approx(found.theta.item() ** 2, abs=1e-8)


@BOTH
def test_w1_an_idle_constraint_has_a_dual_of_exactly_zero(w1, by):
    found = w1(epsilon=5.0, steps=50).solve(by)
    assert (found.duals == 0).all()
    assert found.theta.item() == 2.0


@BOTH
def test_w1_dividing_by_one_plus_the_duals_shortens_steps_but_not_the_way(w1, by):
    """θ ← θ − η_p (2 (θ − 2) + 2 λ θ) / (1 + λ): the second iterate by hand, then the same solution."""
    found = w1(steps=400).solve(by, normalise=True)
    assert found.thetas[1].item() == pytest.approx(2 - 0.1 * (2 * 1.875 * 2) / (1 + 1.875), abs=1e-12)
    assert (found.theta.item(), found.dual.item()) == pytest.approx((0.5, 3.0), abs=1e-6)


@BOTH
def test_w1_a_proportional_answer_reaches_the_same_solution(w1, by):
    """λ₁ = η_d s + K_p s with s = 2² − .25; at the solution s = 0, and the gain adds nothing."""
    gain = {"gain": 0.1} if by == "learner" else {"dual": "ascent:lr=.5,gain=.1"}
    found = w1(steps=300).solve(by, **gain)
    assert found.duals[0].item() == pytest.approx(0.6 * 3.75, abs=1e-12)
    assert (found.theta.item(), found.dual.item()) == pytest.approx((0.5, 3.0), abs=1e-8)


@BOTH
def test_w1_a_dual_step_every_second_step_leaves_the_dual_alone_in_between(w1, by):
    """θ stays at 2 while λ is 0; λ = .5 (4 − .25) at step 2; then two primal steps under it."""
    found = w1(steps=4).solve(by, primal_steps=2)
    third = 2 - 0.1 * 2 * 1.875 * 2
    fourth = third - 0.1 * (2 * (third - 2) + 2 * 1.875 * third)
    assert found.thetas.flatten().tolist() == pytest.approx([2, 2, third, fourth], abs=1e-12)
    assert found.duals.flatten().tolist() == pytest.approx([0, 1.875, 1.875, 1.875 + 0.5 * (fourth**2 - 0.25)])


X = [[[1, 0], [0, 1], [1, 1], [1, -1]], [[1, 2], [2, 1], [0, 1]], [[1, -1], [2, 0]]]
DUALS, VALUE = (0.79957522, 1.65569363), 4.01253732


@pytest.fixture
def w2(problem):
    """Mean squared errors of a linear model, two constraints."""

    def make(epsilon=(3.0, 2.0), y2=(3.0, 1.0), steps=250):
        past = [(X[1], [1.0, 0.0, 2.0]), (X[2], list(y2))]
        now = (X[0], [3.0, 1.0, 4.0, 2.0])
        return problem(past, now, [*epsilon, 9.0], start=(0.0, 0.0), lr=0.05, dual_lr=0.25, steps=steps)

    return make


def value(theta):
    x, y = torch.tensor(X[0], dtype=torch.float64), torch.tensor([3.0, 1.0, 4.0, 2.0])
    return ((x @ theta - y) ** 2).mean().item()


@BOTH
def test_w2_reaches_its_solution_to_eight_digits(w2, by):
    found = w2().solve(by)
    assert found.theta.tolist() == pytest.approx([1.08088673, -0.29114447], abs=6e-9)
    assert found.dual.tolist() == pytest.approx(DUALS, abs=6e-9)
    assert value(found.theta) == pytest.approx(VALUE, abs=6e-9)


@BOTH
def test_w2_inactive_variant_leaves_the_idle_dual_at_exactly_zero(w2, by):
    found = w2(epsilon=(1.5, 0.5), y2=(0.0, 1.0), steps=500).solve(by)
    assert found.dual[0].item() == pytest.approx(1.766935, abs=1e-6)
    assert found.dual[1].item() == 0.0
    assert value(found.theta) == pytest.approx(5.00958659, abs=6e-9)


CHANGES = {
    (0.1, 0.0): -0.070417,
    (-0.1, 0.0): 0.090649,
    (0.0, 0.1): -0.154084,
    (0.0, -0.1): 0.179023,
    (0.5, 0.5): -0.861455,
}


def test_w2_duals_price_tolerances(w2):
    """ΔP as computed, never below −⟨λ, γ⟩, and its slope is −λ: the inequality alone holds for some wrong λ."""
    reached = {}
    for gamma, change in CHANGES.items():
        reached[gamma] = value(w2((3 + gamma[0], 2 + gamma[1])).by_learner().theta)
        assert reached[gamma] - VALUE == pytest.approx(change, abs=1e-6)
        assert reached[gamma] >= value_bound(VALUE, torch.tensor(DUALS), torch.tensor(gamma)) - 1e-7
    h = 1e-3
    duals = w2().by_learner().dual
    for k, direction in enumerate([(h, 0.0), (0.0, h)]):
        up, down = (value(w2((3 + s * direction[0], 2 + s * direction[1])).by_learner().theta) for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(-duals[k].item(), abs=1e-4)


class Machine(nn.Module):
    """w·x + b, and beside it ½‖w‖²."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(2, 1, dtype=torch.float64)
        nn.init.zeros_(self.line.weight)
        nn.init.zeros_(self.line.bias)

    def forward(self, x):
        half = self.line.weight.square().sum() / 2
        return torch.cat([self.line(x), half.expand(len(x), 1)], 1)


def hinge(outputs, y):
    """1 − y (w·x + b) of a labelled sample, ½‖w‖² of one without a label (0)."""
    sign = y.flatten()
    return torch.where(sign == 0, outputs[:, 1], 1 - sign * outputs[:, 0])


@BOTH
def test_w3_exactly_the_support_vectors_carry_duals(problem, by):
    """min ½‖w‖² s.t. 1 − y_i (w·x_i + b) ≤ 0, per sample: two tasks of three samples, so prices are λ_i / 3."""
    past = [([[1, 1], [2, 2], [1, 3]], [1, 1, 1]), ([[-1, -1], [-2, -2], [-3, -1]], [-1, -1, -1])]
    goal = Objective("margin", hinge, lambda out, y: -hinge(out, y), no_error_rate)
    svm = problem(past, ([[0, 0]], [0]), 0.0, lr=0.3, dual_lr=0.9, steps=500, goal=goal, network=Machine)
    found = svm.solve(by, level="sample")
    assert found.theta.tolist() == pytest.approx([0.5, 0.5, 0.0], abs=1e-8)
    prices = sample_prices(found.dual, torch.tensor([0, 0, 0, 1, 1, 1]))
    assert prices.tolist() == pytest.approx([0.25, 0, 0, 0.25, 0, 0], abs=1e-8)
    assert found.dual[[1, 2, 4, 5]].tolist() == [0.0] * 4
    assert found.core.task_duals().tolist() == pytest.approx([0.25, 0.25], abs=1e-8)
