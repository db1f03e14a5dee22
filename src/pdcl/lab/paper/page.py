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
from pdcl.lab.figures.drawing import Wanted, draw_rows
from pdcl.lab.figures.drawn import Drawn
from pdcl.lab.figures.grids import STREAMS
from pdcl.lab.figures.selecting import main_runs, primal_dual
from pdcl.lab.paper.claim import Claim
from pdcl.lab.paper.claims import CLAIMS
from pdcl.lab.paper.front import front
from pdcl.lab.paper.gallery import draw_answers, gallery, left_out
from pdcl.lab.paper.keeping import NAME, keep_runs
from pdcl.lab.paper.reasons import reasons
from pdcl.lab.paper.runs import HELD, NOT_HELD, NOT_RUN, SIZE, UNDECIDED, Finding, Runs
from pdcl.lab.paper.sizes import by_size
from pdcl.lab.paper.steps import draw_steps
from pdcl.lab.paper.untested import untested
from pdcl.records import Group, Row
from pdcl.records.tables import MINUS, markdown, sheets
from pdcl.reports.dossier import read_story
from pdcl.reports.writing import find
from pdcl.storage.disk import write_whole

# Runs to the letter, or as near as they run, count as one family: a stream has one or the other.
PRINTED, EQUAL = "as printed", "equal"
FAMILIES = {PRINTED: ("paper", "tamed", "small-paper"), EQUAL: ("equal", "small-equal")}
HEAD = "| claim | paper | ours | 95 % interval | seeds | verdict | figure | command |"
FORMATS = ("png",)


