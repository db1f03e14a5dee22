"""Limits in Hugging Face's Trainer on several ranks: what one process gives at the same global batch.

Ranks are real: started by torchrun, joined by gloo over 127.0.0.1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytest.importorskip("peft")
pytest.importorskip("trl")
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "learning")]

from hf_models import sequences  # noqa: E402
from ranks_started import free_port  # noqa: E402

from pdcl.errors import UsageError  # noqa: E402
from pdcl.integrations.hf_capabilities import read_capabilities  # noqa: E402
from pdcl.integrations.hf_constraints import Constraints  # noqa: E402
from pdcl.integrations.hf_ranks import ranks_of  # noqa: E402
from pdcl.ranks import ALONE, Ranks  # noqa: E402

# The trainings that tests compare are run once, so one worker runs all tests that need them.
pytestmark = pytest.mark.xdist_group("hf_ranks")
COMPARED = ("drawn", "accumulated", "whole", "few", "lora", "sft")


def started(world: int, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`hf_on_ranks.py` with these words under torchrun."""
    folder.mkdir(parents=True, exist_ok=True)
    run = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(world), "--master-addr", "127.0.0.1"]
    run += ["--master-port", str(free_port()), str(HERE / "hf_on_ranks.py"), str(folder), *words]
    env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.run(run, timeout=600, capture_output=True, text=True, check=False, env=env)


def finished(world: int, folder: Path, *words: str) -> str:
    done = started(world, folder, *words)
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stdout


def found(folder: Path, name: str, rank: int = 0) -> Any:
    return torch.load(folder / f"{name}-{rank}.pt")


def compare(one: Any, other: Any) -> None:
    assert one["duals"].shape == other["duals"].shape
    for key, by in (("weights", 1e-6), ("duals", 1e-6), ("slacks", 1e-6), ("losses", 1e-5)):
        assert (one[key] - other[key]).abs().max() < by, key
    assert one["promises"] == other["promises"]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks") / "two"
    said = finished(2, folder, *COMPARED, "dropout", "drawn:poison")
    # One rank speaks.
    assert said.count("'train_loss'") == len(COMPARED) + 1
    return folder


def taken_over(two: Path, folder: Path) -> str:
    """The word for `drawn`, from the checkpoint that two ranks wrote after half of the steps."""
    for step in (3, 6):
        shutil.copytree(two / "drawn" / f"checkpoint-{step}", folder / f"checkpoint-{step}")
    return f"drawn@{folder}"


@pytest.fixture(scope="module")
def one(two: Path) -> Path:
    folder = two.parent / "one"
    finished(1, folder, *COMPARED, taken_over(two, folder / "from-two"))
    return folder


@pytest.mark.parametrize("name", COMPARED)
def test_two_ranks_end_with_the_weights_and_duals_of_one_process(name: str, one: Path, two: Path) -> None:
    assert found(one, name)["duals"][-1].max() > 0.2
    compare(found(one, name), found(two, name))


@pytest.mark.parametrize("name", [*COMPARED, "dropout"])
def test_duals_and_weights_are_equal_on_all_ranks(name: str, two: Path) -> None:
    first, second = found(two, name, 0), found(two, name, 1)
    assert torch.equal(first["duals"], second["duals"])
    assert torch.equal(first["weights"], second["weights"])
    assert first["promises"] == second["promises"] != "None"


@pytest.mark.slow
def test_four_ranks_end_as_one_process_and_go_on_from_two(one: Path, two: Path, tmp_path: Path) -> None:
    finished(4, tmp_path, *COMPARED, taken_over(two, tmp_path / "from-two"))
    for name in COMPARED:
        compare(found(one, name), found(tmp_path, name))
    compare(found(one, "drawn"), found(tmp_path, "drawn-resumed"))


def test_one_process_goes_on_from_a_checkpoint_of_two_ranks(one: Path, two: Path) -> None:
    compare(found(two, "drawn"), found(one, "drawn-resumed"))


def test_after_a_rank_is_killed_while_it_saves_training_goes_on_and_ends_as_it_would_have(
    two: Path, tmp_path: Path
) -> None:
    killed = started(2, tmp_path, "dropout:kill")
    assert killed.returncode != 0
    assert (tmp_path / "dropout" / "checkpoint-9").exists()
    finished(2, tmp_path, f"dropout@{tmp_path / 'dropout'}")
    for key in ("weights", "duals"):
        assert torch.equal(found(tmp_path, "dropout-resumed")[key], found(two, "dropout")[key])


def test_a_checkpoint_holds_one_state_and_a_generator_of_every_rank(two: Path) -> None:
    names = {path.name for path in (two / "dropout" / "checkpoint-3").iterdir()}
    assert names >= {"pdcl.pt", "trainer_state.json", "rng_state_0.pth", "rng_state_1.pth"}


def test_a_loss_of_one_rank_that_is_not_finite_stops_all_of_them(two: Path) -> None:
    for rank in (0, 1):
        end = found(two, "drawn:poison", rank)
        assert end["error"].startswith("the loss on the new data isn't finite after step 3")
        assert end["step"] == 3
        assert end["weights"].isfinite().all()


def test_the_mean_over_ranks_of_weighted_replay_is_that_of_one_process() -> None:
    """For any number of ranks, also where fewer samples are drawn than there are ranks."""
    losses = torch.rand(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    given = read_capabilities({"one": (sequences(40, 1), "0.5x")})
    for m in (1, 3, 8):
        totals = []
        for world in (1, 2, 3, 4):
            total = share = 0.0
            for rank in range(world):
                constraints = Constraints(given, 0, {"base": 1.0})
                constraints.begin(lambda numbers: losses[numbers, None].expand(-1, 2), 10)
                constraints.ranks = constraints.core.ranks = Ranks(rank, world)
                replay = constraints.draw(m)
                assert replay is not None
                total += float((replay.weights * losses[replay.numbers]).sum()) / world
                share += replay.share / world
            totals.append((total, share))
        assert totals == [pytest.approx(totals[0], rel=1e-6)] * 4


def trainer(**changed: Any) -> Any:
    sizes = {name: lambda: 1 for name in ("get_tp_size", "get_cp_size", "get_sp_size")}
    args = {"n_gpu": 1, "world_size": 2, "ddp_static_graph": None}
    args.update({name: changed.pop(name) for name in args if name in changed})
    accelerator = SimpleNamespace(distributed_type=SimpleNamespace(name=changed.pop("kind", "MULTI_GPU")))
    given = {"model": torch.nn.Linear(1, 1), "accelerator": accelerator, **sizes, **changed}
    return SimpleNamespace(args=SimpleNamespace(**args), **given)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"n_gpu": 4, "world_size": 1}, "start one for each: torchrun --nproc-per-node 4"),
        ({"kind": "FSDP"}, "not with FSDP.*without fsdp"),
        ({"kind": "DEEPSPEED"}, "not with DEEPSPEED"),
        ({"get_tp_size": lambda: 2}, "or a divided one.*parallelism_config"),
        ({"ddp_static_graph": True}, "ddp_static_graph=True.*leave it out"),
        ({"model": torch.nn.BatchNorm1d(3)}, "batch statistics.*use GroupNorm"),
    ],
)
def test_what_cannot_be_spread_over_ranks_is_refused_with_the_way_out(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says) as told:
        ranks_of(trainer(**changed))
    assert "\n" not in str(told.value)


def test_one_process_refuses_none_of_it() -> None:
    assert ranks_of(trainer(world_size=1, kind="FSDP", model=torch.nn.BatchNorm1d(3))) == ALONE
