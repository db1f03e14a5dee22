"""The directory of `pdcl study paper` as one Markdown page: claims, figures, tables, and what duals and slacks say."""

from __future__ import annotations

import math
import os
import shlex
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pdcl.errors import UsageError
from pdcl.lab.comparing import Group
from pdcl.lab.comparing.tables import markdown, sheets
from pdcl.lab.figures import maps
from pdcl.lab.figures.drawing import Wanted, draw_rows
from pdcl.lab.figures.drawn import Drawn
from pdcl.lab.figures.grids import STREAMS
from pdcl.lab.figures.selecting import main_runs, options_given, primal_dual
from pdcl.lab.paper.cells import row_of, section, shown
from pdcl.lab.paper.claim import Claim
from pdcl.lab.paper.claims import CLAIMS
from pdcl.lab.paper.front import Found, front
from pdcl.lab.paper.gallery import draw_answers, gallery, left_out
from pdcl.lab.paper.measures import MEASURED, measured_on_snapshot
from pdcl.lab.paper.reasons import reasons
from pdcl.lab.paper.runs import HELD, NOT_HELD, NOT_RUN, SIZE, UNDECIDED, Finding, Runs
from pdcl.lab.paper.sizes import by_size
from pdcl.lab.paper.steps import draw_steps
from pdcl.lab.paper.untested import untested
from pdcl.lab.reports.dossier import read_story
from pdcl.lab.reports.runs import find
from pdcl.lab.reports.thinning import Curve
from pdcl.lab.studies.packing import DUAL_STEPS, pack
from pdcl.records import Row
from pdcl.records.writing import dumps
from pdcl.storage.disk import reported, write_whole

# Runs to the letter, or as near as they run, count as one family: a stream has one or the other.
PRINTED, EQUAL = "as printed", "equal"
FAMILIES = {PRINTED: ("paper", "tamed", "small-paper"), EQUAL: ("equal", "small-equal")}
FORMATS = ("png",)
NAME = "runs.jsonl.gz"
MIDDLE_AND_LAST = 2
# What is asked of runs with another tolerance is how their duals grow.
SWEPT = "tolerance"
DUALS = """## Duals and slacks

At the end of the last task, means over seeds; *over ε* counts past tasks whose mean slack is above 0."""


def write_page(directories: Sequence[Path], out: Path) -> Counter[str]:
    """Write the page, a second one with every row and table, and figures and runs in a directory of its name.

    Returns how many of the paper's claims held.
    """
    there = find(directories)
    known = [row for presets in FAMILIES.values() for row in of_paper(list(there.rows.values()), presets)]
    if not known:
        where = ", ".join(map(str, directories))
        raise UsageError(f"no finished run of `pdcl study paper` in {where}; make some: pdcl study paper --part mnist")
    # Variants of a method, and runs with wrong labels, answer single questions; they stand under `Reasons`.
    own = [row for row in known if row.label == row.method and "stream.noise" not in row.options]
    drawn = draw_rows(own, out.parent / out.stem, FORMATS, Wanted(SIZE, sample_duals=True))
    printed, equal = (of_paper(known, FAMILIES[name]) for name in (PRINTED, EQUAL))
    draw_answers(drawn, printed)
    draw_steps(drawn, Runs(printed), Runs(equal))
    drawn.skipped |= {str(error.path): str(error) for error in there.unreadable}
    judgements = {
        name: [(claim, claim.judge(runs)) for claim in CLAIMS]
        for name, runs in ((PRINTED, Runs(printed)), (EQUAL, Runs(equal)))
    }
    sections = [
        _head(out),
        *(
            _claims(name, found, _figures(drawn, out, FAMILIES[name]))
            for name, found in judgements.items()
            if any(finding.verdict != NOT_RUN for _, finding in found)
        ),
        untested(),
        by_size(printed),
        "## Numbers\n\n" + "\n".join(markdown(sheet) for sheet in sheets(main_runs(own))),
        _duals(own),
        reasons(printed),
        gallery(drawn, out, FAMILIES),
        left_out(drawn),
    ]
    keep_runs(known, drawn, out.parent / out.stem)
    first = front(judgements[PRINTED], printed, equal, out, _made(directories, out, known))
    write_whole(out, first.encode() + b"\n")
    rest = "\n\n".join(each.strip() for each in sections if each)
    write_whole(out.with_stem(f"{out.stem}-claims"), rest.encode() + b"\n")
    return Counter(finding.verdict for claim, finding in judgements[PRINTED] if claim.counts)


