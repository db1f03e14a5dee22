"""The page on own data is a program: its blocks run in order, and each makes a stream in under ten lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdcl

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]
BLOCKS = [
    (section.splitlines()[0], block)
    for section in SECTIONS
    for block in re.findall(r"```python\n(.*?)```", section, re.S)
]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the files that the page speaks of."""
    image = pytest.importorskip("PIL.Image", reason="reading images needs Pillow")
    generator = np.random.default_rng(0)
    for k, name in enumerate(("cat", "dog", "fox", "owl")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(10):
            pixels = np.clip(generator.normal(60 * k, 20, (40, 50, 3)), 0, 255).astype(np.uint8)
            image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    species = [name for name in ("daisy", "iris", "rose") for _ in range(20)]
    season = {"daisy": "spring", "iris": "spring", "rose": "summer"}
    rows = [f"{generator.normal()},{1000 * generator.normal()},east,{season[name]},{name}" for name in species]
    (tmp_path / "flowers.csv").write_text("\n".join(["petal,weight,site,season,species", *rows]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pdcl.streams.catalog._registered", {})
    return tmp_path


def test_every_way_takes_under_ten_lines() -> None:
    ways = [(title, block) for title, block in BLOCKS if title != "Then"]
    assert len(ways) == 10
    for title, block in ways:
        lines = [line for line in block.splitlines() if line.strip()]
        assert len(lines) < 10, title


@pytest.mark.usefixtures("there")
def test_the_page_runs_from_top_to_bottom() -> None:
    names: dict[str, Any] = {}
    streams = {}
    for title, block in BLOCKS:
        exec(compile(block, f"{PAGE.name}: {title}", "exec"), names)
        streams[title] = names["stream"]
        assert isinstance(names["stream"], pdcl.Stream), title
    heads = {title: [len(task.classes) for task in stream.tasks] for title, stream in streams.items()}
    assert heads["NumPy arrays (or tensors)"] == [2, 2, 2]
    assert heads["A CSV file"] == [2, 1]
    assert heads["A folder of images"] == [2, 2]
    assert streams["A folder of images"].spec.shape == (3, 32, 32)
    lazy = streams["A `torch.utils.data.Dataset`, larger than memory"]
    assert lazy.spec == streams["A folder of images"].spec
    assert 0 <= names["result"].mean_accuracy <= 1
    assert pdcl.stream("photos", classes_per_task=4).spec.heads == ((0, 1, 2, 3),)
