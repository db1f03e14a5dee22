"""The study of the paper's claims on convex problems: prices are equalities, and its page says what was measured."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def script(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def digits():
    return script("benchmarks/evidence/convex_claims.py").Stream("digits", 0)


def test_a_dual_is_the_slope_of_the_optimal_value(digits):
    found = script("benchmarks/evidence/convex_claims.py").prices(digits)
    assert len(found["off"]) == 4, "all limits bind"
    assert max(map(abs, found["off"])) < 1e-6
    assert min(found["above"]) > 0, "convex: no solution lies below the line"


def test_limits_are_kept_where_they_can_be_and_certified_where_not(digits):
    kept, lost = digits.life("pdcl0", 1.1), digits.life("pdcl0", 0.3)
    assert not kept.infeasible
    assert float(kept.state.slacks.max()) < 1e-8
    assert lost.infeasible
    assert float(lost.state.slacks.max()) > 0


def test_the_page_is_what_its_script_says():
    assert (ROOT / "docs/results/paper-convex.md").read_text() == script("docs/results/convex.py").page()
