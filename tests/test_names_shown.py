"""Names that a stranger chose are shown, and do nothing else: on the terminal, in XML, Markdown, JSON and errors."""

from __future__ import annotations

import contextlib
import io
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

import pdcl
from pdcl.cli import main
from pdcl.errors import PdclError
from pdcl.printable import printable
from pdcl.release.output import FORMATS, show
from pdcl.screen import Screen

# Clears the screen, draws a verdict of its own, reorders text, is half of a tag, and breaks lines, XML and markup.
EVIL = "x\x1b[2J\x1b[1;32mPASS\x07\x9b1m\u202egnitset\u2066\u200b\nPASS: look 1 of 1\r<img src=x>|`[red]\x00a[/red]&"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]")
SEEN = r"x\x1b[2J"
X = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
Y = np.where(np.arange(60) % 2, EVIL, "fine")


@pytest.fixture(scope="module")
def learned() -> Any:
    learner = pdcl.PDCL("linear", memory=20, lr=0.01, tolerance="+50pt", witness=4, device="cpu")
    with warnings.catch_warnings(action="ignore"):
        learner.learn(X, Y, name=EVIL, epochs=1)
        learner.learn(X + 3, Y, name="second", columns={"plan" + EVIL.replace("=", ""): Y}, epochs=1)
    return learner


