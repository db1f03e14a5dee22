"""Limits in a LightningModule's training: the core's duals, its own step otherwise."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

lightning = pytest.importorskip("lightning.pytorch")
sys.path.insert(0, str(Path(__file__).parent))

import one_problem  # noqa: E402

import pdcl  # noqa: E402
from pdcl.errors import Diverged, UsageError  # noqa: E402
from pdcl.integrations.lightning import DualReplay  # noqa: E402
from pdcl.storage.serialize import same  # noqa: E402


class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)  # type: ignore[no-any-return]

    def training_step(self, batch: Any, number: int) -> Tensor:
        x, y = batch
        return cross_entropy(self(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), one_problem.LR)


def trainer(place: Path, *callbacks: Any, **options: Any) -> Any:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    given = {"accelerator": "cpu", "max_epochs": one_problem.EPOCHS, "default_root_dir": place, **quiet, **options}
    return lightning.Trainer(callbacks=list(callbacks), **given)


@pytest.mark.parametrize("pulled", [False, True])
def test_duals_are_those_of_a_loop_written_by_hand(tmp_path: Path, pulled: bool) -> None:
    lever = one_problem.Fading() if pulled else None
    _, expected = one_problem.by_hand(one_problem.Fading() if pulled else None)
    module, replay = Module(one_problem.network()), DualReplay(one_problem.core(lever))
    for number in range(one_problem.TASKS):
        part: Any = replay.enter(f"task {number}", one_problem.Rows(number), module)
        loader = DataLoader(part, one_problem.BATCH, sampler=one_problem.InOrder(len(part), number))
        trainer(tmp_path, replay).fit(module, loader)
        np.testing.assert_allclose(replay.ended.duals, expected[number], rtol=0, atol=1e-6)
    assert lever is None or lever.steps == {1: 8, 2: 8}
    assert replay.promises is not None
    assert len(replay.promises) >= one_problem.TASKS


def _two_tasks(seed: int = 0) -> list[TensorDataset]:
    random = torch.Generator().manual_seed(seed)
    targets = [torch.arange(40) % 2 + 2 * task for task in range(2)]
    return [TensorDataset(torch.randn(40, 6, generator=random) + 2 * torch.eye(6)[y], y) for y in targets]


def test_without_past_tasks_a_step_is_the_module_s_own(tmp_path: Path) -> None:
    data = _two_tasks()[0]
    plain, limited = (Module(one_problem.network().float()) for _ in range(2))
    trainer(tmp_path).fit(plain, DataLoader(data, 8))
    replay = DualReplay(pdcl.PrimalDual(20))
    trainer(tmp_path, replay).fit(limited, DataLoader(replay.enter("first", data, limited), 8))
    for one, other in zip(plain.parameters(), limited.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_past_task_is_kept_that_plain_training_forgets(tmp_path: Path) -> None:
    tasks = _two_tasks()

    def accuracy_on_the_first(core: pdcl.PrimalDual | None) -> float:
        module = Module(one_problem.network().float())
        replay = None if core is None else DualReplay(core)
        for name, data in zip("ab", tasks, strict=True):
            part: Any = data if replay is None else replay.enter(name, data, module)
            trainer(tmp_path, *([] if replay is None else [replay]), max_epochs=8).fit(module, DataLoader(part, 8))
        x, y = tasks[0].tensors
        return float((module(x).argmax(1) == y).float().mean())

    assert accuracy_on_the_first(None) < 0.5
    assert accuracy_on_the_first(pdcl.PrimalDual(20)) > 0.8


def test_a_checkpoint_of_the_trainer_holds_the_core(tmp_path: Path) -> None:
    module, replay = Module(one_problem.network().float()), DualReplay(pdcl.PrimalDual(20, 0.5))
    first = trainer(tmp_path, replay)
    first.fit(module, DataLoader(replay.enter("first", _two_tasks()[0], module), 8))
    first.save_checkpoint(tmp_path / "one.ckpt")
    states = torch.load(tmp_path / "one.ckpt", weights_only=False)["callbacks"]
    found = DualReplay(pdcl.PrimalDual(20, 0.5))
    found.load_state_dict(states[replay.state_key])
    assert len(found.core.memory) == 20
    assert found.samples_seen == 40
    assert same(found.state_dict(), replay.state_dict())


def test_duals_are_logged_by_lightning(tmp_path: Path) -> None:
    heard: dict[str, float] = {}

    class Listening(lightning.Callback):  # type: ignore[misc,name-defined]
        def on_train_batch_end(self, trainer: Any, *rest: Any) -> None:
            heard.update(trainer.logged_metrics)

    module, replay = Module(one_problem.network().float()), DualReplay(pdcl.PrimalDual(20, 0.01))
    for name, data in zip("ab", _two_tasks(), strict=True):
        part = replay.enter(name, data, module)
        trainer(tmp_path, replay, Listening()).fit(module, DataLoader(part, 8))
    assert {"pdcl/dual/0", "pdcl/slack/0"} <= heard.keys()


def test_what_can_t_be_done_is_said_in_one_line(tmp_path: Path) -> None:
    data, core = _two_tasks()[0], pdcl.PrimalDual(20)
    with pytest.raises(UsageError, match="selection by dual"):
        DualReplay(pdcl.PrimalDual(20, selection="dual"))
    with pytest.raises(UsageError, match="no task was entered"):
        trainer(tmp_path, DualReplay(core)).fit(Module(one_problem.network().float()), DataLoader(data, 8))
    replay, module = DualReplay(core), Module(one_problem.network().float())
    replay.enter("first", data, module)
    with pytest.raises(UsageError, match="not been learned"):
        replay.enter("second", data, module)
    module.training_step = lambda batch, number: (module(batch[0]) * torch.nan).mean()
    with pytest.raises(Diverged, match="loss became nan"):
        trainer(tmp_path, replay).fit(module, DataLoader(data, 8))
    endless = DualReplay(pdcl.PrimalDual(20))
    module = Module(one_problem.network().float())
    endless.enter("first", data, module)
    with pytest.raises(UsageError, match="max_epochs or max_steps"):
        trainer(tmp_path, endless, max_epochs=-1).fit(module, DataLoader(data, 8))
