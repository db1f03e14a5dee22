"""Results of the studies of `exact`: one JSON object a line, with the command, the commit, CPU seconds and bytes."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Job = tuple[Row, Callable[[], Row]]
HERE = Path(__file__).resolve().parent


def commit() -> str:
    """The commit that the product is at; + where its files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=True).stdout.strip()

    return git("log", "-1", "--format=%h", "--", "../../src") + ("+" if git("status", "--short", "../../src") else "")


class Book:
    """place: a folder; results of one part are its file exact_PART.jsonl. A job that is there is not done again."""

    def __init__(self, place: Path, part: str) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.file, self.part = place / f"exact_{part}.jsonl", part
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.rows: list[Row] = [json.loads(line) for line in lines]
        self.known = {row["key"] for row in self.rows}
        self.commit = commit()

    def carry_out(self, jobs: Iterator[Job], until: float) -> bool:
        """Do what is missing; False if the time was over first."""
        for about, work in jobs:
            key = " ".join(str(value) for value in about.values())
            if key in self.known:
                continue
            if time.time() > until:
                return False
            start = time.process_time()
            row = {"key": key, **about, **work(), "cpu": round(time.process_time() - start, 2)}
            row |= {"commit": self.commit, "command": f"python benchmarks/evidence/exact.py --parts {self.part}"}
            self.rows.append(row)
            self.known.add(key)
            with self.file.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(key, f"{row['cpu']:.1f} s", flush=True)
        return True
