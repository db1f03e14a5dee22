"""What the plan says beforehand is what happens; it takes no look. One language for limits."""

import json

import numpy as np
import pytest

from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.judging.paired import change_above
from pdcl.release.amounts import amount_of
from pdcl.release.foresight import most_changed


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [("+2pt", "max_drop", 0.02), ("2%", "max_drop", 0.02), ("0.02", "max_drop", 0.02), ("5%", "max_error", 0.05),
     ("95%", "min_sensitivity", 0.95), ("0.5", "max_loss", 0.5), ("+2pt", "limits['a']", 0.02)],
)  # fmt: skip
def test_limits_are_read_alike(text, name, value):
    assert amount_of(text, name) == value


@pytest.mark.parametrize(
    ("text", "name"), [("+2pt", "max_error"), ("5%", "max_loss"), ("1.1x", "max_drop"), ("much", "max_drop")]
)
def test_a_unit_that_makes_no_sense_is_refused(text, name):
    with pytest.raises(UsageError):
        amount_of(text, name)


@pytest.mark.parametrize(
    ("rows", "looks", "limit"), [(750, 12, 0.05), (750, 12, 0.02), (1319, 1, 0.02), (5000, 12, 0.02)]
)
def test_the_stated_share_of_changes_passes_four_times_in_five(rows, looks, limit):
    """The oracle is the gate itself on simulated months: as good as before, with the share that the plan names."""
    level, random = 0.05 / looks, np.random.default_rng(0)
    share = most_changed(rows, limit, level)
    counts = random.multinomial(rows, [share / 2, share / 2, 1 - share], 400)
    passed = np.mean([change_above(int(b), int(c), rows, limit, level) <= level for b, c, _ in counts])
    assert 0.7 < passed < 0.95
    more = random.multinomial(rows, [share, share, 1 - 2 * share], 400)
    assert np.mean([change_above(int(b), int(c), rows, limit, level) <= level for b, c, _ in more]) < 0.7


def test_the_plan_of_two_logs_takes_no_look(tmp_path, capsys):
    rows = [{"id": k, "task": "math", "score": int(k % 4 > 0)} for k in range(750)]
    (tmp_path / "old.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = [
        "gate",
        "--before",
        str(tmp_path / "old.jsonl"),
        "--after",
        str(tmp_path / "unread.jsonl"),
        "--looks",
        "12",
    ]
    assert main([*words, "--limit", "math:+2pt", "--plan"]) == 0
    told = capsys.readouterr().out
    assert "only if fewer than 1.5 % of answers change, 11 samples" in told
    assert [p.name for p in tmp_path.iterdir()] == ["old.jsonl"]
    assert main([*words, "--limit", "math:+0.5pt", "--plan"]) == 0
    assert "can't let it pass, even if no answer changes: +0.7pt is the least" in capsys.readouterr().out
    assert main([*words, "--limit", "math:5%", "--plan"]) == 0
    assert "5 % passes (80 %) if the error is truly below" in capsys.readouterr().out
