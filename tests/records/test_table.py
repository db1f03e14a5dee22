from __future__ import annotations

import json
import math

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pdcl.errors import UsageError
from pdcl.lab.comparing import compare, group
from pdcl.records import scan, survey
from pdcl.records.table import _last_rows
from pdcl.records.writing import dumps


def test_scan_finds_runs_at_every_depth_of_a_study_and_nothing_else(tmp_path, fake_run):
    fake_run(tmp_path, accuracy=0.75, forgetting=0.2)
    fake_run(tmp_path / "study" / "arm", seed=1)
    (tmp_path / "notes").mkdir()
    (tmp_path / "README").write_text("")
    row, deep = scan(tmp_path)
    assert (row.stream, row.method, row.preset, row.memory, row.seed) == ("digits", "pdcl", "auto", 100, 0)
    assert (row.mean_accuracy, row.mean_forgetting, row.seconds) == (0.75, 0.2, 2.0)
    assert row.task_il == pytest.approx((0.9 + 0.98) / 2)
    assert row.options == {"alpha": 0.5, "lr": 0.1}
    assert deep.seed == 1
    assert scan(row.path) == [row]


def test_a_long_run_counts_by_its_last_row(tmp_path, fake_run):
    path = fake_run(tmp_path, accuracy=None)
    long = [[task / 100] * 40 for task in range(40)]
    result = {**fake_run.result(), "accuracy": {"class_il": long, "task_il": long}}
    (path / "result.json").write_text(json.dumps({"schema": 1, **result}))
    assert scan(tmp_path)[0].task_il == pytest.approx(0.39)


def test_what_has_no_row_is_not_forgotten(tmp_path, fake_run):
    begun = fake_run(tmp_path, accuracy=None)
    broken = fake_run(tmp_path, seed=1)
    (broken / "result.json").write_text('{"schema": 1')
    newer = fake_run(tmp_path, seed=2)
    (newer / "config.json").write_text('{"schema": 7}')
    odd = fake_run(tmp_path, accuracy=None, seed=4)
    (odd / "result.json").mkdir()
    hidden = fake_run(tmp_path, seed=3)
    hidden.rename(tmp_path / ".digits-half-made")
    found = survey(tmp_path)
    assert found.rows == []
    assert found.unfinished == [begun]
    assert sorted(error.path.parent for error in found.unreadable) == [broken, newer, odd]


numbers = st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False)
matrices = st.lists(st.lists(numbers, max_size=4), max_size=4)


@given(st.dictionaries(st.sampled_from("abcd"), matrices | numbers | st.lists(numbers)), st.sampled_from([None, 1]))
def test_dropping_all_rows_but_the_last_keeps_the_rest_of_a_result(content, indent):
    brief = json.loads(_last_rows(dumps(content, indent).encode()))
    assert brief.keys() == content.keys()
    for key, value in content.items():
        whole = brief[key] == value
        assert whole or (isinstance(value[0], list) and brief[key] == value[-1:])


def test_deeper_nests_than_matrices_stay_whole():
    text = b'{"a": [[[1], [2]], [[3]]], "b": [[1], [2]]}'
    assert _last_rows(text) == text


def test_only_a_directory_is_scanned(tmp_path):
    with pytest.raises(UsageError, match="not a directory"):
        scan(tmp_path / "missing")


def test_groups_are_means_over_seeds_with_students_interval(tmp_path, fake_run):
    values = [0.80, 0.84, 0.79, 0.86]
    for seed, value in enumerate(values):
        fake_run(tmp_path, accuracy=value, seed=seed)
    (member,) = group(scan(tmp_path))
    mean, half = member.estimate("mean_accuracy")
    low, high = scipy.stats.t.interval(0.95, 3, loc=sum(values) / 4, scale=scipy.stats.sem(values))
    assert (mean - half, mean + half) == pytest.approx((low, high))
    assert member.seeds == [0, 1, 2, 3]
    assert member.label == "pdcl"


def test_options_split_groups_and_name_only_what_varies(tmp_path, fake_run):
    for seed in range(2):
        fake_run(tmp_path, seed=seed)
        fake_run(tmp_path, seed=seed, options={"alpha": 0.3, "partition": "bp"})
        fake_run(tmp_path, seed=seed, method="er", options={"lr": 0.01})
    labels = {member.label for member in group(scan(tmp_path))}
    assert labels == {"pdcl alpha=0.5 partition=null", "pdcl alpha=0.3 partition=bp", "er"}


def test_where_samples_lie_splits_no_group(tmp_path, fake_run):
    """Records of before `memory_in_ram` was an option lack it."""
    fake_run(tmp_path, seed=0)
    fake_run(tmp_path, seed=1, options={"memory_in_ram": "1GB"})
    (member,) = group(scan(tmp_path))
    assert (member.label, member.seeds) == ("pdcl", [0, 1])


