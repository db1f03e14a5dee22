from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.markers import CARETDOWN, CARETUP

from pdcl.errors import UsageError
from pdcl.lab.cli import figures as command_line
from pdcl.lab.figures import mapping, style
from pdcl.lab.figures.borders import Borders
from pdcl.lab.figures.drawing import Wanted, draw, draw_rows
from pdcl.lab.figures.duals import duals, has_curves, priced, single_duals, start_of, tight_usual_loose
from pdcl.lab.figures.grids import sweep_grid
from pdcl.lab.figures.limits import far_behind, limit
from pdcl.lab.figures.mapping import samples_map
from pdcl.lab.figures.maps import Map
from pdcl.lab.figures.runs import distance, partition, zeta
from pdcl.lab.figures.selecting import main_runs, partitioned_by_dual
from pdcl.lab.figures.style import save
from pdcl.lab.figures.sweeps import ablation, amount, of_shared_seeds, varied, versus_memory
from pdcl.lab.reports.dossier import read_story
from pdcl.records import scan

CARETS = (CARETDOWN, CARETUP)
PLOTS = (
    "zeta",
    "accuracy-memory-digits-tuned",
    "forgetting-memory-digits-tuned",
    "partition-digits-tuned",
    "distance-digits-tuned",
    "map-digits-tuned",
    "duals-digits-tuned",
)


def test_every_plot_with_data_comes_in_three_formats_and_the_rest_is_named(real_runs, tmp_path, capsys):
    assert command_line.main([str(real_runs), "-o", str(tmp_path)]) == 0
    for name in PLOTS:
        for form, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
            assert (tmp_path / f"{name}.{form}").read_bytes().startswith(start)
    said = capsys.readouterr().out
    assert "left out alpha-digits-tuned: no two groups" in said
    assert "left out partitioning-tuned: pdcl0 and pdcl" in said
    assert "left out sweeps-tuned: no stream was run with two sizes of memory" in said
    assert "pdcl, memory 50, seed 0" in (tmp_path / "partition-digits-tuned.svg").read_text()
    assert said.splitlines()[-1].startswith("next: pdcl report ")


def test_runs_that_differ_in_one_option_make_a_sweep(tmp_path, fake_run, monkeypatch):
    monkeypatch.setattr(style, "FORMATS", ("svg",))
    for seed in range(2):
        for value in ("0.01", "0.05", "0.5"):
            fake_run(tmp_path / "runs", seed=seed, options={"tolerance": value})
        fake_run(tmp_path / "runs", seed=seed, options={"alpha": 1.0, "tolerance": "0.05"})
    rows = scan(tmp_path / "runs")
    assert [list(line) for line in varied(rows, "tolerance") if len(line) > 1] == [[0.01, 0.05, 0.5]]
    drawn = draw([tmp_path / "runs"], tmp_path / "out")
    names = {path.stem for path in drawn.paths}
    assert {"tolerance-digits", "alpha-digits"} <= names
    assert {"map-digits", "duals-tolerance-digits"} <= drawn.skipped.keys()


def test_ablations_stay_out_of_sweeps(tmp_path, fake_run):
    for seed in range(2):
        for memory in (50, 100):
            fake_run(tmp_path, seed=seed, memory=memory)
        for value in (0.1, 0.9):
            fake_run(tmp_path, seed=seed, options={"alpha": value})
        fake_run(tmp_path, seed=seed, stream_options={"noise": 0.1})
    found = main_runs(scan(tmp_path))
    assert [(member.label, member.first.memory, len(member.rows)) for member in found] == [
        ("pdcl", 50, 2), ("pdcl", 100, 2),
    ]  # fmt: skip


def test_a_tight_and_a_loose_tolerance_stand_beside_the_presets_own(tmp_path, fake_run, monkeypatch):
    monkeypatch.setattr(
        fake_run, "config", {**fake_run.config, "options": {"tolerance": {"value": 0.05, "source": "preset"}}}
    )
    for value, accuracy in ((0.001, 0.9), (0.01, 0.8), (0.1, 0.7), (1.0, 0.4)):
        fake_run(tmp_path, accuracy, options={"tolerance": value})
    given = varied(scan(tmp_path), "tolerance")[0]
    assert tight_usual_loose(given) == {0.001: "tight", 0.01: "between", 1.0: "loose"}, "none is the preset's"
    fake_run(tmp_path, 0.6)
    line = varied(scan(tmp_path), "tolerance")[0]
    assert tight_usual_loose(line) == {0.001: "tight", 0.05: "the preset's", 1.0: "loose"}
    at_the_end = {value: line[value] for value in (0.001, 0.05)}
    assert tight_usual_loose(at_the_end) == {0.001: "tight", 0.05: "loose, the preset's"}


