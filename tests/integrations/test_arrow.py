"""Hugging Face's Dataset is learned as it is: the numbers that arrays give, in whole batches, in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.streams.arrow import ArrowRows, is_arrow
from pdcl.streams.checks import BadData

datasets = pytest.importorskip("datasets")
pa = pytest.importorskip("pyarrow")

STARTED = Path(__file__).parents[1] / "started"
COUNT = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(COUNT, 6)).astype("float32")
Y = np.arange(COUNT) % 4


def rows(**columns: Any) -> Any:
    return datasets.Dataset.from_dict({**columns, "label": Y})


def learned(x: Any, y: Any = None, **options: Any) -> tuple[Any, Any]:
    learner = pdcl.PDCL("mlp:8", memory=30, seed=3)
    learner.learn(x, y, epochs=2, batch=16, **options)
    return learner, learner.model.state_dict()


def same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


def test_it_learns_what_arrays_teach_to_the_bit() -> None:
    held = rows(x=list(X))
    one, weights = learned(X, Y)
    other, found = learned(held)
    assert same_weights(weights, found)
    assert np.array_equal(one.predict(X), other.predict(held))
    assert one.evaluate(X, Y) == other.evaluate(held) == other.evaluate(held, "label")
    assert one.lineage.entries[-1]["data"] == other.lineage.entries[-1]["data"]


def test_split_and_from_tasks_take_it_and_columns_have_names() -> None:
    held = datasets.Dataset.from_dict({"x": list(X), "kind": [f"k{k}" for k in Y], "who": np.arange(COUNT) // 4})
    stream = pdcl.split(held, "kind", groups="who", test_share=0.25)
    assert stream.spec.labels == ("k0", "k1", "k2", "k3")
    assert stream.tasks[0].data.groups is not None
    mine = pdcl.split(X, [f"k{k}" for k in Y], groups=np.arange(COUNT) // 4, test_share=0.25)
    for ours, other in zip(mine.tasks, stream.tasks, strict=True):
        index = torch.randperm(len(ours.data))
        assert torch.equal(ours.data.fetch(index)[0], other.data.fetch(index)[0])
        assert torch.equal(ours.data.targets, other.data.targets)
    held = rows(x=list(X))
    assert len(pdcl.split(held, test=held).tasks) == len(pdcl.split(held, "label", test=held).tasks) == 2
    assert len(pdcl.from_tasks([(held, held), (held,)]).tasks) == 2
    assert len(pdcl.from_tasks([(held, "label"), (held, "label", held, "label")]).tasks) == 2


def test_rows_that_were_shuffled_and_selected_are_the_right_ones() -> None:
    order = np.random.default_rng(1).permutation(COUNT)[:100]
    held = ArrowRows(rows(x=list(X)).select(order.tolist()).shuffle(seed=2), ["label"])
    numbers = [int(np.flatnonzero((row == X).all(1))[0]) for row in held.read_batch(list(range(100))).numpy()]
    assert sorted(numbers) == sorted(order.tolist())
    assert torch.equal(held.read_batch([7, 3]), torch.tensor(X[[numbers[7], numbers[3]]]))
    assert torch.equal(held[7][0], torch.tensor(X[numbers[7]]))


def image_columns() -> Any:
    features = datasets.Features({"x": datasets.Array3D((2, 3, 4), "uint8"), "label": datasets.Value("int64")})
    images = RNG.integers(0, 255, (COUNT, 2, 3, 4), dtype=np.uint8)
    return datasets.Dataset.from_dict({"x": images, "label": Y}, features=features), images


def test_shapes_types_and_tables_come_as_they_are() -> None:
    held, images = image_columns()
    found = ArrowRows(held, ["label"]).read_batch([5, 2])
    assert found.dtype == torch.uint8
    assert np.array_equal(found.numpy(), images[[5, 2]])
    table = rows(age=np.arange(COUNT), weight=X[:, 0].astype("float64"), member=Y > 1)
    found = ArrowRows(table, ["label"]).read_batch([5, 2])
    assert found.dtype == torch.float32
    assert found.tolist() == [[5, float(X[5, 0]), 0], [2, float(X[2, 0]), 1]]
    nested = ArrowRows(rows(x=[[[1.0, 2.0]] * 3] * COUNT), ["label"]).read_batch([0, 1])
    assert nested.shape == (2, 3, 2)


def test_columns_of_several_lengths_are_sequences_by_their_names() -> None:
    tokens = [list(range(1, 2 + k % 5)) for k in range(COUNT)]
    held = rows(input_ids=tokens, attention_mask=[[1] * len(row) for row in tokens])
    found = ArrowRows(held, ["label"]).read_batch([4, 5])
    assert found["input_ids"].lengths.tolist() == [5, 1]
    assert found["input_ids"].values.tolist() == [1, 2, 3, 4, 5, 1]
    # Rows that happen to be of one length are still sequences.
    assert ArrowRows(held, ["label"]).read_batch([0, 5])["input_ids"].lengths.tolist() == [1, 1]
    stream = pdcl.split(held)
    mine = pdcl.split({"input_ids": tokens, "attention_mask": [[1] * len(row) for row in tokens]}, Y)
    assert stream.spec == mine.spec


def test_pictures_are_decoded_by_the_library() -> None:
    pil = pytest.importorskip("PIL.Image")
    images = RNG.integers(0, 255, (COUNT, 5, 4, 3), dtype=np.uint8)
    held = rows(image=[pil.fromarray(image) for image in images])
    found = ArrowRows(held, ["label"]).read_batch([5, 2])
    assert np.array_equal(found.numpy(), images[[5, 2]].transpose(0, 3, 1, 2))
    odd = rows(image=[pil.fromarray(image[: 3 + k % 2]) for k, image in enumerate(images)])
    with pytest.raises(BadData, match="images of different sizes"):
        ArrowRows(odd, ["label"]).read_batch([0, 1])


def test_a_transform_of_the_users_is_applied() -> None:
    held = rows(x=list(X)).with_transform(lambda batch: {"x": [2 * torch.tensor(row) for row in batch["x"]]})
    _, weights = learned(2 * X, Y)
    assert same_weights(weights, learned(held, "label")[1])


def test_a_batch_is_one_read_and_no_sample_is_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    held, asked = rows(x=list(X)), []
    inner = datasets.Dataset.__getitem__
    monkeypatch.setattr(datasets.Dataset, "__getitem__", lambda own, key: asked.append(key) or inner(own, key))
    monkeypatch.setattr(ArrowRows, "__getitem__", None)
    learned(held)
    assert len(asked) < 2 * COUNT / 16 + 20
    assert not [key for key in asked if isinstance(key, int)]


def test_part_of_it_is_set_aside_for_the_gate(tmp_path: Path) -> None:
    _, weights = learned(X, Y, audit=tmp_path / "one")
    _, found = learned(rows(x=list(X)), audit=tmp_path / "other")
    assert same_weights(weights, found)
    one, other = (np.load(tmp_path / name / "samples.npz") for name in ("one", "other"))
    assert np.array_equal(one["x"], other["x"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rows(text=["a"] * COUNT), r"column 'text' holds string; tokenize them"),
        (lambda: rows(x=[None, *X[1:].tolist()]), r"column 'x' has missing values"),
        (lambda: rows(x=[{"a": 1}] * COUNT), r"column 'x' holds struct.*d.remove_columns\(\['x'\]\)"),
        (lambda: rows(), "no column of inputs"),
        (
            lambda: rows(x=list(X)).rename_column("label", "kind"),
            'say which column holds the targets, such as y="label"',
        ),
        (lambda: datasets.DatasetDict(train=rows(x=list(X))), r"give one of them: d\['train'\]"),
        (lambda: rows(x=[[[1.0], [1.0, 2.0]]] * COUNT), "rows of different lengths"),
    ],
)
def test_what_cant_be_read_is_refused_with_the_way_out(make: Any, message: str) -> None:
    for call in (pdcl.split, lambda held: pdcl.PDCL("mlp:8", memory=30).learn(held)):
        with pytest.raises(BadData, match=message):
            call(make())


def test_options_without_effect_are_refused() -> None:
    with pytest.raises(BadData, match="workers has no effect"):
        pdcl.split(rows(x=list(X)), workers=2)
    with pytest.raises(BadData, match="there is no column 'kind'"):
        pdcl.split(rows(x=list(X)), "kind")
    assert not is_arrow(torch.utils.data.TensorDataset(torch.zeros(3)))


SMALL_MEMORY = """
import sys
import datasets, numpy as np, torch
torch.set_num_threads(1)
import pdcl
from own_memory import growth

warm = np.random.default_rng(0).random((64, 1024), dtype=np.float32)
pdcl.PDCL("linear", memory=20).learn(datasets.Dataset.from_dict({"x": list(warm), "label": np.arange(64) % 2}))
held = datasets.Dataset.from_file(sys.argv[1])
learner = pdcl.PDCL("linear", memory=50, lr=0.01)
worst = growth()
learner.learn(held, epochs=1, batch=250)
learner.evaluate(held)
print(worst[0])
"""


def test_memory_stays_small_while_a_large_table_is_learned(tmp_path: Path) -> None:
    block = np.random.default_rng(0).random((1000, 1024), dtype=np.float32)
    schema = pa.schema({"x": pa.list_(pa.float32()), "label": pa.int64()})
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for start in range(50):
            x = pa.ListArray.from_arrays(np.arange(1001, dtype=np.int32) * 1024, (block + start).ravel())
            writer.write_batch(pa.record_batch([x, pa.array(np.arange(1000) % 4)], schema=schema))
    assert (tmp_path / "t.arrow").stat().st_size > 190 * 2**20
    words = [sys.executable, "-c", SMALL_MEMORY, str(tmp_path / "t.arrow")]
    done = subprocess.run(words, cwd=STARTED, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 100
