"""A stranger with nothing but `index.md`: clone, demo, an own CSV with text labels, limits, a report."""

import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r'^```python title="([\w.]+)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
MONTHS = ("2026-10", "2026-11", "2026-12")


def write_files(directory):
    for name, text in FILES.items():
        (directory / name).write_text(text, encoding="utf-8")


def run(call, directory, **more):
    done = subprocess.run(call, cwd=directory, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def check_what_is_left(directory, said):
    """A table after each month, limits as stated, a report and a card that name every month."""
    tables = said.count("verdict\n")
    assert tables == 3
    assert re.search(r"^2026-10 +\+3pt →", said, re.MULTILINE)
    assert re.search(r"^2026-11 +\+5pt →", said, re.MULTILINE)
    assert re.search("bolt|nut", said.splitlines()[-1])
    report, card = (
        (directory / "report.html").read_text(encoding="utf-8"),
        (directory / "model" / "MODEL.md").read_text(),
    )
    assert all(month in report and month in card for month in MONTHS)
    assert "+3pt" in report
    assert len(report) < 2_000_000


def test_data_limits_and_report_by_the_words_of_the_page(tmp_path):
    write_files(tmp_path)
    _, learn, see = COMMANDS
    said = "".join(run([sys.executable, *line.split()[1:]], tmp_path) for line in learn.splitlines())
    run([sys.executable, "-m", *see.split()], tmp_path)
    check_what_is_left(tmp_path, said)
    monthly = re.search(r"^    (pdcl update .*)$", PAGE, re.MULTILINE)[1]
    january = FILES["write_parts.py"].replace("parts.csv", "january.csv").replace("seed(0)", "seed(1)")
    january = january.replace("for month, names in months.items()", 'for month, names in {"2027-01": kinds}.items()')
    run([sys.executable, "-c", january], tmp_path)
    assert "promoted" in run([sys.executable, "-m", *monthly.split()], tmp_path)


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_both_paths_are_short_and_quick(tmp_path):
    """A CSV file to a model that is saved, sentence features to verdicts: lines of one's own, and CPU seconds."""
    write_files(tmp_path)
    run([sys.executable, "write_parts.py"], tmp_path)
    for name, verdict in (("learn_parts.py", "2026-11"), ("learn_sentences.py", "2026-11   +5pt →")):
        before = cpu_seconds()
        assert verdict in run([sys.executable, name], tmp_path)
        assert cpu_seconds() - before < 60
    assert len([line for line in FILES["learn_parts.py"].splitlines() if line.strip()]) < 10


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="there is no repository to clone")
def test_all_of_it_from_a_clone(tmp_path):
    clone, learn, see = COMMANDS
    clone = clone.replace("<this repository>", shlex.quote(str(ROOT)))
    write_files(tmp_path)
    script = (
        f"{clone}\ncp ../*.py .\necho BEGIN\n{learn}\n{see}\npdcl figures runs/demo --out figures\npdcl watch --help\n"
    )
    # What the test itself runs with must not help.
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    said = run(["bash", "-euo", "pipefail", "-c", script], tmp_path, env=plain)
    before, _, after = said.partition("BEGIN\n")
    assert "What the limits cost" in before
    learned = re.search(r"^task .*?\n\S*(?:bolt|nut).*?$", after, re.MULTILINE | re.DOTALL)[0]
    check_what_is_left(tmp_path / "pdcl", learned)
    assert list((tmp_path / "pdcl" / "figures").glob("*.svg"))
