"""Write docs/results/large-memory.md and its figure from the runs of benchmarks/evidence/large_memory.py.

python docs/results/large.py runs/large      keep these runs in data/large_memory.jsonl, and write the page of them
python docs/results/large.py                 the page of data/large_memory.jsonl
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
DATA = HERE / "data" / "large_memory.jsonl"
sys.path.append(str(HERE.parents[1] / "benchmarks" / "evidence"))

import large_memory as study  # noqa: E402
from limits_kept import Book  # noqa: E402

PAGE = """# Limits for networks with a large memory

![A task's own test error by its stated limit: it falls, but where memory is known by heart](../images/large-memory.png)

{short}

A network learns five tasks one after another. Memory holds all past samples or a tenth of them, and each task is passed
over once or twice. Memory is divided evenly, so that nothing but the duals differs: `frozen` ones stay 0, `moving` ones
are the default's. `guards`: 100 samples a task are held back, and steer instead of stored ones.

    python benchmarks/evidence/large_memory.py --out runs/large            # PDCL_DATA: where mnist, organa, speech lie
    python docs/results/large.py runs/large

Up to 600 samples a class; images at 14×14, sound as log spectrograms of 16×16; an MLP 256-256. Limits are error rates
and were fixed beforehand on held-out training data with frozen duals (r): r − 2 points for one past task and r + 10 for
the others, at two positions, and r − 10 for the middle one, which may be out of reach. All errors are in % and of test
data at the end. Seeds: see the tables; intervals are Student's, paired by seed.

## Does a limit steer its task?

The middle task's own test error, by the limit that was stated for it.

{response}

## Are limits kept, and who pays?

Mean excess over the limits of past tasks, and errors: of the task with the strict limit, of the other past tasks, and
of each task right after it was learned. Means over the three settings.

{limits}

## Which memories are learned by heart?

Errors of past tasks with frozen duals. Where stored samples have far less error than test data, their slack says that
the limit is kept, and duals stay at 0.

{heart}

## What this doesn't show

Small networks on vectors. `organa`'s test images come from other scans than its training images, so limits that were
fixed on training data are broken there whatever is done. On `speech` an MLP learns little in one or two passes. Larger
caps (`cap15`) and duals kept from task to task (`warm15`) ran with one seed.
"""


def page(book: Book) -> str:
    return PAGE.format(
        short=SHORT,
        response=study.response_table(book),
        limits=study.excess_table(book),
        heart=study.heart_table(book),
    )


SHORT = """**Where memory holds the past and it is passed over once or twice, a task's error follows its limit.
Where stored samples are learned by heart it doesn't**, since their slack says that the limit is kept. On mnist with all
past samples and one pass the strict task has 6.7 % for the 9.5 % of frozen duals, and limits are exceeded by half a
point less (0.04 to 1.03, three seeds). With a tenth of the samples and two passes stored samples have less than a tenth
of the test error on mnist and organa, and no dual moves.

Samples that are held back (`guard=100`) wake the duals there, and the strict task gains a point or two; limits as a
whole are kept no better.

It is paid for: the new task learns less (13.2 for 11.1 % error on mnist), other past tasks have more error, and over
the three streams the total excess isn't clearly smaller. So no default changed. What the product does with this: [a
broken row says when stored samples are learned by heart](../limits.md)."""


def figure(book: Book, place: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    streams = [name for name in study.STREAMS if any(row["stream"] == name for row in book.rows)]
    _, axes = plt.subplots(1, len(streams), figsize=(3.4 * len(streams), 3.2), layout="constrained", squeeze=False)
    styles = {("all", 1): ("C0", "o"), ("all", 2): ("C1", "s"), ("tenth", 1): ("C2", "^"), ("tenth", 2): ("C3", "D")}
    for axis, name in zip(axes[0], streams, strict=True):
        for (memory, passes), (colour, marker) in styles.items():
            cell = (name, memory, passes)
            middle = (len(study.limits_of(book, cell)[0][1]) - 1) // 2
            rows = [study.rows_of(book, cell, "moving", each) for each in ("strict 1", "strict 3", "impossible")]
            if all(rows):
                errors = [100 * statistics.mean(row["errors"][middle] for row in each) for each in rows]
                label = f"{'all' if memory == 'all' else 'a tenth'}, {passes} pass{'es' * (passes > 1)}"
                axis.plot([10, -2, -10], errors, colour, marker=marker, markersize=4, label=label)
        axis.set(title=name, xlabel="stated limit, points from r", ylim=(0, None))
    axes[0][0].set_ylabel("the task's own test error, %")
    axes[0][0].legend(fontsize=7, title="memory holds", title_fontsize=7)
    plt.savefig(place, dpi=130)


def main() -> None:
    if len(sys.argv) > 1:
        shutil.copy(Path(sys.argv[1]) / "results.jsonl", DATA)
    book = read()
    (HERE / "large-memory.md").write_text(page(book), encoding="utf-8")
    figure(book, HERE.parent / "images" / "large-memory.png")


def read() -> Book:
    with tempfile.TemporaryDirectory() as place:
        shutil.copy(DATA, Path(place) / "results.jsonl")
        return Book(Path(place))


if __name__ == "__main__":
    main()
