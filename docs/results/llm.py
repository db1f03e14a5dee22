"""Write docs/results/llm.md and its figure from the runs of benchmarks/evidence/llm.py.

python docs/results/llm.py runs/llm/results.jsonl      keep these runs in data/llm.jsonl, and write the page of them
python docs/results/llm.py                             the page of data/llm.jsonl
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import llm_tables as found

PAGE = """# Limits for a language model

{kill}

What `ConstrainedTrainer` keeps and what it costs, beside the usual ways at equal tokens. How to use it: [the
guide](../llm.md).

    python benchmarks/evidence/llm.py --out runs/llm      # PDCL_DATA: a directory with tinyshakespeare/ and banking77/
    python docs/results/llm.py runs/llm/results.jsonl

A byte-level Llama of 52,000 parameters knows Python's library (code), Shakespeare and Python's manual. It learns bank
customers' questions for {steps} steps of 32 windows of 32 bytes: old and new windows together, in every method, so
that tokens are equal. Fifteen sets of limits were fixed before the first run, five each of one, two and three limits.
Options are the defaults, chosen on other limits and seeds. All numbers are of 800 test windows of each corpus, from
other documents. {seeds}

## In short

{short}

![Left: stated against reached. Right: the new text's loss against the old texts' losses.](../images/llm.png)

## Stated and reached

Factors of the loss before training. In bold: over the limit by more than noise (two standard errors of the test). A
dash: no limit, and nothing of this corpus is replayed.

{stated}

## The front of fixed mixes

Old windows of all three corpora in equal parts, at equal tokens. A setting is kept if all its limits are, within
noise.

{mixes}

**Regret**: the new text's loss of the run with limits, against the best fixed mix that keeps the same limits within
noise (with the same seed). `grid` adds {grid} mixes with a share for each corpus (seed 0 alone). Below 0: the run
with limits is better than all of them. The seven mixes are coarse: where a limit lies between two of them, the better
one is far away, and that is what −11 % says. The grid was made around some of the settings, so there it is a fair
rival: one run with limits against {grid} runs, of which somebody picks the best by looking at the test. Two of its
three parts were added after the first seed had been seen, since the first part had no mix near the tight limits.

{regret}

## Which part does it

The five settings with three limits. `frozen`: the duals that the run ended with, from its first step on; `mean`:
their mean over the run. Both know what only a finished run can tell. `beside`: 16 old windows beside 16 new ones in
each step with a dual, weighted. `again`: the same limits with another seed. `self`: limits and replay on text that
the model wrote before training.

{parts}

{words}

## Anchoring instead

KL(before ‖ now) on the new text, at six weights: no old text is needed, and a second model runs in each step.

{anchors}

## What it costs

CPU seconds of a run, over those of plain training with the same seed. Runs are short, and the model so small that
calls cost more than arithmetic. With 1 M parameters, three limits and 1,000 steps of 16 texts of 128 tokens it is
1.09 (`python benchmarks/llm_cost.py --steps 4`, one run): 1.01 for the steps, .04 for 20 looks, .03 for guards and
witnesses before and after. The goal was 1.15.

{costs}

## What this doesn't show

- One small model from one pretraining, on bytes; seeds change batches, draws and guards.
- A limit of a run is a factor of what its own guards had. The test speaks of other windows, so a miss of about a
  standard error of the guards is no fault of the duals.
- Who replays nothing of a corpus without a limit gives it up: see the rows with dashes.
"""


def page() -> str:
    return PAGE.format(
        kill=found.kill(), steps=200, seeds=found.seeds(), short=found.short(), stated=found.stated(),
        mixes=found.mixes(), grid=len(found.of("grid")), regret=found.regret(), parts=found.parts(),
        words=found.words(), anchors=found.anchors(), costs=found.costs(),
    )  # fmt: skip


def keep(place: Path) -> None:
    """Runs without the path of their duals."""
    rows = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]
    lines = [json.dumps({k: v for k, v in row.items() if k not in ("path", "slacks")}) for row in rows]
    found.DATA.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        keep(Path(sys.argv[1]))
    found.read()
    (found.HERE / "llm.md").write_text(page(), encoding="utf-8")
    found.figure()
