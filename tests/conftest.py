"""What every test stands on: one thread, and the same hypotheses on every machine."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import settings

# Workers share the cores, and small tensors lose more to thread hand-over than they win.
torch.set_num_threads(1)

# A shell starts what it puts in the background with Ctrl-C ignored, and tests of interrupts would then hear nothing.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Derandomised, a red test is red for everyone; `--hypothesis-profile=explore` looks further.
settings.register_profile("steady", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("steady")


def pytest_runtest_setup() -> None:
    """What a test draws without a seed of its own is the same whatever ran before it, and in whichever process."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def own_ledgers(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks that one test takes at an audit set are unknown to the next, and to whoever runs the tests."""
    monkeypatch.setenv("PDCL_LEDGERS", str(tmp_path_factory.mktemp("ledgers")))


@pytest.fixture
def fake_run() -> FakeRun:
    """Writes the record of a run that never ran."""
    return FakeRun()


class FakeRun:
    config: ClassVar[dict[str, Any]] = {
        "stream": "digits",
        "stream_options": {},
        "method": "pdcl",
        "preset": "auto",
        "memory": 100,
        "seed": 0,
        "options": {"alpha": {"value": 0.5, "source": "method"}, "lr": {"value": 0.1, "source": "preset"}},
        "versions": {"pdcl": "0.1.0"},
        "data": {"train": "00ff"},
    }

    def configured(self, options: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
        full = {**self.config, **changes}
        given = {**(options or {}), "memory": full["memory"], "seed": full["seed"]}
        named = {name: {"value": value, "source": "user"} for name, value in given.items()}
        return {**full, "options": {**self.config["options"], **named}}

    def result(self, accuracy: float = 0.8, forgetting: float = 0.1, seconds: float = 2.0) -> dict[str, Any]:
        matrix = [[accuracy + forgetting, 0.0], [accuracy, accuracy]]
        return {
            "mean_accuracy": accuracy,
            "mean_forgetting": forgetting,
            "accuracy": {"class_il": matrix, "task_il": [[0.99, 0.5], [0.9, 0.98]]},
            "duals": [[], [1.5, 0.2]],
            "partitions": [[100], [60, 40]],
            "confusion": [[9, 1], [2, 8]],
            "cost": {"seconds": seconds, "cpu_seconds": 2 * seconds, "peak_memory_mb": 300.0},
        }

    def __call__(self, out: Path, accuracy: float | None = 0.8, forgetting: float = 0.1, **config: Any) -> Path:
        """A finished run, or one without a result where `accuracy` is None."""
        from pdcl.records import Record, run_name

        full = self.configured(**config)
        names = [full[key] for key in ("stream", "method", "memory", "seed")]
        changed = {key: config[key] for key in ("options", "preset", "stream_options") if key in config}
        with Record.create(out, run_name(*names, changed), full) as record:
            if accuracy is not None:
                record.write_result(self.result(accuracy, forgetting))
        return record.path