def of_paper(rows: Sequence[Row], presets: Sequence[str]) -> list[Row]:
    """Runs on the paper's streams by these presets; where a stream has runs by several, those by the commonest."""
    found: list[Row] = []
    for stream in STREAMS:
        counts = Counter(row.preset for row in rows if row.stream == stream and row.preset in presets)
        chosen = max(counts, key=lambda preset: counts[preset], default=None)
        found += [row for row in rows if row.stream == stream and row.preset == chosen]
    return found


def _made(directories: Sequence[Path], out: Path, rows: Sequence[Row]) -> str:
    where = " ".join(shlex.quote(_typed(path)) for path in directories)
    kinds = Counter(f"{row.stream} ({row.preset})" for row in rows)
    counted = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return f"""Made by `pdcl paper {where} --out {_typed(out)}` from {len(rows)} runs: {counted}. The runs are those of
`pdcl study paper`; what is needed of them is in [{NAME}]({out.stem}/{NAME}). To go on from them, on any machine:

    pdcl unpack {_typed(out.parent / out.stem / NAME)} --out runs/paper
    pdcl study paper --part mnist --out runs/paper     # runs what is missing; or any other part
    pdcl paper runs/paper --out {_typed(out)}

What the presets change is listed in [presets](../presets.md)."""


def _head(out: Path) -> str:
    return f"""# The paper: every claim, table and figure

What it comes to stands on [the first page]({out.name}).

A claim has *held* where its paired 95 % interval over seeds lies on the claimed side, is *not held* where it lies on
the other, and *undecided* in between. A number is the first method minus the second (forgetting: the second minus the
first). Memory is 500 unless a claim says otherwise. The paper doesn't print where duals start: verdicts that hang on it
have a table of their own, on the first page."""


def _typed(path: Path) -> str:
    """A path as one would type it: relative where it lies below the working directory."""
    shown = os.path.relpath(path)
    return str(path) if shown.startswith("..") else shown


def _claims(name: str, found: Found, figures: dict[tuple[str, bool], str]) -> str:
    """A table of claims. Of the second family only those that its parts of the study are about."""
    printed = name == PRINTED
    told = [each for each in found if printed or each[1].verdict != NOT_RUN]
    counts = Counter(finding.verdict for _, finding in told)
    order = (HELD, NOT_HELD, UNDECIDED, *([NOT_RUN] if printed else []))
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order)
    presets = ", ".join(f"`{preset}`" for preset in FAMILIES[name])
    rest = "" if printed else " Other claims are tested with the first presets alone."
    lines = [_line(*each, figures, each[0].parts if printed else equal_parts(each[0])) for each in told]
    text = f"## Claims, {name}\n\nPresets {presets}: {summary}.{rest}"
    return section(text, "claim | paper | ours | 95 % interval | seeds | verdict | figure | command", "llrrrlll", lines)


def equal_parts(claim: Claim) -> tuple[str, ...]:
    """The parts that run a claim's methods with the preset `equal`: all sizes of memory in one; `tiny` has none."""
    return tuple(dict.fromkeys(f"{part.removesuffix('-sizes')}-equal" for part in claim.parts if part != "tiny"))


