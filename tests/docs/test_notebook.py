"""The notebook runs from top to bottom, and holds no outputs that could grow old."""

import json
import subprocess
import sys
from pathlib import Path

NOTEBOOK = json.loads((Path(__file__).parents[2] / "examples" / "first_month.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    program = "\n".join("".join(cell["source"]) for cell in CODE)
    call = [sys.executable, "-c", f"import torch\ntorch.set_num_threads(1)\n{program}"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for said in ("2026-10   +3pt →", "2026-12: promoted", "verdict"):
        assert said in done.stdout


def test_the_notebook_is_kept_without_outputs():
    assert (NOTEBOOK["nbformat"], len(CODE)) == (4, 4)
    assert not any(cell["outputs"] or cell["execution_count"] for cell in CODE)
