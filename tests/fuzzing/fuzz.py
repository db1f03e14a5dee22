"""Every reader of files meets mutants of them: only errors of ours may come out, and nothing may be written outside.

python tests/fuzzing/fuzz.py [MUTANTS [SEED]]      `make fuzz`; exit code 1 where something else came out

Pages and tables read many runs at once, each of them a mutant; other readers meet one mutant at a time.
"""

from __future__ import annotations

import collections
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pdcl
from pdcl.errors import PdclError
from pdcl.lab.comparing import compare, group
from pdcl.lab.comparing.tables import render
from pdcl.lab.figures import drawing
from pdcl.lab.reports.live.following import Directory
from pdcl.lab.studies import whatif
from pdcl.records import survey
from pdcl.records.writing import dumps
from pdcl.release.evidence import verify
from pdcl.reports.writing import report
from pdcl.running.resume import resume

sys.path.insert(0, str(Path(__file__).parent))
from mutants import mutated, signed_again

Reader = Callable[[Path], object]
# A mutant may ask for a million epochs, which is no defect: such work is cut short.
LONGEST_SECONDS = 4
LARGEST_BYTES = 12 * 2**30


class TooLong(BaseException):
    """A reader that works on, as the mutant tells it."""


def live(world: Path) -> None:
    runs = Directory(world / "runs")
    runs.refresh()
    _, rows, _ = runs.changes(-1)
    assert len(rows) >= COPIES, "the page must show every run, the mutants too"
    dumps(rows).encode()
    for row in rows:
        dumps(runs.detail(row["id"])).encode()
    dumps(runs.chart(rows[len(rows) // 2]["id"])).encode()


def results(world: Path) -> None:
    groups = group(survey(world / "runs").rows)
    compared = compare(groups, groups[0].first.label) if groups else []
    for form in ("md", "latex", "csv", "json"):
        render(groups, compared, form).encode()


def reporting(world: Path) -> None:
    report([world / "runs"]).encode()


def life(world: Path) -> None:
    report([world / "model"]).encode()


def figures(world: Path) -> None:
    drawing.draw([world / "runs"], world / "figures", ["svg"])


def resuming(world: Path) -> None:
    resume(world / "runs" / "interrupted")


def rethinking(world: Path) -> None:
    whatif.whatif(world / "runs" / "finished", 0, [0.5])


def loading(world: Path) -> None:
    pdcl.load(world / "model").predict(np.zeros((2, 3), np.float32))


def gating(world: Path) -> None:
    pdcl.gate(world / "model", world / "audit", max_error=0.9, max_drop=0.9, against=world / "model" / "previous")


def gating_a_run(world: Path) -> None:
    pdcl.gate(world / "runs" / "finished", "synthetic", max_error=0.9, ledger=world / "ledger")


def verifying(world: Path) -> None:
    verify(world / "evidence" / "one")


def going_back(world: Path) -> None:
    pdcl.rollback(world / "model")


# What pages and tables read of a run.
READ = ("config.json", "result.json", "events.jsonl", "memory.safetensors")
# Where a reader's files lie, and how often it is chosen: drawing and training take long.
READERS: list[tuple[Reader, tuple[str, ...], int]] = [
    (live, READ, 20),
    (results, READ, 60),
    (loading, ("model",), 400),
    (verifying, ("evidence",), 100),
    (life, ("model",), 40),
    (gating, ("model", "audit"), 60),
    (reporting, READ, 2),
    (resuming, ("runs/interrupted",), 30),
    (gating_a_run, ("runs/finished",), 10),
    (going_back, ("model",), 10),
    (rethinking, ("runs/finished/config.json",), 4),
    (figures, READ, 1),
]
OF_MANY = (live, results, reporting, figures)
# After these everything is looked through: they write, as resuming does.
WRITERS = (figures, gating, gating_a_run, going_back, resuming, rethinking)
COPIES = 60


class Enough(Exception):
    pass


def build(world: Path) -> None:
    """A finished run, an interrupted one, a model with an earlier state, its audit set and evidence."""

    def stop(event: Any) -> None:
        if event.kind == "evaluated" and event.task == 1:
            raise Enough

    options = {"memory": 6, "network": "linear", "epochs": 1, "tolerance": 0.5}
    stream = pdcl.stream("synthetic", tasks=2, size=20, test_size=6, dim=3)
    for name, listeners in (("finished", []), ("interrupted", [stop])):
        with suppress(Enough):
            pdcl.run(stream, "pdcl", out=world / name, listeners=listeners, **options)
        (world / "runs").mkdir(exist_ok=True)
        next((world / name).iterdir()).rename(world / "runs" / name)
        (world / name).rmdir()
    for copy in range(COPIES):
        kind = "interrupted" if copy % 3 == 2 else "finished"
        shutil.copytree(world / "runs" / kind, world / "runs" / f"{kind}-{copy}")
    chance = np.random.default_rng(0)
    learner = pdcl.PDCL("linear", memory=20, guard=4, witness=4, tolerance="+50pt", lr=0.01, device="cpu")
    for number, labels in enumerate((["a", "b"], ["c", "d"])):
        x, y = chance.normal(size=(60, 3)).astype(np.float32), np.asarray(labels * 30)
        segments = {"plan": ["gold", "basic"] * 30}
        learner.learn(x, y, name=f"m{number}", epochs=1, columns=segments, audit=world / "audit", audit_share=0.3)
        learner.save(world / "model")
    evidence = world / "evidence" / "one"
    pdcl.gate(world / "model", world / "audit", max_error=0.9, looks=10**6, evidence=evidence)


def _stamp(path: Path) -> tuple[int, int, int]:
    about = path.stat()
    return about.st_ino, about.st_mtime_ns, about.st_size


class Fuzz:
    """The same seed gives the same mutants."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.chance = place, random.Random(seed)
        self.base, self.world = place / "base", place / "world"
        os.environ["PDCL_LEDGERS"] = str(self.base / "ledgers")
        build(self.base)
        (place / "precious").write_text("untouched")
        shutil.copytree(self.base, self.world)
        os.environ["PDCL_LEDGERS"] = str(self.world / "ledgers")
        self.files = {path.relative_to(self.base) for path in self.base.rglob("*") if path.is_file()}
        self.contents = {name: (self.base / name).read_bytes() for name in self.files}
        self.stamps = {name: _stamp(self.world / name) for name in self.files}
        runs = sorted((self.base / "runs").iterdir())
        self.by_run = [[f"runs/{run.name}/{name}" for name in READ if (run / name).exists()] for run in runs]
        self.counts: collections.Counter[str] = collections.Counter()
        self.found: dict[str, str] = {}

    def one(self) -> int:
        """Let one reader meet one mutant, or as many as it reads at once; how many."""
        reader, below, _ = self.chance.choices(READERS, [weight for *_, weight in READERS])[0]
        if reader in OF_MANY:
            chosen = [self.chance.choice(files) for files in self.by_run]
        else:
            files = sorted(str(f) for f in self.files if any(f.is_relative_to(each) for each in below))
            chosen = [self.chance.choice(files)]
        contents = {name: self._change(name) for name in chosen}
        self._judge(reader, contents)
        if reader in WRITERS:
            self._restore()
        # In any case: a mutant of the same size that was written within one tick of the clock has the same stamp.
        touched = {Path(name) for name in chosen} | {Path(name).with_name("manifest.json") for name in chosen}
        self._put_back(touched & self.files)
        assert sorted(p.name for p in self.place.iterdir()) == ["base", "precious", "world"], "written outside"
        assert (self.place / "precious").read_text() == "untouched"
        return len(chosen)

    def _put_back(self, names: set[Path]) -> None:
        for name in names:
            (self.world / name).write_bytes(self.contents[name])
            self.stamps[name] = _stamp(self.world / name)

    def _change(self, name: str) -> bytes:
        victim = self.world / name
        content = mutated(self.contents[Path(name)], name, self.chance)
        victim.write_bytes(content)
        if self.chance.random() < 0.5:
            with suppress(ValueError, AttributeError, TypeError, KeyError, RecursionError):
                signed_again(victim)
        return content

    def _judge(self, reader: Reader, contents: dict[str, bytes]) -> None:
        what = reader.__name__
        self.counts[what] += len(contents)
        try:
            with limited():
                reader(self.world)
            self.counts[f"{what}: read"] += 1
        except PdclError:
            self.counts[f"{what}: refused"] += 1
        except TooLong:
            self.counts[f"{what}: long"] += 1
        except Exception as error:
            if isinstance(error, MemoryError) or "allocate" in str(error):
                self.counts[f"{what}: large"] += 1
                return
            self.counts[f"{what}: RAW"] += 1
            self._note(what, contents, error)

    def _note(self, what: str, contents: dict[str, bytes], error: Exception) -> None:
        contents = contents if len(contents) == 1 else self._alone(what, contents, type(error))
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "pdcl" in f.filename]
        at = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        key = f"{what} {type(error).__name__} {at}"
        if key not in self.found:
            kept = Path(tempfile.mkdtemp(prefix="fuzz-"))
            for number, content in enumerate(contents.values()):
                (kept / f"{number}.bin").write_bytes(content)
            named = ", ".join(contents)
            self.found[key] = f"{named}: {str(error)[:200]!r} ({kept})\n" + "".join(traceback.format_exception(error))
            print(f"{key}\n{self.found[key]}", file=sys.stderr, flush=True)

    def _alone(self, what: str, contents: dict[str, bytes], kind: type[Exception]) -> dict[str, bytes]:
        """The first of many mutants that is enough for such an error."""
        reader = next(each for each, *_ in READERS if each.__name__ == what)
        for name, content in contents.items():
            self._restore()
            (self.world / name).write_bytes(content)
            with suppress(PdclError, TooLong):
                try:
                    reader(self.world)
                except kind:
                    return {name: content}
        return contents

    def _restore(self) -> None:
        """Put the world back: readers may have written into it, as resuming does."""
        there = {path.relative_to(self.world): path for path in self.world.rglob("*") if path.is_file()}
        for extra in there.keys() - self.files:
            there[extra].unlink()
        for name, stamp in self.stamps.items():
            place = self.world / name
            if name not in there or _stamp(place) != stamp:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(self.contents[name])
                self.stamps[name] = _stamp(place)


@contextmanager
def limited() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooLong

    # Of its own computing time, so that a busy machine changes nothing.
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fuzzed(mutants: int, seed: int, say: Callable[[str], None] = lambda text: None) -> Fuzz:
    """So many mutants, each met by one reader."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    real = os.fsync
    # Nothing here is about power cuts.
    os.fsync = lambda handle: None
    carried, whatif._carried_out = whatif._carried_out, lambda jobs, *_: [whatif.carry_out(job) for job in jobs]
    try:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
            os.environ["XDG_CACHE_HOME"] = place + "-cache"
            work, start = Fuzz(Path(place), seed), time.monotonic()
            met = told = 0
            while met < mutants:
                met += work.one()
                if met - told >= 2000:
                    told = met
                    say(f"{met:,} mutants, {time.monotonic() - start:.0f} s, {len(work.found)} kinds of raw errors")
            return work
    finally:
        os.fsync, whatif._carried_out = real, carried


def main(argv: list[str]) -> int:
    mutants, seed = int(argv[0]) if argv else 100_000, int(argv[1]) if len(argv) > 1 else 0
    soft = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (LARGEST_BYTES, soft))
    made = fuzzed(mutants, seed, lambda text: print(text, flush=True))
    print(json.dumps(dict(sorted(made.counts.items())), indent=1))
    return 1 if made.found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
