"""The report in a real browser."""

from __future__ import annotations

import shutil

import pytest

import pdcl
from pdcl.reports.writing import write_report

CHARTS = ("accuracy", "partition", "duals", "slacks", "loss", "confusion", "map", "samples", "config")
DRAWN = ("accuracy-memory", "forgetting-memory", "accuracy", "partition", "duals", "slacks", "loss", "confusion", "map")
HOSTILE = "<img src=x onerror=window.broken=1><script>window.broken=1</script>"


@pytest.fixture(scope="module")
def address(real_runs, tmp_path_factory):
    return write_report([real_runs], tmp_path_factory.mktemp("page") / "report.html").as_uri()


def test_every_chart_is_drawn_with_words_and_a_table_and_nothing_is_asked_of_the_network(address, look):
    with look() as seen:
        seen.open(address)
        for name in DRAWN:
            assert seen.page.locator(f'[data-chart="{name}"] .plot svg.main-svg').count(), name
        for name in CHARTS:
            assert seen.page.locator(f'[data-chart="{name}"] .absent').first.is_hidden(), name
        assert seen.page.locator('[data-chart="gate"] .absent').is_visible()
        assert seen.page.locator(".thumb").count() == 50
        for name in DRAWN:
            card = seen.page.locator(f'[data-chart="{name}"]')
            assert len(card.locator(".plot").get_attribute("aria-label")) > 20
            card.locator("summary").first.click()
            # The table is made when it is first opened, an event later; waiting for a row in vain is a failure.
            card.locator("table tbody tr").first.wait_for(state="attached")
        assert seen.said == []
        assert seen.outside == []


def test_a_verdict_of_the_gate_stands_on_the_run_that_it_is_about(real_runs, tmp_path, look):
    run = shutil.copytree(next(real_runs.glob("digits-pdcl-*s0*")), tmp_path / "runs" / "judged")
    verdict = pdcl.gate(run, "digits", max_error=0.9, by="task", ledger=tmp_path / "looks", evidence=run / "evidence")
    with look() as seen:
        seen.open(write_report([tmp_path / "runs"], tmp_path / "report.html").as_uri())
        card = seen.page.locator('[data-chart="gate"]')
        assert card.locator(".verdict").inner_text() == verdict.verdict
        assert card.locator("tbody tr").count() == 5
        assert "1 of 1" in card.inner_text()
        assert seen.said == []


def test_filters_sorting_and_choices_work(address, look):
    with look() as seen:
        seen.open(address)
        rows = seen.page.locator(".results tbody tr")
        assert rows.count() == 3
        seen.page.locator('.chips input[value="pdcl"]').check()
        assert rows.count() == 1
        assert seen.page.locator(".runs li").count() == 2
        seen.page.locator('.chips input[value="pdcl"]').uncheck()
        seen.page.get_by_role("button", name="method", exact=True).click()
        assert rows.first.inner_text().startswith("er-ring")
        seen.page.select_option("#baseline", "pdcl")
        assert "Δ to pdcl" in seen.page.locator(".results thead").inner_text()
        seen.page.fill("#run-search", "finetune")
        assert seen.page.locator(".runs li").count() == 1
        seen.page.locator(".runs input").first.check()
        assert seen.page.locator('[data-chart="comparison"] svg.main-svg').first.is_visible()
        assert "finetune" in seen.page.locator(".run-head h3").inner_text()
        seen.page.get_by_role("button", name="Task-IL", exact=True).click()
        assert "own classes" in seen.page.locator('[data-chart="accuracy"] .note').first.inner_text()
        assert seen.said == []


def test_runs_are_listed_by_method_and_a_method_far_behind_is_told_at_the_edge(tmp_path, fake_run, look):
    for seed in range(2):
        for method, reached in (("er-ring", 0.8), ("pdcl", 0.85), ("finetune", 0.2)):
            fake_run(tmp_path, accuracy=reached + seed / 100, forgetting=0.9 - reached, method=method, seed=seed)
    with look() as seen:
        seen.open(write_report([tmp_path], tmp_path / "r.html").as_uri())
        listed = seen.page.locator(".runs summary").all_inner_texts()
        assert [text.split()[0] for text in listed] == ["er-ring", "finetune", "pdcl"]
        assert seen.page.locator(".runs li").first.is_visible()
        seen.page.locator(".runs summary").first.click()
        assert not seen.page.locator(".runs li").first.is_visible()
        chart = seen.page.locator('[data-chart="accuracy-memory"]')
        assert chart.locator("h4").inner_text() == "Accuracy by method", "there is one size of memory"
        assert chart.locator(".annotation").text_content() == "◂ 20.5 %", "finetune would squeeze the others"
        assert seen.said == []


def test_dark_follows_the_system_and_the_reader_and_print_is_light(address, look):
    ground = "getComputedStyle(document.body).backgroundColor"
    with look(color_scheme="dark") as seen:
        seen.open(address)
        dark = seen.page.evaluate(ground)
        seen.page.select_option("#theme", "light")
        light = seen.page.evaluate(ground)
        assert dark != light
        ink = "getComputedStyle(document.querySelector('[data-chart=loss] .xtick text')).fill"
        in_light = seen.page.evaluate(ink)
        seen.page.select_option("#theme", "dark")
        assert seen.page.evaluate(ground) == dark
        assert seen.page.evaluate(ink) != in_light


def test_a_phone_shows_all_without_sideways_scrolling_and_the_keyboard_reaches_a_run(address, look):
    with look(width=390) as seen:
        seen.open(address)
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
        box = seen.page.locator('[data-chart="loss"]').bounding_box()
        assert box["x"] >= 0
        assert box["width"] <= 390
        seen.page.locator(".runs .pick").nth(1).focus()
        seen.page.keyboard.press("Enter")
        assert seen.page.locator(".runs li.focus").count() == 1
        assert seen.page.locator('.pick[aria-current="true"]').count() == 1


def test_it_prints_in_light_colours(address, look):
    with look(color_scheme="dark") as seen:
        seen.open(address)
        seen.page.emulate_media(media="print")
        assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert seen.page.locator(".side").is_hidden()
        assert len(seen.page.pdf()) > 10_000


def test_names_labels_and_values_show_as_text(tmp_path, fake_run, look):
    for seed in range(2):
        fake_run(tmp_path, label=HOSTILE, seed=seed, options={HOSTILE: HOSTILE})
        fake_run(tmp_path, label="<b>bold</b>", seed=seed, memory=200)
    with look() as seen:
        seen.open(write_report([tmp_path], tmp_path / "r.html", title=HOSTILE).as_uri())
        assert seen.page.evaluate("window.broken") is None
        assert seen.page.locator("img").count() == 0
        assert HOSTILE in seen.page.locator(".results").inner_text()
        assert HOSTILE in seen.page.locator("h1").inner_text()
        assert "<b>bold</b>" in seen.page.locator('[data-chart="accuracy-memory"] .plot').text_content()
        assert seen.said == []