def _line(claim: Claim, finding: Finding, figures: dict[tuple[str, bool], str], tested_by: Sequence[str]) -> str:
    part = f"`pdcl study paper {' '.join(f'--part {each}' for each in tested_by)}`"
    if finding.verdict == NOT_RUN:
        return row_of(claim.says, claim.source, "–", "–", "0", NOT_RUN, "", part)
    low, number, high = (_number(each) for each in (finding.low, finding.number, finding.high))
    span = "–" if math.isnan(finding.low) else f"{low} to {high}"
    if math.isnan(finding.low) and float(finding.number).is_integer():
        number = f"{finding.number:.0f}"  # a count as it is
    figure = figures.get((claim.figure, claim.part == "tiny"), "")
    verdict = f"**{finding.verdict}**"
    return row_of(claim.says, claim.source, f"{number} {finding.unit}", span, str(finding.n), verdict, figure, part)


def _number(value: float) -> str:
    return shown(value, "+.2f")


def _figures(drawn: Drawn, out: Path, presets: Sequence[str]) -> dict[tuple[str, bool], str]:
    """Links by the name that claims call a figure, without the preset, and whether it is one of the small presets."""
    # What no figure shows stands in a table.
    found = {("what-wrong-labels-do", False): "[table](#what-wrong-labels-do)"}
    for preset in presets:
        for path in (each for each in drawn.paths if each.stem.endswith(f"-{preset}")):
            name = path.stem.removesuffix(f"-{preset}")
            if not name.endswith("-small"):
                found.setdefault((name, preset.startswith("small-")), f"[{path.stem}]({out.stem}/{path.name})")
    return found


def _duals(rows: Sequence[Row]) -> str:
    """Final λ and slack of every past task, for the reader who asks why a claim failed."""
    groups = [member for member in main_runs(rows) if member.first.memory == SIZE and primal_dual(member.first)]
    columns = "stream | preset | method | memory | λ of past tasks | λ_t, artificial | slack s = L − ε | over ε"
    return section(DUALS, columns, "lllrlrlr", [_dual_line(member) for member in groups])


def _dual_line(member: Group) -> str:
    stories = [read_story(row.path, points=100) for row in member.rows]
    duals, slacks = (_last(curve) for curve in ([s.duals for s in stories], [s.slacks for s in stories]))
    row = member.first
    # A story has the artificial dual first.
    numbers = (", ".join(shown(each) for each in part) for part in (duals[1:], duals[:1], slacks))
    over = f"{sum(slack > 0 for slack in slacks)} of {len(slacks)}"
    return row_of(row.stream, row.preset, member.label, str(row.memory), *numbers, over)


def _last(curves: Sequence[Curve]) -> list[float]:
    """What curves of several runs end with, column by column: means over runs."""
    ends = [kept[-1][2] for curve in curves if (kept := curve.kept())]
    columns = [[value for value in column if value is not None] for column in zip(*ends, strict=False)]
    return [statistics.fmean(column) for column in columns if column]


def keep_runs(rows: Sequence[Row], drawn: Drawn, place: Path) -> Path:
    """Pack these runs into `place`: what the page needs of them, and no sample of anybody's data.

    Runs whose duals are drawn over time, and all at other tolerances, keep a dozen dual steps of each task, others the
    middle one and the last; those that a map shows keep the map.
    """
    by_path = {row.path: row for row in rows}

    def extra(run: Path) -> dict[str, bytes]:
        files = {each.name: each.read_bytes() for each in sorted(run.glob("whatif-task*.json"))}
        files[MEASURED] = dumps(measured_on_snapshot(by_path[run])).encode()
        return files | ({maps.FILE: dumps(drawn.mapped[run].as_json()).encode()} if run in drawn.mapped else {})

    def steps(run: Path) -> int:
        return DUAL_STEPS if run in drawn.priced or SWEPT in options_given(by_path[run]) else MIDDLE_AND_LAST

    with reported(place / NAME):
        pack(by_path, place / NAME, extra, steps)
    return place / NAME
