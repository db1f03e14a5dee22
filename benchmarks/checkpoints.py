"""What checkpoints cost: the same mnist run with and without them, and the share of it that is spent saving.

python benchmarks/checkpoints.py [stream] [method]
python benchmarks/checkpoints.py --rows 100000      seconds and bytes of a checkpoint of so many stored rows of 12 KB:
                                                    the first one, with nothing new, with 1 % new, and always whole
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

import pdcl
from pdcl.lab.benchmarks.raw.archive import MissingData
from pdcl.learning.loop import Position
from pdcl.past.store import Memory
from pdcl.records import checkpoint
from pdcl.records.row_chain import RowChain


def of_rows(count: int) -> None:
    """A checkpoint writes what is new; without a chain it writes everything."""
    memory = Memory(count)
    for start in range(0, count, 1000):
        memory.append(**_rows(torch.arange(start, min(count, start + 1000))))
    learner = SimpleNamespace(
        store=memory, check_finite=lambda: None, state_dict=lambda: {"memory": memory.state_dict()}
    )
    loop: Any = SimpleNamespace(learner=learner, stream=SimpleNamespace(name=""), position=Position(), state_dict=dict)
    print(f"{count} rows, {memory.stored / 2**20:.0f} MB")
    with tempfile.TemporaryDirectory() as out:
        chain = RowChain()
        for what in ("first", "nothing new", "1 % new", "nothing new"):
            if what == "1 % new":
                slots = torch.randperm(count)[: count // 100]
                memory.write(slots, **_rows(slots))
            _measured(what, Path(out), loop, chain)
        for _ in range(2):
            _measured("always whole", Path(out), loop, None)


def _rows(numbers: torch.Tensor) -> dict[str, torch.Tensor]:
    x = torch.randint(0, 255, (len(numbers), 3, 64, 64), dtype=torch.uint8)
    return {"x": x, "y": numbers % 10, "task": numbers * 0, "id": numbers, "reference": torch.rand(len(numbers))}


def _measured(what: str, out: Path, loop: Any, chain: RowChain | None) -> None:
    wall, cpu, written = time.perf_counter(), time.process_time(), _written()
    checkpoint.write(out, loop, 0, {}, chain)
    wall, cpu, written = time.perf_counter() - wall, time.process_time() - cpu, _written() - written
    print(f"{what:14} {wall:7.2f} s, {cpu:6.2f} s of CPU, {written / 2**20:8.1f} MB written", flush=True)


def _written() -> int:
    """Bytes this process has written."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])


def main() -> None:
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--rows"]:
        of_rows(int(sys.argv[2]))
        return
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
            result = pdcl.run(stream, method, preset="tuned", out=Path(out))
    except MissingData:
        print(f"the data of {stream} are not here, so nothing is measured: pdcl data fetch {stream}")
        return
    wall, cpu = (sum(column) for column in zip(*spent, strict=True))
    print(f"{stream}, {method}: {len(spent)} checkpoints at the default pace")
    print(f"wall  {wall:.3f} s of {result.cost['seconds']:.1f} s: {100 * wall / result.cost['seconds']:.2f} %")
    print(f"cpu   {cpu:.3f} s of {result.cost['cpu_seconds']:.1f} s: {100 * cpu / result.cost['cpu_seconds']:.2f} %")


if __name__ == "__main__":
    main()
