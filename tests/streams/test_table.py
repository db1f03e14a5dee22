"""Tables as people have them: numbers, categories, dates, gaps; what the first task shows is saved with the model."""

from __future__ import annotations

import csv
import json
import random
import shutil
import subprocess
import sys
import warnings
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import pdcl
from pdcl.streams.checks import BadData
from pdcl.streams.table_reader import Layout, TableReader
from pdcl.streams.table_rows import read_rows

HEADER = ["pressure", "temp", "site", "seen", "serial", "month", "kind"]
KINDS = {"2026-11": ("leak", "ok"), "2026-12": ("wear", "ok"), "2027-01": ("leak", "wear", "ok")}
CENTRES = {"leak": (2.0, 80.0), "ok": (6.0, 40.0), "wear": (10.0, 90.0)}


def rows_of(month: str, count: int, seed: int) -> list[list[str]]:
    draw = random.Random(seed)
    found = []
    for number in range(count):
        kind = draw.choice(KINDS[month])
        pressure, temp = (draw.gauss(mean, scale) for mean, scale in zip(CENTRES[kind], (0.7, 7.0), strict=True))
        day = date.fromisoformat(f"{month}-01") + timedelta(days=draw.randrange(28))
        filled = "" if draw.random() < 0.1 else f"{temp:.2f}"
        cells = [f"{pressure:.3f}", filled, draw.choice(["east", "west"]), day.isoformat(), f"s{number}", month, kind]
        found.append(cells)
    return found


def write(path: Path, rows: list[list[str]], header: list[str] = HEADER) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """faults.csv of two months, january.csv of the next, and a model that learned the first."""
    place = tmp_path_factory.mktemp("table")
    months = rows_of("2026-11", 600, 1) + rows_of("2026-12", 600, 2)
    write(place / "faults.csv", months)
    write(place / "january.csv", rows_of("2027-01", 600, 3))
    learner = pdcl.PDCL("mlp:32", memory=300, tolerance="+5pt", seed=0)
    for task in pdcl.table(place / "faults.csv", label="kind", task="month", drop=["serial"]):
        learner.learn(task, audit=place / "audit", audit_share=0.2)
    learner.save(place / "model")
    return place


RAW = [
    {"pressure": 2.1, "temp": None, "site": "east", "seen": "2026-11-03"},
    {"pressure": "6.0", "temp": 41, "site": "west", "seen": date(2026, 12, 24)},
]


def test_a_loaded_model_predicts_raw_rows(place: Path) -> None:
    model = pdcl.load(place / "model")
    assert model.predict(RAW).tolist() == ["leak", "ok"]
    assert [entry["name"] for entry in model.lineage.tasks] == ["2026-11", "2026-12"]
    for task in pdcl.table(place / "faults.csv", label="kind", task="month", drop=["serial"]):
        assert model.evaluate(task) > 0.9


def test_no_pickle_holds_the_preprocessing(place: Path) -> None:
    files = [path for path in (place / "model").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".md", ".lock", ""}
    held = [path.name for path in files if path.suffix == ".json" and "pressure" in path.read_text(encoding="utf-8")]
    assert held


