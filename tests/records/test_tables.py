from __future__ import annotations

import csv
import io
import json
import math

import pytest
from rich.console import Console

from pdcl.errors import UsageError
from pdcl.lab.comparing import compare, group
from pdcl.lab.comparing.tables import render, show
from pdcl.records import scan


@pytest.fixture
def groups(tmp_path, fake_run):
    for seed, (ours, theirs) in enumerate([(0.80, 0.71), (0.84, 0.75)]):
        fake_run(tmp_path, accuracy=ours, seed=seed, method="pdcl_x")
        fake_run(tmp_path, accuracy=theirs, forgetting=0.3, seed=seed, method="er")
    fake_run(tmp_path, accuracy=0.2, forgetting=-0.01, method="finetune", memory=None)
    return group(scan(tmp_path))


MARKDOWN = """\
**digits, preset auto**

| method | memory | accuracy % | forgetting % | task-IL % | seeds | s/run |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| finetune | – | 20.00 | −1.00 | 94.00 | 1 | 2.0 |
| pdcl_x | 100 | 82.00 ± 25.41 | 10.00 ± 0.00 | 94.00 | 2 | 2.0 |
| er | 100 | 73.00 ± 25.41 | 30.00 ± 0.00 | 94.00 | 2 | 2.0 |

**digits, preset auto: difference to er on the same seeds**

| method | memory | accuracy % | 95 % interval | forgetting % | seeds |
| --- | ---: | ---: | ---: | ---: | ---: |
| finetune | – | −51.00 | unknown | −31.00 | 1 |
| pdcl_x | 100 | +9.00 | +9.00 to +9.00 | −20.00 | 2 |
"""

LATEX = r"""% digits, preset auto; needs \usepackage{booktabs}
\begin{tabular}{lrrrrrr}
\toprule
method & memory & accuracy \% & forgetting \% & task-IL \% & seeds & s/run \\
\midrule
finetune & – & 20.00 & $-$1.00 & 94.00 & 1 & 2.0 \\
pdcl\_x & 100 & 82.00 $\pm$ 25.41 & 10.00 $\pm$ 0.00 & 94.00 & 2 & 2.0 \\
er & 100 & 73.00 $\pm$ 25.41 & 30.00 $\pm$ 0.00 & 94.00 & 2 & 2.0 \\
\bottomrule
\end{tabular}
"""

TABLE = """\
digits, preset auto
method    memory     accuracy %  forgetting %  task-IL %  seeds  s/run
───────────────────────────────────────────────────────────────────────
finetune       –          20.00         −1.00      94.00      1    2.0
pdcl_x       100  82.00 ± 25.41  10.00 ± 0.00      94.00      2    2.0
er           100  73.00 ± 25.41  30.00 ± 0.00      94.00      2    2.0

"""


def test_markdown(groups):
    assert render(groups, compare(groups, "er"), "md") == MARKDOWN


def test_latex_escapes_what_it_must(groups):
    assert render(groups, form="latex") == LATEX


@pytest.mark.parametrize("terminal", [True, False])
def test_table(groups, terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None)
    show(groups, console=console)
    lines = console.file.getvalue().splitlines()
    assert [line.rstrip() for line in lines] == TABLE.splitlines()


def test_a_narrow_terminal_folds_names_and_keeps_numbers(tmp_path, fake_run):
    for alpha in (0.1, 0.2):
        fake_run(tmp_path, accuracy=0.123, options={"alpha": alpha, "partition": "generalisation"})
    console = Console(file=io.StringIO(), force_terminal=True, width=60, color_system=None)
    show(group(scan(tmp_path)), console=console)
    text = console.file.getvalue()
    assert "12.30" in text
    assert "…" not in text


def test_csv_reads_back(groups):
    rows = list(csv.DictReader(io.StringIO(render(groups, form="csv"))))
    assert [row["method"] for row in rows] == ["finetune", "pdcl_x", "er"]
    assert float(rows[1]["mean_accuracy"]) == pytest.approx(0.82)
    assert json.loads(rows[1]["seeds"]) == [0, 1]
    assert rows[0]["mean_accuracy_interval"] == ""
    differences = list(csv.DictReader(io.StringIO(render(groups, compare(groups, "er"), "csv"))))
    assert [(row["method"], row["against"], row["accuracy_n"]) for row in differences] == [
        ("finetune", "er", "1"),
        ("pdcl_x", "er", "2"),
    ]


def test_json_reads_back(groups):
    content = json.loads(render(groups, compare(groups, "er"), "json"))
    assert content["schema"] == 1
    assert content["groups"][0]["mean_accuracy_interval"] is None
    assert content["groups"][1]["mean_accuracy"] == pytest.approx(0.82)
    assert content["comparisons"][1]["accuracy_mean"] == pytest.approx(0.09)


def test_several_streams_get_a_table_each(tmp_path, fake_run):
    for stream in ("a", "b"):
        for method in ("er", "pdcl"):
            fake_run(tmp_path, stream=stream, method=method)
    groups = group(scan(tmp_path))
    text = render(groups, compare(groups, "er"))
    assert [line for line in text.splitlines() if line.startswith("**")] == [
        "**a, preset auto**",
        "**b, preset auto**",
        "**a, preset auto: difference to er on the same seeds**",
        "**b, preset auto: difference to er on the same seeds**",
    ]


def test_a_baseline_with_several_settings_is_named_with_them(tmp_path, fake_run):
    fake_run(tmp_path)
    for alpha in (0.1, 0.2):
        fake_run(tmp_path, method="er", options={"alpha": alpha})
    groups = group(scan(tmp_path))
    assert "pdcl vs er alpha=0.1" in render(groups, compare(groups, "er"))


def test_a_score_that_was_not_finite_shows_as_unknown(tmp_path, fake_run):
    fake_run(tmp_path, accuracy=math.nan)
    assert "| pdcl | 100 | unknown | 10.00 |" in render(group(scan(tmp_path)))


def test_no_groups_make_no_csv_lines():
    assert render([], form="csv").strip() == ""


def test_an_unknown_format_is_refused(groups):
    with pytest.raises(UsageError, match="md, latex, csv, json"):
        render(groups, form="pdf")