def write_page(directories: Sequence[Path], out: Path) -> Counter[str]:
    """Write the page, a second one with every row and table, and figures and runs in a directory of its name.

    Returns how many of the paper's claims held.
    """
    found = find(directories)
    known = [row for presets in FAMILIES.values() for row in of_paper(list(found.rows.values()), presets)]
    if not known:
        where = ", ".join(map(str, directories))
        raise UsageError(f"no finished run of `pdcl study paper` in {where}; make some: pdcl study paper --part mnist")
    # Variants of a method, and runs with wrong labels, answer single questions; they stand under `Reasons`.
    own = [row for row in known if row.label == row.method and "stream.noise" not in row.options]
    drawn = draw_rows(own, out.parent / out.stem, FORMATS, Wanted(SIZE, sample_duals=True))
    printed = of_paper(known, FAMILIES[PRINTED])
    equal = of_paper(known, FAMILIES[EQUAL])
    draw_answers(drawn, printed)
    draw_steps(drawn, Runs(printed), Runs(equal))
    drawn.skipped |= {str(error.path): str(error) for error in found.unreadable}
    judgements = {name: judged(of_paper(known, presets)) for name, presets in FAMILIES.items()}
    sections = [
        _head(out),
        *(
            _claims(name, judgements[name], _figures(drawn, out, FAMILIES[name]))
            for name in FAMILIES
            if _any_run(judgements[name])
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
    rest = "\n\n".join(section.strip() for section in sections if section)
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


def judged(rows: Sequence[Row]) -> list[tuple[Claim, Finding]]:
    """Every claim with what these runs say of it."""
    runs = Runs(rows)
    return [(claim, claim.judge(runs)) for claim in CLAIMS]


def _any_run(found: Sequence[tuple[Claim, Finding]]) -> bool:
    return any(finding.verdict != NOT_RUN for _, finding in found)


def _made(directories: Sequence[Path], out: Path, rows: Sequence[Row]) -> str:
    where = " ".join(shlex.quote(_shown(path)) for path in directories)
    kinds = Counter(f"{row.stream} ({row.preset})" for row in rows)
    counted = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return f"""Made by `pdcl paper {where} --out {_shown(out)}` from {len(rows)} runs: {counted}. The runs are those of
`pdcl study paper`; what is needed of them is in [{NAME}]({out.stem}/{NAME}). To go on from them, on any machine:

    pdcl unpack {_shown(out.parent / out.stem / NAME)} --out runs/paper
    pdcl study paper --part mnist --out runs/paper     # runs what is missing; or any other part
    pdcl paper runs/paper --out {_shown(out)}

What the presets change is listed in [presets](../presets.md)."""


def _head(out: Path) -> str:
    return f"""# The paper: every claim, table and figure

What it comes to stands on [the first page]({out.name}).

A claim has *held* where its paired 95 % interval over seeds lies on the claimed side, is *not held* where it lies on
the other, and *undecided* in between. A number is the first method minus the second (forgetting: the second minus the
first). Memory is 500 unless a claim says otherwise. The paper doesn't print where duals start: verdicts that hang on it
have a table of their own, on the first page."""


def _shown(path: Path) -> str:
    """A path as one would type it: relative where it lies below the working directory."""
    shown = os.path.relpath(path)
    return str(path) if shown.startswith("..") else shown


def _claims(name: str, found: Sequence[tuple[Claim, Finding]], figures: dict[tuple[str, bool], str]) -> str:
    """A table of claims. Of the second family only those that its parts of the study are about."""
    told = found if name == PRINTED else [each for each in found if each[1].verdict != NOT_RUN]
    counts = Counter(finding.verdict for _, finding in told)
    order = (HELD, NOT_HELD, UNDECIDED, *([NOT_RUN] if name == PRINTED else []))
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order)
    presets = ", ".join(f"`{preset}`" for preset in FAMILIES[name])
    lines = [
        _line(claim, finding, figures, claim.parts if name == PRINTED else equal_parts(claim))
        for claim, finding in told
    ]
    rest = "" if name == PRINTED else " Other claims are tested with the first presets alone."
    title = f"## Claims, {name}\n\nPresets {presets}: {summary}.{rest}"
    return "\n".join([title, "", HEAD, "|---|---|---:|---:|---:|---|---|---|", *lines])


def equal_parts(claim: Claim) -> tuple[str, ...]:
    """The parts that run a claim's methods with the preset `equal`: all sizes of memory in one; `tiny` has none."""
    return tuple(dict.fromkeys(f"{part.removesuffix('-sizes')}-equal" for part in claim.parts if part != "tiny"))


def _line(claim: Claim, finding: Finding, figures: dict[tuple[str, bool], str], tested_by: Sequence[str]) -> str:
    figure = figures.get((claim.figure, claim.part == "tiny"), "")
    part = f"`pdcl study paper {' '.join(f'--part {each}' for each in tested_by)}`"
    if finding.verdict == NOT_RUN:
        cells = [claim.says, claim.source, "–", "–", "0", NOT_RUN, "", part]
    else:
        known = not math.isnan(finding.low)
        span = f"{_number(finding.low)} to {_number(finding.high)}" if known else "–"
        number = f"{_number(finding.number) if known else _plain(finding.number)} {finding.unit}"
        cells = [claim.says, claim.source, number, span, str(finding.n), f"**{finding.verdict}**", figure, part]
    return "| " + " | ".join(cells) + " |"


def _plain(value: float) -> str:
    """A count as it is; a number of one seed like any other."""
    return f"{value:.0f}" if float(value).is_integer() else _number(value)


def _number(value: float) -> str:
    return f"{value:+.2f}".replace("-", MINUS)


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
    groups = main_runs(rows)
    lines = [_dual_line(member) for member in groups if member.first.memory == SIZE and primal_dual(member.first)]
    if not lines:
        return ""
    head = "| stream | preset | method | memory | λ of past tasks | λ_t, artificial | slack s = L − ε | over ε |"
    about = "At the end of the last task, means over seeds; *over ε* counts past tasks whose mean slack is above 0."
    return f"## Duals and slacks\n\n{about}\n\n" + "\n".join([head, "|---|---|---|---:|---|---:|---|---:|", *lines])


def _dual_line(member: Group) -> str:
    stories = [read_story(row.path, points=100) for row in member.rows]
    duals, slacks = (_means([curve[-1][2] for curve in curves if curve]) for curves in (
        [story.duals.kept() for story in stories], [story.slacks.kept() for story in stories]))  # fmt: skip
    row = member.first
    # A story has the artificial dual first.
    cells = [row.stream, row.preset, member.label, str(row.memory), _list(duals[1:]), _list(duals[:1]), _list(slacks)]
    return "| " + " | ".join([*cells, f"{sum(slack > 0 for slack in slacks)} of {len(slacks)}"]) + " |"


def _means(rows: Sequence[Sequence[float | None]]) -> list[float]:
    columns = [[value for value in column if value is not None] for column in zip(*rows, strict=False)]
    return [statistics.fmean(column) for column in columns if column]


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}".replace("-", MINUS) for value in values)