def test_next_months_file_updates_the_model(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place, tmp_path / "own")
    line = "update model --data january.csv --audit audit --max-error 0.3 --audit-share 0.2"
    call = [sys.executable, "-m", "pdcl", *line.split()]
    done = subprocess.run(call, cwd=tmp_path / "own", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    model = pdcl.load(tmp_path / "own" / "model")
    assert [entry["name"] for entry in model.lineage.tasks] == ["2026-11", "2026-12", "2027-01"]
    assert model.predict(RAW).tolist() == ["leak", "ok"]


def test_the_gate_reads_raw_rows_of_every_task(place: Path, tmp_path: Path) -> None:
    """Fresh rows of both months: verdicts by the task column, errors as `evaluate` counts them."""
    fresh = write(tmp_path / "fresh.csv", rows_of("2026-11", 300, 8) + rows_of("2026-12", 300, 9))
    model = pdcl.load(place / "model")
    verdict = pdcl.gate(model, fresh, max_error=0.3, ledger=tmp_path / "ledger.jsonl")
    assert verdict
    assert "2026-11" in str(verdict)
    assert "2026-12" in str(verdict)


def test_rows_of_a_file_are_forgotten(place: Path, tmp_path: Path) -> None:
    """The newest three rows that an exact model holds: by their raw values, after saving."""
    learner = pdcl.learner("exact", tolerance="+5pt", seed=0, erasable=True)
    for task in pdcl.table(place / "faults.csv", label="kind", task="month", drop=["serial"]):
        learner.learn(task)
    learner.save(tmp_path / "model")
    write(tmp_path / "theirs.csv", rows_of("2026-12", 600, 2)[-3:])
    made = pdcl.forget(tmp_path / "model", samples=tmp_path / "theirs.csv")
    assert sum(made.removed.values()) >= 3
    with pytest.raises(BadData, match="none of the columns"):
        pdcl.forget(tmp_path / "model", samples=[{"wind": 3}])


def test_exact_learns_and_reads_the_same_rows(place: Path, tmp_path: Path) -> None:
    learner = pdcl.learner("exact", tolerance="+5pt", seed=0)
    for task in pdcl.table(place / "faults.csv", label="kind", task="month", drop=["serial"]):
        learner.learn(task)
    learner.save(tmp_path / "model")
    assert pdcl.load(tmp_path / "model").predict(RAW).tolist() == ["leak", "ok"]


@pytest.mark.parametrize("make", [pdcl.PDCL, lambda: pdcl.learner("exact")], ids=["default", "exact"])
def test_a_csv_file_in_five_lines_and_its_next_month_in_one(make, place, tmp_path, monkeypatch) -> None:
    """Word for word what the guide tells a newcomer."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "faults.csv", rows_of("2026-11", 300, 1) + rows_of("2026-12", 300, 2))
    write(tmp_path / "month.csv", rows_of("2027-01", 300, 3))
    learner = make()
    for task in pdcl.table("faults.csv", label="kind", task="month", drop=["serial"]):
        learner.learn(task)
    learner.save("model")
    answer = pdcl.load("model").predict([{"pressure": 6.0, "temp": None, "site": "east"}])
    assert answer[0] in ("ok", "leak", "wear")
    made = pdcl.update("model", "month.csv")
    assert made
    assert "nothing was judged" in made.why
    again = subprocess.run(
        [sys.executable, "-m", "pdcl", *["update", "model", "--data", "month.csv"]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stdout + again.stderr
    assert "decided before" in again.stdout
    assert [entry["name"] for entry in pdcl.load("model").lineage.tasks] == ["2026-11", "2026-12", "2027-01"]


def test_without_a_gate_the_limits_of_the_model_decide_and_its_audit_set_grows(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place, tmp_path / "own")
    before = np.load(tmp_path / "own" / "audit" / "samples.npz")["y"].size
    made = pdcl.update(tmp_path / "own" / "model", tmp_path / "own" / "january.csv", audit_share=0.2)
    assert "on its witnesses" in made.why
    assert np.load(tmp_path / "own" / "audit" / "samples.npz")["y"].size == before + 120


def test_a_limit_of_the_gate_without_an_audit_set_is_refused(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "model", tmp_path / "model")
    with pytest.raises(pdcl.errors.UsageError, match="max_error needs an audit set"):
        pdcl.update(tmp_path / "model", place / "january.csv", max_error=0.1)


def test_numbers_and_categories_are_those_of_scikit_learn() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(50, 20, 200)
    x[draw.random(200) < 0.2] = np.nan
    sites = draw.choice(["east", "north", "west"], 200)
    rows = [{"x": value, "site": site, "y": 0} for value, site in zip(x.tolist(), sites.tolist(), strict=True)]
    found, notes = TableReader.fit(read_rows(rows), Layout("y")).encode(read_rows(rows))
    gaps = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    oracle = ColumnTransformer([("x", gaps, [0]), ("site", OneHotEncoder(), [1])])
    wanted = oracle.fit_transform(np.asarray([x, sites], dtype=object).T).astype(float)
    np.testing.assert_allclose(found[:, [0, 2, 3, 4]], wanted, atol=1e-5)
    np.testing.assert_array_equal(found[:, 1], np.isnan(x))
    assert notes == []


def test_later_rows_are_read_as_the_first_task_showed() -> None:
    first = [{"x": 0.0, "site": "a", "y": 0}, {"x": 2.0, "site": "b", "y": 1}]
    reader = TableReader.fit(read_rows(first), Layout("y"))
    later = [{"x": 5.0, "site": "c"}, {"x": None, "site": "a"}]
    found, notes = reader.encode(read_rows(later))
    np.testing.assert_allclose(found, [[4, 0, 0], [0, 1, 0]])
    assert len(notes) == 1
    assert "'c' (1 row)" in notes[0]
    found, notes = reader.encode(read_rows([{"x": 1.0, "wind": 3}]))
    np.testing.assert_allclose(found, [[0, 0, 0]])
    assert "lacks the column 'site'" in notes[0]
    assert "has the column 'wind'" in notes[1]
    again = TableReader.from_json(json.loads(json.dumps(reader.as_json())))
    assert again == reader


def test_a_date_is_a_point_on_circles() -> None:
    rows = [{"when": "2026-01-05", "y": 0}, {"when": "n/a", "y": 1}, {"when": "2026-07-06", "y": 0}]
    found, _ = TableReader.fit(read_rows(rows), Layout("y")).encode(read_rows(rows))
    np.testing.assert_allclose(np.hypot(found[:, :2], found[:, 2:]), [[1, 1], [0, 0], [1, 1]], atol=1e-6)
    # Two Mondays half a year apart.
    assert found[0, 1] == pytest.approx(found[2, 1])
    assert found[0, 2] == pytest.approx(-found[2, 2], abs=0.02)


@pytest.mark.parametrize(
    ("line", "cells", "said"),
    [
        (7, ["1.0", "2"], r"line 7 has 2 cells, and the header has 7"),
        (
            5,
            ["1.0", "2", "east", "2026-11-02", "s", "2026-11", ""],
            r"line 5: column 'kind', which label names, is empty",
        ),
        (9, ["1.0", "2", "east", "2026-11-02", "s", " ", "ok"], r"line 9: column 'month', which task names, is empty"),
    ],
)
def test_a_bad_row_is_named_by_its_line(line: int, cells: list[str], said: str, tmp_path: Path) -> None:
    rows = rows_of("2026-11", 20, 0)
    rows[line - 2] = cells
    path = write(tmp_path / "faults.csv", rows)
    with pytest.raises(BadData, match=said):
        pdcl.table(path, label="kind", task="month")


def test_a_bad_value_of_a_later_month_is_named_by_its_line_and_changes_nothing(place: Path, tmp_path: Path) -> None:
    rows = rows_of("2027-01", 20, 0)
    rows[3][0] = "high"
    path = write(tmp_path / "january.csv", rows)
    model = pdcl.load(place / "model")
    tasks = model.tasks_learned
    with pytest.raises(BadData, match=r"january.csv, line 5: column 'pressure' holds 'high', which is no number"):
        model.learn(*pdcl.table(path, label="kind", task="month", drop=["serial"]))
    assert model.tasks_learned == tasks


def test_a_first_task_that_fails_leaves_the_learner_unfitted(place: Path) -> None:
    learner = pdcl.PDCL("mlp:8", memory=20)
    (task, *_) = pdcl.table(place / "faults.csv", label="kind", task="month", drop=["serial"])
    with pytest.raises(pdcl.errors.UsageError):
        learner.learn(task, epochs=-1)
    assert learner.table is None


def test_texts_that_are_no_categories_are_refused(place: Path) -> None:
    (task, *_) = pdcl.table(place / "faults.csv", label="kind", task="month")
    with pytest.raises(BadData, match=r"column 'serial' has 600 different texts .* drop=\['serial'\]"):
        pdcl.PDCL("mlp:8", memory=20).learn(task)


def test_rows_for_a_learner_of_arrays_are_refused(place: Path) -> None:
    learner = pdcl.PDCL("mlp:8", memory=20)
    learner.learn(np.zeros((20, 3), dtype="float32"), [0, 1] * 10)
    with pytest.raises(BadData, match="first task were arrays"):
        learner.predict(RAW)
    with pytest.raises(pdcl.errors.UsageError, match="first task were arrays"):
        learner.learn(pdcl.table(place / "faults.csv", label="kind", task="month", drop=["serial"])[0])


def one_column(*values: object) -> list[dict[str, object]]:
    return [{"x": value, "z": place, "y": place % 2} for place, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.5, "2", "<0.1", 4], r"row 2: column 'x' holds '<0.1', and looks like a column of numbers .*categories="),
        (["1,234.50", "2,000.00"], "row 0: column 'x' holds '1,234.50', and looks like a column of numbers"),
        (["12 %", "7%"], "looks like a column of numbers"),
        (["2,5", "7,25"], "looks like a column of numbers"),
        (["31.12.2026", "01.01.2027"], r"looks like a column of dates \(2026-12-31\)"),
        (["12/31/26", "1/1/27"], "looks like a column of dates"),
        (["2026-12-31", "2026-12-30", "soon"], "row 2: column 'x' holds 'soon', and looks like a column of dates"),
        (["n/a", None, "-"], "column 'x' is empty in the first task"),
    ],
)
def test_what_is_nearly_a_number_or_a_date_is_never_read_as_a_name(values: list[object], said: str) -> None:
    rows = read_rows(one_column(*values))
    with pytest.raises(BadData, match=said):
        TableReader.fit(rows, Layout("y"))
    if None not in values:
        assert TableReader.fit(rows, Layout("y", categories=("x",))).width == len(values) + 1


def test_names_with_digits_stay_names() -> None:
    for values in (["A1", "B2", "7", "C"], ["10-20", "20-30"], ["v1", "v2"], [True, False]):
        assert TableReader.fit(read_rows(one_column(*values)), Layout("y")).width == len(values) + 1
    assert TableReader.fit(read_rows(one_column("yes", "-", "-", "-")), Layout("y")).width == 3


def test_a_gap_that_the_first_task_did_not_have_is_told_in_words() -> None:
    reader = TableReader.fit(read_rows(one_column("a", "b")), Layout("y"))
    _, (note,) = reader.encode(read_rows(one_column(None, "b")))
    assert "no value (1 row)" in note


def test_labels_that_are_integers_are_so_from_every_source(tmp_path: Path) -> None:
    """A model begun on a DataFrame goes on with a file of texts; "07" is a name."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [0.5, 1.5, 2.5, 3.5], "y": [5, 7, 5, 7]})
    frame.to_csv(tmp_path / "next.csv", index=False)
    text, number = read_rows(tmp_path / "next.csv"), read_rows(frame)
    for fitted in (text, number):
        reader = TableReader.from_json(json.loads(json.dumps(TableReader.fit(fitted, Layout("y")).as_json())))
        assert reader is not None
        for later in (text, number, read_rows(frame.astype({"y": float}))):
            assert [(type(label), label) for label in reader.labels(later)] == [(int, 5), (int, 7)] * 2
    names = read_rows([{"x": 1.5, "y": "07"}, {"x": 2.5, "y": "7"}])
    assert TableReader.fit(names, Layout("y")).labels(names) == ["07", "7"]


def test_measurements_are_no_classes() -> None:
    rows = read_rows([{"x": float(k), "y": f"{1.37 * k:.3f}"} for k in range(30)])
    with pytest.raises(BadData, match=r"30 rows .* kind=\"regression\""):
        TableReader.fit(rows, Layout("y"))


def test_a_file_with_semicolons_has_decimal_commas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;site;y\n2,5;a,b;0\n-7,25;c;1\n3;c;1\n", encoding="utf-8-sig")
    rows = read_rows(tmp_path / "a.csv")
    reader = TableReader.fit(rows, Layout("y"))
    np.testing.assert_allclose(
        reader.encode(rows)[0][:, 0], (v := np.array([2.5, -7.25, 3])) / v.std() - v.mean() / v.std()
    )
    assert reader.inputs["site"].values == ("a,b", "c")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "a.csv is empty"),
        (b"\n\n", "a.csv is empty"),
        (b"x,y\n", "no rows below its header"),
        (b",x,y\n0,1,a\n", r"line 1: column 1 has no name; .*index=False"),
        (b"x,x,y\n0,1,a\n", "line 1: two columns are called 'x'"),
        ("x,y\n1,Köln\n".encode("latin-1"), r"not UTF-8 text \(byte 7\); .*encoding="),
    ],
)
def test_a_file_that_is_no_table_says_what_to_do(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(BadData, match=said):
        pdcl.table(tmp_path / "a.csv", label="y")


def test_one_row_is_given_in_a_list(place: Path) -> None:
    with pytest.raises(BadData, match="a dict is one row"):
        pdcl.load(place / "model").predict(RAW[0])


def test_limits_can_name_a_column_of_the_table(place: Path) -> None:
    learner = pdcl.PDCL("mlp:16", memory=200, tolerance={"site=east": "+5pt", "*": "+9pt"}, seed=0)
    for task in pdcl.table(place / "faults.csv", label="kind", task="month", drop=["serial"], columns=["site"]):
        learner.learn(task)
    assert "site=east" in str(learner.promises)


def test_frames_parquet_and_csv_give_the_same_inputs(place: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(place / "faults.csv").drop(columns=["serial"])
    sources = [pdcl.table(frame, label="kind", task="month")]
    if pytest.importorskip("pyarrow"):
        frame.to_parquet(tmp_path / "faults.parquet")
        sources.append(pdcl.table(tmp_path / "faults.parquet", label="kind", task="month"))
    (first, *_) = pdcl.table(place / "faults.csv", label="kind", task="month", drop=["serial"])
    reader = TableReader.fit(first.rows, first.layout)
    wanted, _ = reader.encode(first.rows)
    for each in sources:
        own = TableReader.fit(each[0].rows, each[0].layout)
        np.testing.assert_allclose(own.encode(each[0].rows)[0], wanted, atol=1e-6)
        assert own.labels(each[0].rows) == reader.labels(first.rows)


def test_a_table_is_also_a_stream(place: Path) -> None:
    stream = pdcl.table(place / "faults.csv", label="kind", task="month", drop=["serial"]).stream()
    assert [task.name for task in stream.tasks] == ["2026-11", "2026-12"]
    assert stream.spec.labels == ("leak", "ok", "wear")


def test_regression_learns_numbers(tmp_path: Path) -> None:
    draw = random.Random(0)
    rows = [[f"{x:.3f}", f"{2 * x:.3f}"] for x in (draw.gauss(0, 1) for _ in range(300))]
    path = write(tmp_path / "wear.csv", rows, ["hours", "wear"])
    learner = pdcl.PDCL("mlp:16", memory=50, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.learn(pdcl.table(path, label="wear", kind="regression")[0], epochs=20)
    low, high = learner.predict([{"hours": -1.0}, {"hours": 1.0}]).ravel()
    assert low < -0.5 < 0.5 < high
