"""The benchmarks of the paper and one of text: what each is, without importing any of them (or torch)."""

from __future__ import annotations

from pdcl.lab.benchmarks.raw.sources import BANKING77, MNIST, ORGANA, SPEECH, TINY_IMAGENET, Source
from pdcl.streams.catalog import Entry


def _benchmark(source: Source, summary: str, tasks: int, classes: int, regime: str = "offline") -> Entry:
    place = f"pdcl.lab.benchmarks.{source.name}:load"
    about = summary, tasks, classes, regime, source.size, source.licence
    return Entry(source.name, place, *about, needs_download=True, reference=source.reference)


BENCHMARKS = (
    Entry(
        "synthetic",
        "pdcl.lab.benchmarks.synthetic:load",
        "Gaussian classes with known difficulty per task; made on the spot",
        tasks=5,
        classes=10,
        licence="MIT",
    ),
    _benchmark(MNIST, "handwritten digits, 28×28, one pass", tasks=5, classes=10, regime="online"),
    _benchmark(ORGANA, "organs in abdominal CT, 28×28", tasks=5, classes=10),
    _benchmark(SPEECH, "spoken words, one second at 8 kHz, split by speaker", tasks=5, classes=10),
    _benchmark(TINY_IMAGENET, "photographs, 64×64 (size=32: halved), the first forty classes", tasks=10, classes=40),
    _benchmark(BANKING77, "customers' questions to a bank, as features (features=minilm)", tasks=7, classes=77),
)
