"""What the pages tell a reader to type does what they say: each page is a program that runs from top to bottom."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pdcl.cli import VERBS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages that need more than to be run, and the tests that do it.
ELSEWHERE = {
    "index.md": "tests/docs/test_stranger.py",
    "limits.md": "tests/test_documents.py",
    "own-data.md": "tests/streams/test_docs_own_data.py",
    "llm.md": "tests/integrations/test_llm_example.py",
    "gate.md": "tests/release/test_docs_gate.py",
    "loops.md": "tests/integrations/test_docs_loops.py",
    "update.md": "tests/release/test_docs_gate.py",
    "rules.md": "tests/test_documents.py",
    "add-method.md": "tests/docs/test_additions.py",
    "add-stream.md": "tests/docs/test_additions.py",
}
FENCE = re.compile(r"^```python.*?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def pages_with_code():
    pages = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    return {name: FENCE.findall(text) for name, text in pages.items() if "```python" in text}


PROGRAMS = {name: blocks for name, blocks in pages_with_code().items() if name not in ELSEWHERE}
# The demo, seventy runs.
LONG = {"studies.md"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in PROGRAMS])
def test_a_page_runs_from_top_to_bottom(name, tmp_path):
    (tmp_path / "page.py").write_text("import torch\ntorch.set_num_threads(1)\n" + "\n".join(PROGRAMS[name]))
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_no_page_with_code_is_left_out():
    assert set(ELSEWHERE) < set(pages_with_code())
    for name, test in ELSEWHERE.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert name in text or Path(name).name in text, f"{test} doesn't read {name}"


def commands():
    """(file, verb, flags) of every `pdcl …` that a document shows, in code blocks and in running text."""
    found = []
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        shown = re.findall(r"^(?:    )?(pdcl [a-z].*)$", text, re.MULTILINE) + re.findall(r"`(pdcl [a-z][^`]*)`", text)
        for line in shown:
            words = re.split(r"\s#|   ", line)[0].split()
            flags = tuple(word.split("=")[0] for word in words if word.startswith("--"))
            found.append((path.name, words[1], flags))
    return found


def test_every_command_of_the_documents_exists():
    unknown = {(name, verb) for name, verb, _ in commands() if verb not in VERBS}
    assert not unknown
    assert len(commands()) > 60


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_option_of_a_command_in_the_documents_exists(verb):
    wanted = {flag for _, found, flags in commands() if found == verb for flag in flags} - {"--help"}
    if not wanted:
        return
    about = {"run": ["run", "digits", "pdcl"], "data": ["data", "fetch"]}.get(verb, [verb])
    done = subprocess.run([sys.executable, "-m", "pdcl", *about, "--help"], capture_output=True, text=True, check=False)
    assert wanted <= set(re.findall(r"--[\w-]+", done.stdout)), f"pdcl {verb}"
