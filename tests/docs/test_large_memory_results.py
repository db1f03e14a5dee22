"""The page on large memories is what its command makes of the runs that are kept."""

import sys
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "docs/results"
sys.path.append(str(RESULTS))


def test_the_page_is_what_the_command_makes():
    import large

    found = (RESULTS / "large-memory.md").read_text(encoding="utf-8")
    assert found == large.page(*map(large.read, large.DATA)), "run: python docs/results/large.py"
