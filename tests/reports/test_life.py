"""A model's life as a page, and the limits of a run on the pages that show runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdcl
from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.judging import judge_task
from pdcl.judging.table import Promises
from pdcl.lab.reports.story import Story
from pdcl.limits.limit import Limit
from pdcl.reports.writing import report, write_report

pytestmark = pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")
HOSTILE = "<img src=x onerror=window.broken=1>"


@pytest.fixture(scope="module")
def model(tmp_path_factory: Any) -> tuple[Path, Any]:
    """Four months of a forgetful learner: one limit was rebased, one month rolled back."""
    rng = np.random.default_rng(0)
    learner = pdcl.PDCL("mlp:32", memory=600, tolerance="+5pt", witness=40, base=0.0, dual="frozen", lr=0.01)
    for month in range(4):
        x, y = rng.normal(size=(500, 12)).astype("float32"), rng.integers(2 * month, 2 * month + 2, 500)
        x[np.arange(500), y] += 3
        name = HOSTILE if month == 0 else f"month {month}"
        learner.learn(x, y, name=name, epochs=6, on_violation="rollback" if month == 2 else "report")
        if month == 1:
            learner.rebase(0)
    return learner.save(tmp_path_factory.mktemp("life") / "model"), learner


def _data(text: str) -> Any:
    return json.loads(text.split('id="data">')[1].split("</script>")[0])


def test_the_page_has_every_update_and_every_measurement_of_what_is_in_the_model(model: Any) -> None:
    path, learner = model
    data = _data(report([path]))
    assert [each["how"] for each in data["updates"]] == ["learned", "learned", "rebased", "rolled back", "learned"]
    assert "at most" in data["updates"][2]["note"]
    assert [len(task["points"]) for task in data["tasks"]] == [3, 2, 1]
    first, last = data["tasks"][0]["points"], learner.promises[0]
    assert [point["update"] for point in first] == [0, 1, 4]
    assert first[-1]["now"] == pytest.approx(100 * last.now)
    assert first[-1]["limit"] == pytest.approx(100 * last.limit)
    assert [row["verdict"] for row in data["newest"]["rows"]] == [row.verdict for row in learner.promises]


def test_the_command_takes_a_model_alone(model: Any, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "life.html"
    assert main(["report", str(model[0]), "--out", str(out)]) == 0
    assert out.is_file()
    assert "life.html" in capsys.readouterr().out
    with pytest.raises(UsageError, match="give it alone"):
        report([model[0], tmp_path])


def test_in_a_browser_each_task_is_drawn_with_its_limit_and_nothing_in_a_name_is_run(
    model: Any, tmp_path: Path, look: Any
) -> None:
    with look() as seen:
        seen.open(write_report([model[0]], tmp_path / "life.html").as_uri())
        page = seen.page
        assert page.locator('[data-chart="promises"] tbody tr').count() == 3
        assert page.locator('[data-chart="promises"] tr.bad').count() == len(model[1].promises.broken) > 0
        for name in ("verdicts", "life-0", "life-1", "life-2"):
            assert page.locator(f'[data-chart="{name}"] .plot svg.main-svg').count(), name
        page.locator('[data-chart="life-0"] summary').click()
        page.locator('[data-chart="life-0"] table tbody tr').nth(2).wait_for(state="attached")
        assert "window.broken" not in page.evaluate("Object.keys(window).join()")
        assert seen.said == []
        assert seen.outside == []


def _event() -> dict[str, Any]:
    row = judge_task("legacy", Limit("+2pt", rise=0.02), [0] * 100, [1] * 40 + [0] * 60)
    return {"event": "promises_judged", "task": 1, "time": 1.0, "promises": Promises((row,)).as_json()}


def test_on_a_phone_verdicts_stand_in_sight_and_no_word_is_cut(model: Any, tmp_path: Path, look: Any) -> None:
    """The last cell of a row is a sentence: as wide as the screen. Words of a row hold together: one line a word."""
    page = write_report([model[0]], tmp_path / "life.html")
    with look(width=390) as seen:
        seen.page.goto(page.as_uri())
        seen.page.wait_for_selector("html[data-ready]")
        for kind in (".promises", ".sentences"):
            cell = seen.page.locator(f"{kind} tbody tr:first-child td:last-child").bounding_box()
            assert cell["x"] + cell["width"] <= 390, kind
            assert cell["width"] > 200, kind
        heights = seen.page.evaluate(
            "[...document.querySelectorAll('.sentences tbody tr > :not(:last-child)')].map(e => e.offsetHeight)"
        )
        assert max(heights) < 40


def test_a_run_shows_its_newest_table() -> None:
    story = Story()
    story.hear(_event())
    found = story.as_json()["promises"]
    assert found["rows"][0]["verdict"] == "BROKEN"
    assert found["rows"][0]["cells"][0] == "legacy"


@pytest.mark.parametrize("damage", [{"rows": 3}, {"rows": [{}]}, {"level": "x"}])
def test_a_damaged_table_is_counted_and_left_out(damage: dict[str, Any]) -> None:
    story = Story()
    story.hear(_event())
    story.hear({**_event(), "promises": {**_event()["promises"], **damage}})
    assert story.bad == 1
    assert story.promises is not None


def test_the_limits_of_a_run_stand_in_its_panel(tmp_path: Path, look: Any) -> None:
    pdcl.run("digits", "pdcl", memory=200, epochs=1, tolerance="+2pt", out=tmp_path / "runs")
    with look() as seen:
        seen.open(write_report([tmp_path / "runs"], tmp_path / "report.html").as_uri())
        card = seen.page.locator('[data-chart="promises"]')
        assert card.locator("tbody tr").count() == 5
        assert "witnesses" in card.inner_text()
        assert seen.said == []