def with_duals(path, *heights: float, steps: int = 6) -> None:
    """Events of a run in which λ of the first task rises to this height."""
    events: list[dict[str, object]] = []
    for task in range(1 + len(heights)):
        events.append(
            {"event": "task_began", "task": task, "name": str(task), "samples": 9, "steps": steps, "classes": []}
        )
        for step in range(steps if task else 0):
            dual = heights[task - 1] * (step + 1) / steps
            moved = {"task": task, "step": step, "duals": [dual] * task, "slacks": [0.1] * task, "current": 1.0}
            events.append({"event": "duals_moved", "tolerances": [0.1] * task, **moved})
    (path / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))


def test_panels_of_tolerances_share_one_axis_and_name_the_seed(tmp_path, fake_run):
    for value, height in ((0.001, 1.0), (0.05, 2.0), (1.0, 0.01)):
        with_duals(fake_run(tmp_path, seed=3, options={"tolerance": value}), height)
    line = varied(scan(tmp_path), "tolerance")[0]
    made = duals(line, {value: read_story(member.first.path) for value, member in line.items()})
    assert len({axes.get_ylim() for axes in made.axes}) == 1, "a loose λ must not look like a tight one"
    assert made.axes[0].get_ylim()[1] >= 2, "no curve is cut off"
    assert [axes.get_title() for axes in made.axes] == ["tight: ε = 0.001", "between: ε = 0.05", "loose: ε = 1"]
    assert made._suptitle.get_text() == "pdcl, memory 100, seed 3"
    assert [text.get_text() for text in made.legends[0].get_texts()] == ["task 1"]


def test_duals_are_drawn_of_the_largest_run_that_divides_memory_by_them(tmp_path, fake_run):
    fake_run(tmp_path, memory=2000, method="er")
    fake_run(tmp_path, memory=2000, method="pdcl0", options={"partition": "uniform"})
    assert priced(main_runs(scan(tmp_path)), None).first.method == "pdcl0", "any primal-dual one where none divides"
    for memory in (100, 500, 1000):
        fake_run(tmp_path, memory=memory, method="pdcl", options={"partition": "affine"})
    found = main_runs(scan(tmp_path))
    assert priced(found, None).first.memory == 1000
    assert (priced(found, 500).first.method, priced(found, 500).first.memory) == ("pdcl", 500)


def test_duals_with_one_step_of_a_task_are_no_curve_and_the_figure_says_so(tmp_path, fake_run):
    path = fake_run(tmp_path / "runs")
    with_duals(path, 1.0, 1.0, steps=1)
    assert not has_curves(read_story(path))
    drawn = draw([tmp_path / "runs"], tmp_path / "out", ["svg"])
    assert drawn.skipped["duals-digits"] == "pdcl, memory 100, seed 0: of some task fewer than 2 dual steps were kept"
    with_duals(path, 1.0, 1.0)
    drawn = draw([tmp_path / "runs"], tmp_path / "out", ["svg"])
    assert (tmp_path / "out" / "duals-digits.svg") in drawn.paths
    assert drawn.priced == {path}


def test_a_legend_of_duals_lies_beside_the_curves(tmp_path, fake_run):
    with_duals(path := fake_run(tmp_path), *([3.0] * 9))
    made = single_duals(read_story(path))
    made.canvas.draw()
    (legend,), (axes,) = made.legends, made.axes
    assert axes.get_window_extent().x1 < legend.get_window_extent().x0


def test_figures_of_one_size_show_the_memory_that_is_asked_for(tmp_path, fake_run):
    for memory in (100, 500, 1000):
        fake_run(tmp_path / "runs", memory=memory, options={"partition": "affine"})
    rows = scan(tmp_path / "runs")
    for asked, shown in ((None, 1000), (500, 500), (300, 1000)):
        drawn = draw_rows(rows, tmp_path / "out", ["svg"], Wanted(asked))
        for kind in ("partition", "distance"):
            assert {row.memory for row in drawn.shown[f"{kind}-digits"].rows} == {shown}


