"""What-if curves of a study's runs: `[whatif]` asks for one of every run, and those that are there are kept."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdcl.errors import PdclError
from pdcl.lab.studies.engine import Ended, Engine, Job
from pdcl.lab.studies.expansion import expand
from pdcl.lab.studies.spec import RunSpec
from pdcl.lab.studies.study import Study, WhatIf


@dataclass(frozen=True)
class Answered:
    """A what-if curve is there: the share of its points above the price line, and whether the price held."""

    spec: RunSpec
    seconds: float
    share_above: float
    held: bool


@dataclass(frozen=True)
class Due:
    """A run that lacks the curve that its study asks for."""

    spec: RunSpec
    run: Path
    asked: WhatIf


def asked_of(study: Study) -> dict[RunSpec, WhatIf]:
    """What each run is asked; of two parts that share a run the last one says it."""
    if study.parts:
        return {spec: asked for part in study.parts.values() for spec, asked in asked_of(part).items()}
    return {} if study.whatif is None else dict.fromkeys(expand(study), study.whatif)


def due(study: Study, finished: Mapping[RunSpec, Path]) -> list[Due]:
    """Curves that finished runs lack, or have with other tolerances, repeats or lengths than are asked for."""
    wanted = [Due(spec, finished[spec], asked) for spec, asked in asked_of(study).items() if spec in finished]
    return [each for each in wanted if not _there(each)]


def solve_curves(curves: Sequence[Due], engine: Engine, tell: Callable[[Answered], None]) -> list[Ended]:
    """Re-solve what is due, run by run; returns those that failed."""
    from pdcl.lab.studies.whatif import numbers_of, whatif, write_numbers

    failures = []
    for each in curves:
        asked, start = each.asked, time.perf_counter()
        how = {"repeats": asked.repeats, "longer": asked.longer}
        try:
            found = whatif(each.run, asked.task - 1, asked.tolerances, **how, engine=engine)
            write_numbers(found, numbers_of(each.run, asked.task - 1))
        except PdclError as error:
            job = Job(each.spec, str(each.run.parent))
            failures.append(Ended(job, time.perf_counter() - start, cause=f"what-if: {error}"))
        else:
            tell(Answered(each.spec, time.perf_counter() - start, found.share_above, found.held))
    return failures


def _there(each: Due) -> bool:
    from pdcl.lab.studies.whatif import numbers_of

    place = numbers_of(each.run, each.asked.task - 1)
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        epsilon = found["tolerance"]
        solved = sorted(epsilon + point["change"] for point in found["points"])
        alike = (found["repeats"], found["longer"]) == (each.asked.repeats, each.asked.longer)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    wanted = sorted(value for value in {*each.asked.tolerances} if value != epsilon)
    return alike and len(solved) == len(wanted) and all(map(math.isclose, solved, wanted))
