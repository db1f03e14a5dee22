"""Every example in a docstring runs, wherever it stands."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
EXAMPLE = re.compile(r"^ *>>> ", re.MULTILINE)


def examples_by_module():
    """How many examples each module's text has."""
    counts = {path: len(EXAMPLE.findall(path.read_text(encoding="utf-8"))) for path in (SOURCE / "pdcl").rglob("*.py")}
    names = {path: ".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in counts}
    return {names[path].removesuffix(".__init__"): count for path, count in sorted(counts.items()) if count}


MODULES = examples_by_module()


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    """As many as its text has: one that doctest doesn't find, say in a nested function, is no example."""
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
    assert found.attempted == MODULES[name]


def test_no_module_with_examples_is_left_out():
    assert len(MODULES) >= 30