def test_ten_tasks_are_told_apart_in_a_partition():
    made = partition([[10] * (k + 1) for k in range(10)], [str(k) for k in range(10)])
    made.canvas.draw()
    looks = {(box[0].get_facecolor(), box[0].get_hatch()) for box in made.axes[0].containers}
    assert len(looks) == 10
    ticks = [tick.get_window_extent() for tick in made.axes[0].get_xticklabels()]
    assert all(left.x1 + 3 < right.x0 for left, right in pairwise(ticks)), "9 and 10 must not read 910"


def a_map(tasks: int, classes: int, borders: Borders | None = None) -> Map:
    """Samples of every class, with duals that differ, the first one's the largest."""
    labels = [k for k in range(tasks * classes) for _ in range(3)]
    count = len(labels)
    place = {"x": [float(k) for k in range(count)], "y": [float(k % 7) for k in range(count)]}
    dual = [float(count - k) for k in range(count)]
    points = {**place, "label": labels, "task": [k // classes for k in labels], "dual": dual, "of": count}
    return Map(points, borders)


def test_a_maps_legend_names_every_marker_in_one_size():
    made = samples_map(a_map(5, 2), ["a, b", "c, d", "e, f", "g, h", "i, j"], list("abcdefghij"))
    (legend,) = made.legends
    assert [text.get_text() for text in legend.get_texts()] == list("abcdefghij")
    assert len({handle.get_markersize() for handle in legend.legend_handles}) == 1
    assert len({(handle.get_color(), handle.get_marker()) for handle in legend.legend_handles}) == 10


def test_a_map_of_many_classes_has_a_marker_per_task_and_no_text_is_cut_off():
    made = samples_map(a_map(10, 4, Borders(1.0, 0.93)), [f"long name of task {k}, and more of it" for k in range(10)])
    made.canvas.draw()
    (legend,) = made.legends
    assert len({(handle.get_color(), handle.get_marker()) for handle in legend.legend_handles}) == 10
    assert len({handle.get_marker() for handle in legend.legend_handles[:8]}) == 8, "told apart in grey"
    assert legend.get_title().get_text() == "task"
    text = made._supxlabel.get_window_extent()
    assert text.x0 > 0
    assert text.x1 < made.bbox.x1


def test_a_map_can_be_asked_for_a_dual_per_sample(tmp_path, fake_run):
    path = fake_run(tmp_path / "runs")
    (path / "map.json").write_text(json.dumps(a_map(2, 2).as_json()))
    rows = scan(tmp_path / "runs")
    assert "map-digits" in draw_rows(rows, tmp_path / "out", ["svg"]).shown
    drawn = draw_rows(rows, tmp_path / "out", ["svg"], Wanted(sample_duals=True))
    assert drawn.skipped["map-digits"].startswith("no run with a dual for every sample")


def test_an_interval_that_leaves_the_panel_ends_in_an_arrow(tmp_path, fake_run):
    for seed, accuracy in enumerate((0.70, 0.80, 0.90)):
        fake_run(tmp_path, accuracy, seed=seed, method="er", label="er")
        fake_run(tmp_path, 0.80 + seed / 1000, seed=seed)
    axes = versus_memory(main_runs(scan(tmp_path)), "accuracy").axes[0]
    marked = {(line.get_marker(), float(line.get_ydata()[0])) for line in axes.lines if line.get_marker() in CARETS}
    low, high = axes.get_ylim()
    assert marked == {(CARETDOWN, low), (CARETUP, high)}, "er: 80 ± 25 points; pdcl's interval fits"


def test_a_limit_gives_way_to_an_interval_that_misses_it_by_less_than_a_point(tmp_path, fake_run):
    for seed, accuracy in enumerate((0.800, 0.804, 0.808)):
        fake_run(tmp_path, accuracy, seed=seed)
    axes = versus_memory(main_runs(scan(tmp_path)), "accuracy").axes[0]
    low, high = axes.get_ylim()
    assert low < 79.41
    assert high > 81.39, "80.4 ± 0.99 points, of runs from 80 to 80.8"
    assert not [line for line in axes.lines if line.get_marker() in CARETS]


def test_two_seeds_never_blow_up_an_axis(tmp_path, fake_run):
    for memory in (50, 100):
        fake_run(tmp_path, 0.80, seed=0, memory=memory)
        fake_run(tmp_path, 0.90, seed=1, memory=memory)
    made = versus_memory(main_runs(scan(tmp_path)), "accuracy")
    low, high = made.axes[0].get_ylim()
    assert 79 < low < 80
    assert 90 < high < 91
    # Student's interval for these two runs is ± 64 points.
    bars = [segment for line in made.axes[0].collections for segment in line.get_segments()]
    assert all(abs(end - start) < 1e-9 for (_, start), (_, end) in bars)


def test_no_tick_shows_a_formula_as_it_is_typed():
    made = zeta()
    made.canvas.draw()
    assert [tick.get_text() for tick in made.axes[0].get_xticklabels()] == ["0", "5", "10", "15", "20"]


def test_an_ablation_shows_the_seeds_that_all_its_values_have(tmp_path, fake_run):
    for seed in range(3):
        fake_run(tmp_path, 0.8 + seed / 10, seed=seed, options={"tolerance": 0.1})
    fake_run(tmp_path, 0.81, seed=0, options={"tolerance": 0.2})
    (line,) = varied(scan(tmp_path), "tolerance")
    assert {value: member.seeds for value, member in of_shared_seeds(line).items()} == {0.1: [0], 0.2: [0]}
    apart = {0.1: line[0.1], 0.3: replace(line[0.2], rows=(replace(line[0.2].first, seed=9),))}
    assert of_shared_seeds(apart) == apart


def test_methods_at_one_size_of_memory_stand_beside_each_other(tmp_path, fake_run):
    for place, method in enumerate(("er", "gss", "pdcl")):
        for seed in range(3):
            fake_run(tmp_path, 0.8 + place / 100, seed=seed, method=method)
    axes = versus_memory(main_runs(scan(tmp_path)), "accuracy").axes[0]
    assert len({float(line.get_xdata()[0]) for line in axes.lines}) == 3
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["100"]


def test_a_method_far_behind_is_a_note_and_the_rest_fill_the_axis():
    lines = {"er": [88, 90], "pdcl": [91, 93], "ring": [89, 92], "agem": [20, 30]}
    assert far_behind(lines) == ["agem"]
    assert far_behind({label: [-v for v in values] for label, values in lines.items()}, worse=max) == ["agem"]
    assert far_behind({"er": [88, 90], "pdcl": [91, 93], "ring": [85, 87]}) == []
    assert far_behind({"er": [20, 21], "pdcl": [91, 93]}) == []
    assert far_behind({"ring": [88, 90], "pdcl0": [91, 93], "gss": [89, 92], "er": [20, 30]}) == [], (
        "er is always drawn"
    )


@pytest.mark.parametrize(("metric", "sign"), [("accuracy", 1), ("forgetting", -1)])
def test_no_marker_lies_under_the_note_on_a_method_far_behind(metric, sign):
    with style.figure() as (made, axes):
        near = [sign * value for value in (90, 91, 92, 93)]
        lines = {"er": near[:1], "ring": near[1:2], "pdcl": near[2:], "agem": [sign * 20]}
        limit(axes, lines, metric)
        for value in near:
            axes.plot([1], [value], "o")
        made.canvas.draw()
        (note,) = axes.texts
        box = note.get_window_extent()
        heights = [axes.transData.transform((1, value))[1] for value in near]
        assert note.get_text().endswith(f"agem {20 * sign}"), "one value is no span"
        assert all(height > box.y1 if sign > 0 else height < box.y0 for height in heights)


def test_a_long_name_of_a_task_leaves_room_for_the_figure():
    names = ["kidney-left, kidney-right", "goldfish, European fire salamander, bullfrog, tailed frog"]
    made = partition([[10], [5, 5]], names)
    made.canvas.draw()
    (legend,) = made.legends
    assert [text.get_text() for text in legend.get_texts()] == [names[0], "goldfish, European fire…"]
    (axes,) = made.axes
    assert axes.get_window_extent().y0 > legend.get_window_extent().y1, "the legend is below"
    assert legend.get_window_extent().x0 > 0
    assert legend.get_window_extent().x1 < made.bbox.x1


def test_methods_that_divide_memory_evenly_are_a_note_in_the_figure_of_distances():
    even, uneven = [[10], [5, 5]], [[10], [8, 2]]
    made = distance({"er-ring": [even] * 3, "pdcl0": [even], "pdcl": [uneven, uneven, [[10], [9, 1]]]}, "mnist")
    (axes,), (legend,) = made.axes, made.legends
    assert [text.get_text() for text in axes.texts] == ["0: er-ring, pdcl0"]
    assert [text.get_text() for text in legend.get_texts()] == ["pdcl"]
    assert axes.get_title() == "mnist"
    assert axes.get_ylim()[0] < 0, "a point at 0 is whole"
    (_, bar) = axes.containers[0].lines[2][0].get_segments()
    assert bar[1][1] > bar[0][1], "three seeds have an interval"
    assert not distance({"er-ring": [even]}).legends


def test_curves_of_duals_begin_where_their_task_does(tmp_path, fake_run):
    with_duals(path := fake_run(tmp_path), 3.0, 3.0)
    story = read_story(path)
    curve = single_duals(story, start=0.5).axes[0].lines[0]
    begins = [chapter.start for chapter in story.chapters[1:]]
    points = [tuple(point) for point in curve.get_xydata()]
    assert {(float(begin), 0.5) for begin in begins} <= {*points}
    (row,) = scan(tmp_path)
    assert (start_of(row), start_of(replace(row, options={"start": 1.0}))) == (0.0, 1.0)
    assert start_of(replace(row, options={"warm": True})) is None


@pytest.mark.parametrize(("count", "columns"), [(5, 5), (8, 4)])
def test_no_entry_of_a_legend_stands_alone_in_a_row(tmp_path, fake_run, count, columns):
    for method in style.METHODS[:count]:
        fake_run(tmp_path, method=method, label=method)
    (legend,) = sweep_grid(main_runs(scan(tmp_path))).legends
    assert legend._ncols == columns


def test_figures_of_one_stream_name_it(tmp_path, fake_run):
    for value in (0.1, 0.2):
        fake_run(tmp_path, options={"tolerance": value})
    rows = scan(tmp_path)
    assert versus_memory(main_runs(rows), "accuracy").axes[0].get_title() == "digits"
    assert ablation(rows, "tolerance", "ε")._suptitle.get_text() == "digits"


def test_zeta_says_where_it_falls_and_what_bp_takes():
    assert [text.get_text() for text in zeta().axes[0].texts] == ["convex", "falls from n = e", "BP: n ≥ 5"]


def test_a_partition_is_shown_of_a_method_that_follows_its_duals(tmp_path, fake_run):
    fake_run(tmp_path, 0.99, method="er")
    fake_run(tmp_path, 0.95, method="pdcl0", options={"partition": "uniform"})
    fake_run(tmp_path, 0.40, method="pdcl-s", options={"partition": "affine", "level": "sample"})
    assert partitioned_by_dual(main_runs(scan(tmp_path))).first.method == "pdcl-s"
    fake_run(tmp_path, 0.30, method="pdcl", options={"partition": "affine", "level": "task"})
    assert partitioned_by_dual(main_runs(scan(tmp_path))).first.method == "pdcl"


def test_a_figure_drawn_twice_is_the_same_file(tmp_path):
    first, second = ([path.read_bytes() for path in style.save(zeta(), tmp_path, "zeta")] for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("value", "number"),
    [(0.5, 0.5), ("1.1x", 1.1), ("0.05", 0.05), ("1e-3", 1e-3), ("auto", None), (True, None), (None, None)],
)
def test_an_option_is_a_number_where_it_begins_with_one(value, number):
    assert amount(value) == number


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'pdcl\[report\]'"):
        draw([tmp_path], tmp_path)


def test_a_name_from_a_hostile_record_stays_in_its_directory(tmp_path):
    from matplotlib.figure import Figure

    inside = tmp_path / "figures"
    inside.mkdir()
    [path] = save(Figure(), inside, "accuracy-../../outside-" + "a" * 300, ["svg"])
    assert path.parent == inside
    assert path.is_file()
    assert [each.name for each in tmp_path.iterdir()] == ["figures"]


def test_a_method_looks_the_same_in_every_figure_whatever_stands_beside_it(tmp_path, fake_run):
    looks = []
    for place, beside in enumerate((("er",), ("agem", "derpp", "even", "gss"))):
        for method in (*beside, "pdcl"):
            for memory in (50, 100):
                fake_run(tmp_path / str(place), memory=memory, method=method, label=method)
        made = versus_memory(main_runs(scan(tmp_path / str(place))), "accuracy")
        lines = {box.get_label(): box.lines[0] for box in made.axes[0].containers}
        assert len({(line.get_color(), line.get_marker()) for line in lines.values()}) == len(lines)
        looks.append((lines["pdcl"].get_color(), lines["pdcl"].get_marker(), lines["pdcl"].get_linestyle()))
    assert looks[0] == looks[1]


def test_markers_of_a_map_are_sized_by_the_largest_dual_of_their_own_task():
    sizes = mapping._sizes(np.array([1.0, 2.0, 100.0, 50.0, 0.0, 0.0]), np.array([0, 0, 1, 1, 2, 2]))
    assert sizes.tolist() == [40.0, 75.0, 75.0, 40.0, 12.0, 12.0]
