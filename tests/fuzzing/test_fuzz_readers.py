"""Some thousand mutants of runs, models, audit sets and evidence; `make fuzz` makes a hundred thousand."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="needs limits of the system")


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    found = importlib.util.spec_from_file_location("fuzz_readers", Path(__file__).with_name("fuzz.py"))
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "fuzz_readers", module)
    found.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_readers_of_mutants_raise_only_errors_of_ours(fuzz, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/nonexistent")
    made = fuzz.fuzzed(4000, seed=7)
    assert made.found == {}
    met = {key for key in made.counts if ":" not in key}
    assert met >= {"live", "results", "loading", "verifying", "gating", "life", "resuming"}


def test_a_mutant_is_another_file_and_the_same_seed_gives_the_same(fuzz):
    import random

    content = b'{"stream": "digits", "seed": 3, "options": {"lr": {"value": 0.1, "source": "user"}}}'
    first = [fuzz.mutated(content, "config.json", random.Random(seed)) for seed in range(200)]
    again = [fuzz.mutated(content, "config.json", random.Random(seed)) for seed in range(200)]
    assert first == again
    assert sum(each != content for each in first) > 180
