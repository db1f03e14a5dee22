"""What checkpoints cost: the same mnist run with and without them, and the share of it that is spent saving.

python benchmarks/checkpoints.py [stream] [method]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import pdcl
from pdcl.records import checkpoint
from pdcl.streams.raw.archive import MissingData


def main() -> None:
    torch.set_num_threads(1)
    stream, method = ([*sys.argv[1:], "mnist", "pdcl"] if len(sys.argv) < 3 else sys.argv[1:])[:2]
    spent: list[tuple[float, float]] = []
    write = checkpoint.write

    def timed(*args: Any) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        write(*args)
        spent.append((time.perf_counter() - wall, time.process_time() - cpu))

    checkpoint.write = timed
    try:
        with tempfile.TemporaryDirectory() as out:
            result = pdcl.run(stream, method, out=Path(out))
    except MissingData:
        print(f"the data of {stream} are not here, so nothing is measured: pdcl data fetch {stream}")
        return
    wall, cpu = (sum(column) for column in zip(*spent, strict=True))
    print(f"{stream}, {method}: {len(spent)} checkpoints at the default pace")
    print(f"wall  {wall:.3f} s of {result.cost['seconds']:.1f} s: {100 * wall / result.cost['seconds']:.2f} %")
    print(f"cpu   {cpu:.3f} s of {result.cost['cpu_seconds']:.1f} s: {100 * cpu / result.cost['cpu_seconds']:.2f} %")


if __name__ == "__main__":
    main()
