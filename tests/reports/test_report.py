from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pdcl.cli import report as command_line
from pdcl.errors import UsageError
from pdcl.lab.reports import holdings, pictures
from pdcl.lab.reports.command import command
from pdcl.lab.reports.dossier import distance_from_uniform
from pdcl.lab.reports.runs import details
from pdcl.reports import page as page_module
from pdcl.reports.page import embedded
from pdcl.reports.writing import report

HOSTILE = "</script><script>window.broken=1</script><img src=x onerror=window.broken=1>\u2028'\"&"


def data_of(page: str):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


def test_a_report_holds_every_run_and_asks_for_nothing_else(real_runs):
    page = report([real_runs])
    data = data_of(page)
    assert len(data["runs"]) == 5
    assert len(data["summary"]["groups"]) == 3
    own = page.replace(page[page.index("<script>/**") : page.index("</script>", page.index("<script>/**"))], "")
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", own)
    assert "https://" not in re.sub(r'id="data">.*?</script>', "", own, flags=re.S)


def test_numbers_in_the_page_are_those_of_the_files(real_runs):
    data = data_of(report([real_runs]))
    for run in data["runs"]:
        result = json.loads((real_runs / run["name"] / "result.json").read_text())
        assert run["mean_accuracy"] == result["mean_accuracy"]
        assert run["confusion"] == result["confusion"]
        assert run["partitions"]["counts"] == result["partitions"]


def test_no_text_of_a_run_can_end_its_script(tmp_path, fake_run):
    fake_run(tmp_path, label=HOSTILE, preset=HOSTILE, options={HOSTILE: HOSTILE})
    page = report([tmp_path], title=HOSTILE)
    assert "<script>window.broken" not in page
    assert "<img src=x" not in page
    assert data_of(page)["runs"][0]["label"] == HOSTILE


def test_embedded_json_reads_back_as_it_was():
    assert json.loads(embedded({"a": HOSTILE, "b": [1, None, "λ"]})) == {"a": HOSTILE, "b": [1, None, "λ"]}
    assert not set("<>&\u2028") & set(embedded(HOSTILE))


def test_samples_stay_out_if_asked(real_runs):
    data = data_of(report([real_runs], samples=False))
    assert all(run["samples"] is None for run in data["runs"])
    assert "base64" not in json.dumps(data)


def test_what_is_absent_is_named(tmp_path, fake_run):
    fake_run(tmp_path)
    (run,) = data_of(report([tmp_path]))["runs"]
    assert "events.jsonl" in run["absent"]["events"]
    assert "memory.safetensors" in run["absent"]["samples"]


def test_damaged_and_unfinished_runs_are_left_out_by_name(tmp_path, fake_run):
    fake_run(tmp_path)
    (fake_run(tmp_path, seed=1) / "result.json").write_text("{")
    fake_run(tmp_path, accuracy=None, seed=2)
    data = data_of(report([tmp_path]))
    assert len(data["runs"]) == 1
    assert len(data["left_out"]) == 2


def test_a_damaged_snapshot_costs_its_charts_alone(tmp_path, fake_run):
    (fake_run(tmp_path) / "memory.safetensors").write_bytes(b"\xff" * 100)
    (run,) = data_of(report([tmp_path]))["runs"]
    assert "no snapshot" in run["absent"]["map"]


def test_the_command_writes_its_file_and_says_what_next(real_runs, tmp_path, capsys):
    out = tmp_path / "deep" / "r.html"
    assert command_line.main([str(real_runs), "-o", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(str(out))
    assert said[-1].startswith("next: pdcl figures ")
    assert out.read_text().startswith("<!doctype html>")


def test_nothing_to_show_says_how_to_make_some(tmp_path, fake_run):
    with pytest.raises(UsageError, match="pdcl run digits pdcl"):
        report([tmp_path])
    fake_run(tmp_path, accuracy=None)
    with pytest.raises(UsageError, match="pdcl watch"):
        report([tmp_path])


def test_the_command_that_repeats_a_run_has_what_was_chosen_and_no_more(real_runs):
    config = json.loads((next(real_runs.glob("digits-pdcl-*-s1*")) / "config.json").read_text())
    words = command(config).split()
    assert words[:4] == ["pdcl", "run", "digits", "pdcl"]
    chosen = dict(zip(words[4::2], words[5::2], strict=True))
    own = {"--memory": "50", "--seed": "1", "--epochs": "1", "--stream-option": "classes_per_task=2"}
    assert chosen == {**own, "--preset": "tuned"}


def test_distance_from_uniform_is_total_variation():
    assert distance_from_uniform([10, 10]) == 0
    assert distance_from_uniform([20, 0]) == 0.5
    assert distance_from_uniform([6, 3, 1]) == pytest.approx(0.6 - 1 / 3, abs=1e-4)
    assert distance_from_uniform([0, 0]) is None


def test_pictures_are_whole_png_files(tmp_path):
    from PIL import Image

    x = (np.arange(3 * 1 * 40 * 40) % 256).astype(np.uint8).reshape(3, 1, 40, 40)
    strip = pictures.strip(x)
    (tmp_path / "x.png").write_bytes(__import__("base64").b64decode(strip["url"].partition(",")[2]))
    assert Image.open(tmp_path / "x.png").size == (3 * 20, 20)
    colour = np.zeros((2, 3, 4, 4), np.uint8)
    colour[:, 0] = 200
    assert pictures.strip(colour)["count"] == 2


def test_signals_are_outlined_and_not_drawn_as_images():
    x = np.sin(np.linspace(0, 20, 8000))[None, None].repeat(2, 0)
    assert not pictures.is_image(x)
    low, high = pictures.outlines(x)[0]
    assert len(low) == 40
    assert all(a <= b for a, b in zip(low, high, strict=True))


def test_samples_come_by_task_with_the_highest_dual_first():
    held = holdings.Holdings(
        np.zeros((6, 1, 8, 8), np.uint8), np.arange(6), np.array([0, 0, 0, 1, 1, 1]),
        np.array([0.1, 0.9, 0.5, 0, 0, 2.0]), None,
    )  # fmt: skip
    first, second = holdings.samples(held, each=2)["tasks"]
    assert first["y"] == [1, 2]
    assert second["dual"] == [2.0, 0.0]
    assert holdings.chart(held) is None


def test_more_runs_get_less_each(fake_run, tmp_path):
    from pdcl.records import scan

    for seed in range(30):
        fake_run(tmp_path, seed=seed)
    found = details(scan(tmp_path))
    assert sum(each.near for each in found) == 12
    assert found[0].samples == 20
    assert {each.samples for each in details(scan(tmp_path), samples=False)} == {0}


def test_static_files_hold_no_address_but_the_names_of_svg():
    for path in (Path(page_module.__file__).parent / "static").rglob("*.*s"):
        found = set(re.findall(r"https?://[^\s\"']+", path.read_text()))
        assert found <= {"http://www.w3.org/2000/svg"}, path