@pytest.fixture(scope="module")
def model(learned: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place: Path = learned.save(tmp_path_factory.mktemp("names") / "model")
    return place


@pytest.fixture(scope="module")
def audit() -> dict[str, Any]:
    return {"x": X + 9, "y": Y, "task": np.where(np.arange(60) < 30, EVIL, "second"), "site": Y}


@pytest.fixture(scope="module")
def verdict(model: Path, audit: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    ledger = tmp_path_factory.mktemp("ledger") / "l.jsonl"
    return pdcl.gate(model, audit, max_error=0.05, by="task", ledger=ledger)


def is_plain(text: str) -> None:
    assert not UNSAFE.search(text), UNSAFE.search(text)
    assert not [line for line in text.splitlines() if line.startswith("PASS")]


def test_a_name_is_the_same_after_it_was_saved(learned: Any, model: Path) -> None:
    again = pdcl.load(model)
    assert again.labels == learned.labels
    assert EVIL in again.labels
    assert again.lineage.tasks[0]["name"] == EVIL


@pytest.mark.parametrize("form", FORMATS)
def test_a_verdict_shows_names_and_nothing_they_do(form: str, verdict: Any) -> None:
    text = FORMATS[form](verdict)
    is_plain(text)
    if form == "json":
        assert EVIL in {row["group"] for row in json.loads(text)["rows"]}
    elif form == "junit":
        names = [case.get("name") for case in ElementTree.fromstring(text).iter("testcase")]
        assert printable(EVIL) in names
    elif form == "md":
        assert "<img" not in text
        assert len({row.count("|") for row in text.splitlines() if row.startswith("| ")}) == 1
    else:
        assert "x\\x1b" in text


def test_a_terminal_gets_only_the_codes_of_the_table_itself(verdict: Any) -> None:
    buffer = io.StringIO()
    show(verdict, Screen(file=buffer, force_terminal=True, width=200))
    colours = re.sub(r"\x1b\[[0-9;]*m", "", buffer.getvalue())
    is_plain(colours)
    assert "PASS\x1b[0m" not in buffer.getvalue()


def test_the_card_of_a_model_holds_no_html_and_no_row_too_many(model: Path) -> None:
    text = (model / "MODEL.md").read_text(encoding="utf-8")
    is_plain(text)
    assert "<img" not in text
    assert "&lt;img" in text
    assert all(line.startswith(("#", "|", "`", "Classes", "Method", "As", "Losses", "→")) or line[:1].isdigit()
               for line in text.splitlines() if line)  # fmt: skip


SHOWN: dict[str, Callable[[Any, Path], object]] = {
    "the learner": lambda m, p: repr(m),
    "an entry": lambda m, p: repr(pdcl.load(p).rebase(EVIL)),
    "promises": lambda m, p: str(m.promises),
    "promises in Markdown": lambda m, p: m.promises.markdown(),
    "prices": lambda m, p: str(pdcl.prices(m)),
    "a stream": lambda m, p: str(pdcl.split(X, Y, name="own")),
    "an error of names": lambda m, p: _error(lambda: m.learn(X + 7, Y, name=EVIL)),
    "an error of labels": lambda m, p: _error(lambda: m.evaluate(X, np.where(Y == "fine", "new" + EVIL, EVIL))),
    "an error of paths": lambda m, p: _error(lambda: pdcl.load(p.parent / EVIL.replace("\0", "").replace("/", ""))),
    "an error of groups": lambda m, p: _error(lambda: pdcl.gate(m, (X + 9, Y), max_error=0.1, limits={EVIL: 0.1})),
    "an error of columns": lambda m, p: _error(lambda: pdcl.gate(m, (X + 9, Y), max_error=0.1, by=EVIL)),
}


def _error(act: Callable[[], object]) -> str:
    with pytest.raises(PdclError) as found:
        act()
    assert "\n" not in str(found.value)
    return str(found.value)


@pytest.mark.parametrize("what", SHOWN)
def test_what_python_shows_is_plain(what: str, learned: Any, model: Path) -> None:
    is_plain(str(SHOWN[what](learned, model)))


COMMANDS = [
    "gate MODEL --audit AUDIT --max-error 0.05 --ledger NEW/ledger",
    "gate MODEL --audit AUDIT --max-error 0.05 --by site --ledger NEW/ledger --format md",
    "gate --audit AUDIT --max-error 0.05 --plan --by site --ledger NEW/ledger",
    "gate MODEL --audit AUDIT --max-error 0.05 --limit nobody=0.1",
    "update MODEL --data AUDIT --name second --audit NEW --max-drop 0.1",
    "forget MODEL --group a=1",
    "rollback MODEL",
    "report MODEL --out NEW/report.html",
    "results RUNS",
    "results RUNS --format md",
    "results RUNS --format csv",
    "results RUNS --format latex",
    "run STREAM er --plugin PLUGIN --memory 10 --epochs 1 --out NEW/runs",
    "prices RUNS/RUN",
]


@pytest.fixture(scope="module")
def place(model: Path, audit: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("shown")
    np.savez(where / "AUDIT.npz", **audit)
    stream = pdcl.from_tasks([(X, Y), (X + 3, Y)], names=[EVIL, "second"], name="own")
    run = pdcl.run(stream, "pdcl", memory=10, epochs=1, out=where / "RUNS", label="pdcl", tolerance="50%")
    assert run.path is not None
    run.path.rename(where / "RUNS" / "RUN")
    config = where / "RUNS" / "RUN" / "config.json"
    held = json.loads(config.read_text())
    config.write_text(json.dumps({**held, "stream": EVIL, "label": EVIL, "preset": EVIL}))
    (where / "PLUGIN.py").write_text(
        f"import numpy as np, pdcl\nE = {EVIL!r}\n"
        "@pdcl.register_stream('strange')\ndef strange():\n"
        "    x = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)\n"
        "    y = np.where(np.arange(60) % 2, E, 'fine')\n"
        "    return pdcl.from_tasks([(x, y), (x + 3, y)], names=[E, 'second'], name='strange')\n"
    )
    return where


@pytest.mark.parametrize("words", COMMANDS)
def test_what_a_command_prints_is_plain(words: str, model: Path, place: Path) -> None:
    paths = {"MODEL": model, "AUDIT": place / "AUDIT.npz", "RUNS": place / "RUNS", "RUNS/RUN": place / "RUNS" / "RUN",
             "STREAM": "strange", "PLUGIN": place / "PLUGIN.py"}  # fmt: skip
    put = [str(paths.get(word, word)).replace("NEW", str(place / "NEW")) for word in words.split()]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(put)
    assert out.getvalue() or err.getvalue()
    assert "Traceback" not in err.getvalue()
    is_plain(out.getvalue())
    is_plain(err.getvalue())


def test_a_screen_shows_what_a_console_shows() -> None:
    """Text without such characters is the same, whatever it is: other scripts, emoji, brackets."""
    texts = []
    for kind in (Screen, Console):
        buffer = io.StringIO()
        kind(file=buffer, width=60, markup=False, emoji=False, highlight=False).print(
            "naïve 日本語 [a] می‌خواهم 👩‍🔬 −5 %"
        )
        texts.append(buffer.getvalue())
    assert texts[0] == texts[1]
