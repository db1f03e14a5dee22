"""What trackers write, read back by their own readers, is what the run says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdcl
from pdcl.integrations.trackers import MLflow, TensorBoard, Tracker, WandB
from pdcl.learning.events import DualsMoved, Evaluated, Event, Partitioned, Stepped, TaskBegan

OPTIONS: dict[str, Any] = {"memory": 40, "network": "linear", "epochs": 2, "tolerance": 0.1, "witness": 0, "guard": 0}


class Kept(Tracker):
    """Remembers what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, list[tuple[int, float]]] = {}
        self.facts: dict[str, Any] = {}

    def plot(self, numbers: dict[str, float], step: int) -> None:
        for name, value in numbers.items():
            self.numbers.setdefault(name, []).append((step, value))

    def note(self, facts: dict[str, Any]) -> None:
        self.facts |= facts

    def close(self) -> None: ...


def same(found: list[tuple[int, float]], expected: list[tuple[int, float]]) -> bool:
    """Equal steps, and values to single precision."""
    return np.allclose(np.asarray(found), np.asarray(expected), rtol=1e-6, atol=0)


def run(*trackers: Tracker) -> tuple[Kept, pdcl.Result, list[Event]]:
    """A small run, what a plain tracker heard of it, and its events."""
    events: list[Event] = []
    stream = pdcl.stream("synthetic", tasks=3, dim=4, size=40, test_size=20)
    kept = Kept()
    result = pdcl.run(stream, "pdcl", batch=10, listeners=[events.append, kept, *trackers], **OPTIONS)
    for tracker in trackers:
        tracker.close()
    return kept, result, events


def test_numbers_are_those_of_the_result_at_steps_of_the_whole_run() -> None:
    kept, result, events = run()
    sizes = [event.steps for event in events if isinstance(event, TaskBegan)]
    ends = [sum(sizes[: k + 1]) for k in range(3)]
    assert [step for step, _ in kept.numbers["mean_accuracy"]] == ends
    final = [kept.numbers[f"accuracy/{k}"][-1][1] for k in range(3)]
    assert final == result.accuracy["class_il"][-1]
    assert kept.numbers["final/mean_accuracy"] == [(ends[-1], result.mean_accuracy)]
    assert [kept.numbers[f"memory/{k}"][-1][1] for k in range(3)] == result.partitions[-1]
    moved = [event for event in events if isinstance(event, DualsMoved)]
    assert [value for _, value in kept.numbers["dual/0"]] == [event.duals[0] for event in moved]
    assert kept.facts["stream"] == "synthetic"
    assert kept.facts["task/1"]


def test_steps_never_go_back_and_count_every_update() -> None:
    kept, _, events = run()
    steps = [step for step, _ in kept.numbers["loss"]]
    assert steps == sorted(steps)
    assert steps[-1] == sum(event.steps for event in events if isinstance(event, TaskBegan))
    assert len(kept.numbers["loss"]) == sum(isinstance(event, Stepped) for event in events)


def test_one_tracker_hears_a_life_of_tasks() -> None:
    kept, learner = Kept(), pdcl.learner("er", "linear", memory=10)
    for first in (0, 2):
        learner.learn([[float(first)], [first + 1.0]] * 10, [first, first + 1] * 10, epochs=1, batch=5, listener=kept)
    assert [step for step, _ in kept.numbers["loss"]][-1] == 8


def test_tensorboard_s_reader_finds_the_same(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    kept, _, _ = run(TensorBoard(tmp_path))
    found = EventAccumulator(str(tmp_path)).Reload()
    assert set(found.Tags()["scalars"]) == set(kept.numbers)
    for name, values in kept.numbers.items():
        assert same([(each.step, each.value) for each in found.Scalars(name)], values)


def test_mlflow_s_store_holds_the_same(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    tracker = MLflow(uri, name="small")
    kept, _, _ = run(tracker)
    client = mlflow.MlflowClient(tracking_uri=uri)
    for name in ("loss", "dual/0", "mean_accuracy"):
        history = client.get_metric_history(tracker.run_id, name)
        assert same(sorted((each.step, each.value) for each in history), sorted(kept.numbers[name]))
    info = client.get_run(tracker.run_id)
    assert info.info.status == "FINISHED"
    assert info.data.params["method"] == "pdcl"


def records_in(content: bytes) -> Iterator[bytes]:
    """The records of a .wandb file: LevelDB's log format behind a header of 7 bytes.

    Blocks of 32 KiB; a piece is crc (4 bytes), length (2), kind (1: whole, 2: first, 3: middle, 4: last), data.
    """
    place, pieces = 7, b""
    while place + 7 <= len(content):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
            continue
        size, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        if place + 7 + size > len(content):
            return  # It is being written.
        pieces += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):
            yield pieces
            pieces = b""


def finished(path: Path) -> list[Any]:
    """All records, once the last one is there: W&B's own process writes them, and may be behind."""
    from wandb.proto import wandb_internal_pb2

    until = time.monotonic() + 60
    while True:
        records = []
        for data in records_in(path.read_bytes()):
            records.append(wandb_internal_pb2.Record())
            records[-1].ParseFromString(data)
        if time.monotonic() > until or any(each.WhichOneof("record_type") == "exit" for each in records):
            return records
        time.sleep(0.2)


def test_wandb_s_offline_file_holds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    kept, result, _ = run(WandB(project="pdcl", mode="offline", dir=str(tmp_path)))
    [path] = tmp_path.glob("wandb/offline-run-*/*.wandb")
    found: list[dict[str, float]] = []
    for record in finished(path):
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            found.append({each.key or "/".join(each.nested_key): json.loads(each.value_json) for each in items})
    losses = [(row["_step"], row["loss"]) for row in found if "loss" in row]
    assert same(losses, kept.numbers["loss"])
    assert found[-1]["final/mean_accuracy"] == pytest.approx(result.mean_accuracy)


def test_the_page_names_every_event() -> None:
    page = (Path(__file__).parents[2] / "docs" / "loops.md").read_text(encoding="utf-8")
    for kind in Event.__subclasses__():
        assert f"`{kind.__name__}`" in page
    assert Partitioned in Event.__subclasses__()
    assert Evaluated in Event.__subclasses__()