def test_an_option_that_came_later_splits_groups_only_where_it_does_something(tmp_path, fake_run):
    fake_run(tmp_path, seed=0)
    fake_run(tmp_path, seed=1, options={"soften": 0.0})
    fake_run(tmp_path, seed=2, options={"soften": 0.6})
    assert sorted(member.seeds for member in group(scan(tmp_path))) == [[0, 1], [2]]


def test_options_of_the_stream_split_groups_too(tmp_path, fake_run):
    for difficulty in (1, 2):
        fake_run(tmp_path, stream_options={"difficulty": difficulty})
    assert {member.label for member in group(scan(tmp_path))} == {
        "pdcl stream.difficulty=1",
        "pdcl stream.difficulty=2",
    }


def test_variants_with_labels_stand_apart_and_are_compared_by_them(tmp_path, fake_run):
    for seed in range(2):
        fake_run(tmp_path / "plain", seed=seed)
        fake_run(tmp_path / "tight", accuracy=0.9, seed=seed, label="pdcl, tight")
    groups = group(scan(tmp_path))
    assert [member.label for member in groups] == ["pdcl, tight", "pdcl"]
    (entry,) = compare(groups, "pdcl")
    assert entry.accuracy.mean == pytest.approx(0.1)


def test_where_an_option_came_from_splits_nothing(tmp_path, fake_run):
    fake_run(tmp_path, seed=0)
    fake_run(tmp_path, seed=1, options={"alpha": 0.5})
    (member,) = group(scan(tmp_path))
    assert member.seeds == [0, 1]


def test_a_copy_of_a_run_is_no_further_seed(tmp_path, fake_run):
    fake_run(tmp_path / "a", seed=0)
    fake_run(tmp_path / "b", seed=0)
    (member,) = group(scan(tmp_path))
    assert member.seeds == [0]


def test_order_is_stream_then_memory_then_the_best_first(tmp_path, fake_run):
    for memory in ("64MB", 1000, 200):
        for method, accuracy in (("er", 0.5), ("pdcl", 0.9)):
            fake_run(tmp_path, accuracy=accuracy, method=method, memory=memory)
    fake_run(tmp_path, stream="aaa")
    fake_run(tmp_path, accuracy=math.nan, method="diverged", memory=200)
    order = [(g.first.stream, g.first.memory, g.first.method) for g in group(scan(tmp_path))]
    assert order == [
        ("aaa", 100, "pdcl"),
        ("digits", 200, "pdcl"), ("digits", 200, "er"), ("digits", 200, "diverged"),
        ("digits", 1000, "pdcl"), ("digits", 1000, "er"),
        ("digits", "64MB", "pdcl"), ("digits", "64MB", "er"),
    ]  # fmt: skip


def test_differences_are_paired_by_seed(tmp_path, fake_run):
    ours, theirs = [0.80, 0.90, 0.70, 0.85], [0.78, 0.87, 0.69, 0.80]
    for seed in range(4):
        fake_run(tmp_path, accuracy=ours[seed], seed=seed)
        fake_run(tmp_path, accuracy=theirs[seed], seed=seed, method="er")
    fake_run(tmp_path, accuracy=0.1, seed=9)
    (entry,) = compare(group(scan(tmp_path)), "er")
    oracle = scipy.stats.ttest_rel(ours, theirs)
    assert (entry.accuracy.low, entry.accuracy.high) == pytest.approx(tuple(oracle.confidence_interval(0.95)))
    assert entry.accuracy.n == 4
    assert entry.forgetting.mean == 0


def test_only_like_is_compared_with_like(tmp_path, fake_run):
    for memory in (100, 200):
        fake_run(tmp_path, memory=memory)
        fake_run(tmp_path, memory=memory, method="er")
    fake_run(tmp_path, memory=300)
    fake_run(tmp_path, memory=100, method="er", preset="paper")
    fake_run(tmp_path, memory=None, method="joint")
    groups = group(scan(tmp_path))
    met = {(c.group.first.method, c.group.first.memory, c.baseline.first.memory) for c in compare(groups, "er")}
    assert met == {("pdcl", 100, 100), ("pdcl", 200, 200), ("joint", None, 100), ("joint", None, 200)}
    assert {c.group.first.memory for c in compare(groups, "joint")} == {100, 200, 300}


def test_a_misspelt_baseline_is_put_right(tmp_path, fake_run):
    fake_run(tmp_path, method="er-ring")
    with pytest.raises(UsageError, match="did you mean 'er-ring'"):
        compare(group(scan(tmp_path)), "er-rng")
    with pytest.raises(UsageError, match="there are: er-ring"):
        compare(group(scan(tmp_path)), "xyz")
