"""A map that is kept says what the one of the snapshot said."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pdcl.errors import RecordError
from pdcl.lab.figures.maps import FILE, map_of, read_map
from pdcl.lab.reports.holdings import Holdings
from pdcl.records.writing import dumps


def held(count: int = 40) -> Holdings:
    random = np.random.default_rng(0)
    y = np.arange(count) % 4
    return Holdings(np.zeros((count, 1)), y, y // 2, random.random(count), random.normal(size=(count, 8)) + y[:, None])


def test_a_kept_map_is_the_same_map_without_features(tmp_path):
    found = map_of(held())
    (tmp_path / FILE).write_text(dumps(found.as_json()))
    assert read_map(tmp_path) == found
    assert found.borders is not None
    assert set(found.points) == {"method", "x", "y", "task", "label", "dual", "of"}


def test_borders_of_an_older_map_were_counted_otherwise_and_are_not_shown(tmp_path):
    content = {"points": map_of(held()).points, "borders": {"large": 0.9, "all": 0.8}}
    (tmp_path / FILE).write_text(dumps(content))
    assert read_map(tmp_path).borders is None


def test_no_features_and_no_file_are_no_map(tmp_path):
    bare = held()
    assert map_of(Holdings(bare.x, bare.y, bare.task, bare.dual, None)) is None
    assert read_map(tmp_path) is None


@pytest.mark.parametrize(
    "change", [{"x": [1.0]}, {"task": [-1] * 40}, {"task": ["a"] * 40}, {"dual": None}, {"of": -1}, {"of": "many"}]
)
def test_a_damaged_map_is_told_with_its_place(tmp_path, change):
    content = map_of(held()).as_json()
    (tmp_path / FILE).write_text(json.dumps({**content, "points": {**content["points"], **change}}))
    with pytest.raises(RecordError, match=r"map\.json is no map of a memory"):
        read_map(tmp_path)
