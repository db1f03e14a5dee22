"""The lever of docs/extending.md is pulled at each dual step, whoever trains."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import one_problem

import pdcl
from pdcl.algorithm import rules

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
MOST = 0.5


@pytest.fixture
def share(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The page's lever, which notes what b + λ of each past task come to after each dual step."""
    monkeypatch.setitem(rules._KNOWN, "lever", dict(rules._KNOWN["lever"]))
    module = type(sys)("share")
    monkeypatch.setitem(sys.modules, "share", module)
    code = re.search(r'^```python title="share.py"\n(.*?)^```$', PAGE, re.DOTALL | re.MULTILINE)
    assert code is not None
    exec(code[1], module.__dict__)
    lever, noted = module.Share(MOST), []
    pull = type(lever).pull

    def noting(self: Any, core: pdcl.PrimalDual, moved: Any) -> None:
        pull(self, core, moved)
        noted.append((core.past_tasks, sum(moved.duals), float(core.algorithm.constraints.base.sum())))

    monkeypatch.setattr(type(lever), "pull", noting)
    return lever, noted


@pytest.mark.parametrize("driver", ["by_hand", "by_learner", "by_task_replay"])
def test_the_lever_of_the_page_acts_in_every_loop(driver: str, share: Any) -> None:
    """Eight dual steps in each of two tasks with a past; b is lowered to what Σ λ leaves of the bound."""
    lever, noted = share
    getattr(one_problem, driver)(lever)
    assert [tasks for tasks, _, _ in noted] == [1] * 8 + [2] * 8
    for tasks, duals, base in noted:
        assert base == pytest.approx(min(tasks, max(0.0, MOST - duals)), abs=1e-9)


def test_the_lever_of_the_page_acts_in_the_trainer(share: Any, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from hf_models import arguments, llama, sequences

    from pdcl.integrations.hf import ConstrainedTrainer

    lever, noted = share
    constraints = {"lever": lever, "base": 1.0, "dual_steps": 3, "guard": 0, "witness": 0}
    ConstrainedTrainer(
        model=llama(), args=arguments(tmp_path, max_steps=6), train_dataset=sequences(40, 2, 1),
        capabilities={"one": (sequences(20, 1), "1.1x")}, constraints=constraints,
    ).train()  # fmt: skip
    assert len(noted) == 3
    assert all(base == pytest.approx(max(0.0, MOST - duals), abs=1e-9) for _, duals, base in noted)
