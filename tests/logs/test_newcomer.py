"""A newcomer's path, as docs/logs.md has it: two lm-eval folders → plan → verdict → evidence → the Action's summary."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from log_rows import asked, flipped, write_rows
from test_action import step

from pdcl.cli import main

PAGE = (
    (Path(__file__).parents[2] / "docs/logs.md")
    .read_text(encoding="utf-8")
    .split("## From two folders to a release")[1]
)
STORY = PAGE.split("\n## ")[0]


def folder(place, **tasks):
    """What `lm_eval --log_samples --output_path` leaves, shortened to what it says of an item."""
    for task, rows in tasks.items():
        lines = [
            {"doc_id": row["id"], "doc": {"question": row["prompt"]}, "filter": "none", "metrics": ["exact_match"],
             "exact_match": float(row["score"]), "prompt_hash": f"{task} {row['id']}", "target_hash": str(row["id"])}
            for row in rows
        ]  # fmt: skip
        write_rows(place / "a-model" / f"samples_{task}_2026-12-01T08-00-00.000000.jsonl", lines)


def test_every_step_of_the_page_works_as_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    math, code = asked(600), asked(600, seed=1, task="code")
    folder(tmp_path / "old", math=math, code=code)
    folder(tmp_path / "new", math=flipped(math, 3, 2), code=flipped(code, 2, 4))
    (tmp_path / "limits.toml").write_text(re.search(r"```toml\n(.*?)```", STORY, re.DOTALL)[1])
    planned, compared, verified = re.findall(r"```\n(pdcl .*?)\n```", STORY)

    assert main(shlex.split(planned)[1:]) == 0
    told = capsys.readouterr().out
    limit = float(re.search(r"math, \+4pt: 600 samples.*fewer than ([\d.]+) % of answers change", told)[1])
    assert limit > 100 * 5 / 600, "the plan says that as few changes as here let it pass"
    assert not (tmp_path / "limits.ledger.jsonl").exists()

    assert main(shlex.split(compared)[1:]) == 0
    assert "PASS: look 1 of 12" in capsys.readouterr().out
    assert main(shlex.split(verified)[1:]) == 0
    assert "PASS: recomputed" in capsys.readouterr().out

    given = {"BEFORE": "old", "AFTER": "new", "LIMITS": "limits.toml", "EVIDENCE": "again", "OPTIONS": ""}
    places = {name: str(tmp_path / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    call = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step()]
    environment = os.environ | given | places | {"PATH": path}
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = (tmp_path / "github_step_summary").read_text()
    assert "## Gate: PASS" in summary
    assert "as at the first look" in summary
    assert "look 1 of 12 (taken before)" in summary
