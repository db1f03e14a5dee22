"""The first page: what there is to reproduce, what came of the three steps, how many claims held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pdcl.errors import UsageError
from pdcl.lab.paper.claim import Claim
from pdcl.lab.paper.readings import by_setting, readings
from pdcl.lab.paper.runs import HELD, NOT_HELD, NOT_RUN, UNDECIDED, Finding, Runs
from pdcl.lab.paper.steps import lead, paragraphs
from pdcl.methods.catalog import method
from pdcl.records import Row
from pdcl.records.reading import read_config
from pdcl.running.options import plain, standing

Found = Sequence[tuple[Claim, Finding]]
NOTHING_TO_COMPARE = """The copy of the paper that this rests on has blank figures and prints no table of results. So
there is no number to reproduce: what can be tested is what its text and captions say."""


def front(found: Found, printed: Sequence[Row], equal: Sequence[Row], out: Path, how: str) -> str:
    runs, gentle = Runs(printed), Runs(equal)
    claims = f"{out.stem}-claims.md"
    picture = f"![Points gained by each step of the paper, setting by setting]({out.stem}/steps.png)"
    parts = [
        "# The paper, claim by claim",
        lead(runs),
        f"{picture}\n\n{READ}" if (out.parent / out.stem / "steps.png").is_file() else "",
        f"{NOTHING_TO_COMPARE}\nEvery row, table and figure is on [the second page]({claims}).",
        "## The three steps",
        POOLED,
        paragraphs(runs, gentle),
        counted(found),
        CONVEX if (out.parent / f"{out.stem}-convex.md").is_file() else "",
        by_setting(found, runs),
        readings(runs),
        made_by(printed, equal),
        how,
    ]
    return "\n\n".join(part.strip() for part in parts if part)


READ = """*Points: mean over seeds of the method after the arrow minus that before it, with the paired 95 % interval;
a dash has fewer than three seeds. Blue: as printed; orange: what the paper leaves open; green: the preset `equal`.
Diamond: mean over the printed settings that have all seeds, with its interval over seeds. Bars may leave the panel.*"""
CONVEX = """## Where the theory is exact

On convex problems that are solved, with the past whole, duals are prices to eight digits and ε works as the paper says.
The three steps gain at most a point there, and selection loses: [the claims on convex problems](paper-convex.md)."""
POOLED = """*Pooled*: for each seed the mean difference over the settings, then Student's 95 % interval over seeds.
Settings are taken as they are: the interval says nothing of other benchmarks. A setting is one stream at one size of
memory."""


def counted(found: Found) -> str:
    """How many claims held: all rows, those of the paper without A-GEM, and with one interval for all of them."""
    own = [(claim, each) for claim, each in found if claim.counts]
    tested = [each for _, each in own if each.verdict != NOT_RUN]
    once = Counter(each.verdict for each in tested)
    ours = sum(claim.source == "ours" for claim, _ in found)
    easy = len(found) - ours - len(own)
    wide = Counter(each.widened(len(tested)).verdict for each in tested)
    return f"""## How many claims held

Of {len(found)} rows, {ours} are questions of our own and {easy} compare with A-GEM, which is at chance with Adam's
printed rate, so that they can't fail. Of the {len(own)} others **{once[HELD]} held, {once[NOT_HELD]} did not,
{once[UNDECIDED]} are undecided**.

With so many rows some intervals leave 0 out by chance: one in twenty where nothing is there, and half of these on the
claimed side. Widened so that all rows *together* are wrong in one of twenty studies (Bonferroni), {wide[HELD]} hold,
{wide[NOT_HELD]} don't and {wide[UNDECIDED]} are undecided. Five seeds are few for that: their intervals become
more than three times as long. *Undecided* is no evidence for either side."""


def made_by(*families: Sequence[Row]) -> str:
    """Which commits the runs are of, and which of them would be others today."""
    rows = [row for family in families for row in family]
    versions = {row.path: read_config(row.path)["versions"] for row in rows}
    commits = Counter(each.get("commit", "") for each in versions.values())
    named = ", ".join(f"`{commit}` {count}" for commit, count in sorted(commits.items()) if commit)
    nameless = f"; {commits['']} name none" if commits[""] else ""
    text = f"Runs by commit: {named}{nameless}." if named else "No run names its commit."
    first = [row for row in rows if versions[row.path].get("pdcl") == "0.1.0" and row.options.get("rescore") is False]
    chosen = sum(row.options.get("level") == "sample" for row in first)
    moved = Counter(change for row in rows for change in _changed_since(row))
    told = [f"{count} of {change}" for change, count in moved.items()]
    told += [f"{chosen} of pdcl-s by version 0.1.0, which looked once more before it chose samples"] if chosen else []
    stale = f" **Not run again since their rules changed**: {'; '.join(told)}." if told else ""
    return f"## Where the numbers come from\n\n{text}{stale}"


def _changed_since(row: Row) -> Iterator[str]:
    """Options that a run has from its preset, and that the preset now says otherwise."""
    try:
        now = standing(method(row.method), row.stream, row.preset, row.memory)
    except UsageError:
        return  # a method or preset that is not, or no longer, ours
    for name, option in read_config(row.path)["options"].items():
        if option["source"].startswith("preset") and option["value"] != plain(now.get(name)):
            yield f"{row.method} with {name} = {option['value']}, now {now.get(name)}"
