"""The pages on the gate and on updates are programs: three months are run, with a class that nobody knew of."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pdcl.release.evidence import verify
from pdcl.release.outcome import CAVEAT

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "gate.md"


@pytest.fixture
def page(tmp_path, monkeypatch):
    """What the pages define, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for place in (PAGE, DOCS / "update.md"):
        for block in re.findall(r"```python\n(.*?)```", place.read_text(encoding="utf-8"), re.S):
            exec(compile(block, str(place), "exec"), names)
    return names


def month(seed, labels):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, len(labels), 400)
    x = generator.normal(0, 0.4, (400, 6)).astype(np.float32)
    x[np.arange(400), np.asarray([int(labels[c][-1]) for c in y])] += 4
    return x, np.asarray(labels)[y]


def test_a_model_is_updated_every_month_and_released_while_it_passes(page):
    page["first_model"](*month(0, ["c0", "c1"]))
    assert page["monthly_update"]("2026-02", *month(1, ["c0", "c1", "c2"]))
    third = month(2, ["c0", "c2"])
    flipped = np.where(third[1] == "c0", "c1", "c0")
    assert not page["monthly_update"]("2026-03", third[0], flipped), "it contradicts what was learned"
    assert [path.name for path in Path("released").glob("*.pt2")] == ["2026-02.pt2"]
    verdict = verify("evidence/2026-03")
    assert verdict["look"] == {"number": 2, "of": 12, "level": 0.05 / 12, "confidence": 1 - 0.05 / 12}
    assert verdict["verdict"] != "PASS"
    lineage = json.loads(Path("evidence/2026-03/lineage.json").read_text())
    assert [entry["name"] for entry in lineage["tasks"]] == ["2026-01", "2026-02", "2026-03"]
    assert "Set aside as audit data" in Path("model/MODEL.md").read_text()


def test_an_audit_set_made_by_hand_is_read(page):
    x, y = month(0, ["c0", "c1"])
    page["write_audit_set"](x, y, np.arange(400), np.array(["north", "south"] * 200))
    from pdcl.streams.audits import read_audit

    assert set(read_audit("audit-by-hand").columns) == {"patient", "site"}


def test_the_page_says_exactly_what_a_pass_means():
    assert CAVEAT in PAGE.read_text(encoding="utf-8")
