"""The paired gate passes a model whose drop is at the limit at most as often as stated.

For n ≤ 300 by exact enumeration of all outcomes, over all models with that drop; to n = 2000 by simulation, which fails
if wrong verdicts are more than the 1 − 10⁻⁶ quantile of Bin(A, 0.05): a correct gate fails one such test in a million.
"""

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from pdcl.judging.paired import change_above
from pdcl.release.deciding import holm, passes

PAGE = Path(__file__).parents[2] / "docs" / "results" / "gate.py"
LIMIT, LEVEL, AUDITS = 0.02, 0.05, 4000


@pytest.fixture(scope="module")
def enumeration():
    found = importlib.util.spec_from_file_location("gate_tables", PAGE)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("n", [40, 150])
def test_no_model_at_the_limit_passes_more_often_than_the_level(enumeration, n):
    found = enumeration.worst(n, LEVEL)
    assert found <= LEVEL
    assert n < 150 or found > 0.7 * LEVEL, "it is not merely never passing"


@pytest.mark.slow
@pytest.mark.parametrize("level", [LEVEL, LEVEL / 10, LEVEL / 12])
@pytest.mark.parametrize("n", [25, 100, 200, 250, 300])
def test_no_model_at_the_limit_passes_more_often_than_the_level_for_larger_audits(enumeration, n, level):
    assert enumeration.worst(n, level) <= level


@pytest.mark.slow
@pytest.mark.parametrize(("changed", "paired", "unpaired"), [(0.05, 840, 1560)])
def test_pairing_needs_half_the_samples(enumeration, changed, paired, unpaired):
    assert enumeration.needed(enumeration.paired_power, changed, LEVEL) == pytest.approx(paired, rel=0.05)
    assert enumeration.needed(enumeration.unpaired_power, 0.1, LEVEL) == pytest.approx(unpaired, rel=0.05)


@cache
def p(b, c, n, level):
    return change_above(b, c, n, LIMIT, level)


def audits(seed, n, drop, changed, many):
    """p-values of "dropped by more than the limit" in `many` simulated audits at LEVEL, LEVEL/10 and LEVEL/12."""
    rates = [(changed + drop) / 2, (changed - drop) / 2, 1 - changed]
    return np.random.default_rng(seed).multinomial(n, rates, many)[:, :2]


def ps(counts, n, level):
    return np.asarray([p(int(b), int(c), n, level) for b, c in counts])


def most(audits, level=LEVEL):
    return binom.ppf(1 - 1e-6, audits, level)


SIZES = [
    pytest.param(400, 0.05),
    *(pytest.param(*each, marks=pytest.mark.slow) for each in [(1000, 0.1), (2000, 0.05)]),
]


@pytest.mark.parametrize(("n", "changed"), SIZES)
def test_one_segment_at_the_limit(n, changed):
    assert (ps(audits(1, n, LIMIT, changed, AUDITS), n, LEVEL) <= LEVEL).sum() <= most(AUDITS)


@pytest.mark.parametrize(("n", "changed"), SIZES)
def test_ten_segments_of_which_one_is_at_the_limit(n, changed):
    """The others pass for sure: the worst case of a verdict that needs every segment."""
    at = ps(audits(2, n, LIMIT, changed, AUDITS), n, LEVEL / 10)
    every = np.column_stack([at, np.full((AUDITS, 9), 1e-12)])
    wrong = passes(every, LEVEL) | holm(every, LEVEL)[:, 0]
    assert wrong.sum() <= most(AUDITS)


@pytest.mark.parametrize(("n", "changed"), SIZES)
def test_ten_segments_at_the_limit(n, changed):
    every = ps(audits(3, n, LIMIT, changed, AUDITS), n, LEVEL / 10).reshape(-1, 10)
    assert (passes(every, LEVEL) | holm(every, LEVEL).any(axis=1)).sum() <= most(len(every))


@pytest.mark.parametrize(("n", "changed"), SIZES)
def test_twelve_looks_until_one_passes(n, changed):
    every = ps(audits(4, n, LIMIT, changed, 12 * 1000), n, LEVEL / 12).reshape(-1, 12)
    assert (every <= LEVEL / 12).any(axis=1).sum() <= most(len(every))


def test_without_shares_of_the_level_twelve_looks_pass_far_too_often():
    every = ps(audits(4, 400, LIMIT, 0.05, 12 * 300), 400, LEVEL).reshape(-1, 12)
    assert (every <= LEVEL).any(axis=1).mean() > 3 * LEVEL
