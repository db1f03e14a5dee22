"""What the documents tell a reader to type does what they say."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)


EXAMPLES = [(name, number) for name in ("README.md", "docs/limits.md") for number in range(len(blocks(name)))]


@pytest.mark.parametrize(("name", "number"), EXAMPLES)
def test_the_examples_of_readme_and_limits_run(name, number, tmp_path):
    if "transformers" in blocks(name)[number]:
        pytest.importorskip("transformers")
    code = "import torch\ntorch.set_num_threads(1)\n" + blocks(name)[number]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_page_of_exact_runs_from_top_to_bottom(tmp_path):
    code = "import torch\ntorch.set_num_threads(1)\n" + "\n".join(blocks("docs/exact.md"))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["4", "3", "True"]


@pytest.mark.parametrize("number", range(3))
def test_the_rules_of_the_document_are_short_and_run_from_the_command_line(number, tmp_path):
    """Each of a dual rule, a partition rule and a buffer policy, as a reader would run it."""
    code = blocks("docs/rules.md")[number]
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    (tmp_path / "mine.py").write_text(code, encoding="utf-8")
    text = (ROOT / "docs/rules.md").read_text(encoding="utf-8").split(code)[1]
    line = re.search(r"^    pdcl (run .*)$", text, re.MULTILINE)[1]
    call = [sys.executable, "-m", "pdcl", *line.split(), "--epochs", "1", "--memory", "30", "--out", "runs"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "next: pdcl results runs" in done.stdout
    (config,) = (tmp_path / "runs").glob("*/config.json")
    assert line.split()[-1] in json.loads(config.read_text(encoding="utf-8"))["options"][line.split()[-2][2:]]["value"]


def test_functions_that_pages_call_pdcl_duality_something_are_there_after_import_pdcl():
    named = {
        name
        for page in ROOT.glob("docs/*.md")
        for name in re.findall(r"`pdcl\.(duality\.\w+|metrics\.\w+)", page.read_text())
    }
    code = f"import operator, pdcl; [operator.attrgetter(name)(pdcl) for name in {sorted(named)}]"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert len(named) > 15
    assert done.returncode == 0, done.stderr
