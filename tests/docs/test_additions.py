"""The pages on adding a method or a stream, followed to the letter."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def code(text):
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def shell(text):
    return [line.split() for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]


def run(words, directory):
    call = [sys.executable, *(["-m", "pdcl", *words[1:]] if words[0] == "pdcl" else words)]
    done = subprocess.run(call, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


METHOD = code((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))[0]
STREAM = code(page("add-stream.md"))[0]
LIFE = """
import sys

import torch

sys.path.insert(0, ".")
from mine import Newest
from parts import parts

learner = Newest(memory=60)
for task in parts().tasks:
    learner.learn(*task.data.fetch(torch.arange(len(task.data))))
learner.save("model")
print(learner, learner.replay)
"""


@pytest.fixture
def both(tmp_path):
    """A directory with the files of both pages."""
    (tmp_path / "mine.py").write_text(METHOD, encoding="utf-8")
    (tmp_path / "parts.py").write_text(STREAM, encoding="utf-8")
    return tmp_path


def test_the_method_learns_the_stream(both):
    """The stream has no preset: options that nobody states are what the method has by itself."""
    plugged = ["--plugin", "mine.py", "--plugin", "parts.py"]
    found = run(["pdcl", "run", "parts", "newest", *plugged, "--memory", "60", "--epochs", "1"], both)
    assert "next: pdcl results runs" in found


def test_the_method_learns_task_by_task_with_what_it_has_by_itself(both):
    """And what nobody stated isn't saved as if somebody had."""
    (both / "life.py").write_text(LIFE, encoding="utf-8")
    assert "3 tasks learned, 6 classes, 60 samples in memory None" in run(["life.py"], both)


def test_a_method_is_added(tmp_path):
    text = page("add-method.md")
    assert '--8<-- "CONTRIBUTING.md:method"' in text
    assert len([line for line in METHOD.splitlines() if line.strip()]) <= 30
    (tmp_path / "mine.py").write_text(METHOD, encoding="utf-8")
    (learn, listing) = shell(text)
    assert "next: pdcl results runs" in run([*learn, "--epochs", "1"], tmp_path)
    assert re.search(r"newest\s+replay", run(listing, tmp_path))
    (tmp_path / "check.py").write_text(code(text)[0], encoding="utf-8")
    assert "keeps the contract" in run(["check.py"], tmp_path)


def test_a_stream_is_added(tmp_path):
    text = page("add-stream.md")
    (tmp_path / "parts.py").write_text(code(text)[0], encoding="utf-8")
    (listing, learn) = shell(text)
    assert "Parts of six kinds by eight measurements" in " ".join(run(listing, tmp_path).split())
    assert "task 4/4" in run([*learn, "--epochs", "1"], tmp_path)
