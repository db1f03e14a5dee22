"""Small faults are put into the code one at a time: does a test notice?

First the tests are run once, to see what each takes and which lines it executes. Then each mutant is run on the tests
that execute its lines until one fails:

    python benchmarks/evidence/mutants.py survey OUT tests/algorithm tests/past ...
    python benchmarks/evidence/mutants.py try OUT src/pdcl/algorithm src/pdcl/past/store.py ... --number 300 --seed 0
    python benchmarks/evidence/mutants.py show OUT

Every result is a line of OUT/results.jsonl; an interrupted `try` goes on where it stopped. `try --again` runs the
survivors once more, after a survey of new tests or with more `--seconds` of tests for each. No file in src is changed:
mutants live in forks of one process.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from coverage import Coverage, CoverageData
from mutations import Mutated, Site, sites, swaps

SLOW = 4.0  # CPU seconds under coverage, some 2 without: slower tests are left out, so the share is a lower bound
ENOUGH = 15.0  # CPU seconds of tests that a mutant must outlive, unless `--seconds` says more
OPTIONS = ["-q", "-p", "no:cacheprovider", "-m", "not slow", "-o", "tmp_path_retention_policy=none"]
HEAVY = ["torch", "scipy.stats", "scipy.optimize", "sklearn.linear_model", "safetensors.torch", "hypothesis", "cvxpy"]


class Survey:
    """Writes down what each test took and whether it passed; coverage gets the test's name as its context."""

    def __init__(self, coverage: Coverage, out: Path) -> None:
        self.coverage, self.out = coverage, out

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.coverage.switch_context(item.nodeid)
        self.passed, before = True, sum(os.times()[:4])
        signal.setitimer(signal.ITIMER_PROF, 2 * SLOW)
        result = yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        entry = {"test": item.nodeid, "seconds": round(sum(os.times()[:4]) - before, 3), "passed": self.passed}
        with (self.out / "tests.jsonl").open("a") as file:
            file.write(json.dumps(entry) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed = self.passed and report.outcome != "failed"


def too_slow(*_: object) -> None:
    pytest.fail(f"takes over {2 * SLOW:.0f} CPU seconds")


def survey(out: Path, tests: list[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    name = "+".join(tests).replace("/", ".")[:80]
    coverage = Coverage(data_file=str(out / f"coverage.{name}"), source=["src/pdcl"])
    signal.signal(signal.SIGPROF, too_slow)
    coverage.start()
    pytest.main([*OPTIONS, *tests], plugins=[Survey(coverage, out)])
    coverage.stop()
    coverage.save()


class Tests:
    """What the survey found: the tests of a mutant."""

    def __init__(self, out: Path, enough: float) -> None:
        self.out, self.enough = out, enough
        entries = {entry["test"]: entry for entry in map(json.loads, (out / "tests.jsonl").open())}
        self.seconds = {name: e["seconds"] for name, e in entries.items() if e["passed"] and e["seconds"] <= SLOW}

    @functools.cache  # noqa: B019
    def by_line(self, file: Path) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for path in self.out.glob("coverage.*"):
            data = CoverageData(str(path))
            data.read()
            for line, names in data.contexts_by_lineno(str(file.resolve())).items():
                found.setdefault(line, set()).update(names)
        return found

    def of(self, site: Site) -> list[str]:
        """The tests that execute a mutant's lines, first those that cover much of its file in little time.

        For a line that runs at import: all tests of the file.
        """
        by_line = self.by_line(site.file)
        lines = () if swaps(site) is None else site.lines
        names = set().union(*(by_line.get(line, ()) for line in lines)) & self.seconds.keys()
        names = names or set().union(*by_line.values()) & self.seconds.keys()
        covered = Counter(name for tests in by_line.values() for name in tests)
        order, total = sorted(names, key=lambda name: (self.seconds[name] / covered[name], name)), 0.0
        for i, name in enumerate(order):
            total += self.seconds[name]
            if total > self.enough:
                return order[:i]
        return order


class Trials:
    """Runs mutants in forks of a process in which pytest has collected the tests and imported the package."""

    def __init__(self, todo: list[Site], tests: Tests, out: Path) -> None:
        self.todo, self.tests, self.out = todo, tests, out
        self.sound: dict[str, bool] = {}
        self.told = os.dup(1)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        for site in self.todo:
            importlib.import_module(site.module)
        self.live: dict[CodeType, list[FunctionType]] = {}
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                self.live.setdefault(each.__code__, []).append(each)
        gc.freeze()
        for site in self.todo:
            tests = [name for name in self.tests.of(site) if name in self.items]
            entry = {"mutant": site.id, "killer": self.killer(site, tests), "tests": len(tests)}
            line = json.dumps(entry, ensure_ascii=False) + "\n"
            with (self.out / "results.jsonl").open("a") as file:
                file.write(line)
            os.write(self.told, line.encode())
        return True

    def killer(self, site: Site, tests: list[str]) -> str:
        """The test that kills a mutant, "" for a survivor. One that fails without the mutant too doesn't count."""
        tests = [name for name in tests if self.sound.get(name, True)]
        while tests:
            name = self.failing(tests, site)
            if name not in self.tests.seconds or self.sound.setdefault(name, not self.failing([name], None)):
                return name
            tests = tests[tests.index(name) + 1 :]
        return ""

    def failing(self, tests: list[str], site: Site | None) -> str:
        """The first test that fails, "" where all pass; how the fork ended where it ended otherwise."""
        read, write = os.pipe()
        with tempfile.TemporaryDirectory() as scratch:
            child = os.fork()
            if not child:
                signal.alarm(1200)
                os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch
                for stream in (1, 2):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
                self.run(tests, site, write, scratch)
            os.close(write)
            status = os.waitpid(child, 0)[1]
        with os.fdopen(read) as told:
            name = told.readline().strip()
        if os.WIFSIGNALED(status):
            return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
        return name or ("" if status == 0 else "the import failed")

    def run(self, tests: list[str], site: Site | None, write: int, scratch: str) -> None:
        """Functions get the mutant's code. What runs at import (defaults, constants) needs a fresh import of all."""
        listener, code = Listener(tests, write), 3
        try:
            changes = swaps(site) if site else []
            if changes is not None and all(old in self.live for old, _ in changes):
                for old, new in changes:
                    for function in self.live[old]:
                        function.__code__ = new
                items = [self.items[name] for name in tests]
                items[0].config.pluginmanager.unregister(name="terminalreporter")
                items[0].config.pluginmanager.register(listener)
                for item, following in zip(items, [*items[1:], None], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    if listener.failed:
                        break
                code = 0
            elif site:
                for name in [name for name in sys.modules if name.split(".")[0] in ("pdcl", "tests")]:
                    del sys.modules[name]
                sys.meta_path.insert(0, Mutated(site))  # type: ignore[arg-type]
                files = sorted({name.split("::")[0] for name in tests})
                code = pytest.main([*OPTIONS, "-x", f"--basetemp={scratch}/t", *files], plugins=[listener])
        finally:
            os._exit(code)


class Listener:
    """Keeps to the given tests in their order, and says which one failed first."""

    def __init__(self, tests: list[str], write: int) -> None:
        self.order, self.write, self.failed = {name: i for i, name in enumerate(tests)}, write, False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda item: self.order[item.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """An endless loop ends the fork: each test gets some ten seconds of CPU time."""
        limit = int(time.process_time() + 12)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == "failed":
            self.failed = True
            os.write(self.write, f"{report.nodeid}\n".encode())


def results(out: Path) -> dict[str, dict[str, Any]]:
    """The last trial of every mutant."""
    path = out / "results.jsonl"
    return {entry["mutant"]: entry for entry in map(json.loads, path.open() if path.exists() else ())}


def attempt(asked: argparse.Namespace) -> None:
    for each in HEAVY:
        importlib.import_module(each)
    found = {file for path in map(Path, asked.paths) for file in (path.rglob("*.py") if path.is_dir() else [path])}
    every = [site for file in sorted(found - {*map(Path, asked.without)}) for site in sites(file)]
    drawn = random.Random(asked.seed).sample(every, min(asked.number, len(every)))
    print(f"{len(drawn)} of {len(every)} mutants", flush=True)
    tried, tests = results(asked.out), Tests(asked.out, asked.seconds)
    todo = [s for s in drawn if s.id not in tried or (asked.again and not tried[s.id]["killer"])]
    files = sorted({name.split("::")[0] for site in todo for name in tests.of(site)})
    pytest.main([*OPTIONS, *files], plugins=[Trials(todo, tests, asked.out)])


def show(out: Path) -> None:
    alive = [entry for entry in results(out).values() if not entry["killer"]]
    print(f"{len(results(out)) - len(alive)} of {len(results(out))} mutants killed; alive:")
    for entry in alive:
        print(f"{entry['mutant']}   ({entry['tests']} tests)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["survey", "try", "show"])
    parser.add_argument("out", type=Path)
    parser.add_argument("paths", nargs="*", help="tests to survey, or source files and folders to draw mutants from")
    parser.add_argument("--without", nargs="*", default=[], help="source files to leave out")
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=ENOUGH, help="CPU seconds of tests for each mutant")
    parser.add_argument("--again", action="store_true", help="run survivors once more")
    asked = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as root:
        # Folders of tests that keep none are unlocked: any pytest that ends beside this one would delete them, and
        # the tests that stand in them would fail whatever the mutant.
        os.environ["PYTEST_DEBUG_TEMPROOT"] = root
        if asked.command == "survey":
            survey(asked.out, asked.paths)
        elif asked.command == "try":
            attempt(asked)
        else:
            show(asked.out)


if __name__ == "__main__":
    main()
