"""Inputs that are dicts, tuples and sequences: learned, saved, loaded and resumed to the bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import pdcl
from pdcl.errors import UsageError
from pdcl.learning.events import Event, Partitioned, Stepped
from pdcl.methods.catalog import method
from pdcl.storage.serialize import same
from pdcl.trees import Tree

READY = (
    "er", "er-ring", "er-ace", "der", "derpp", "agem", "gem", "si", "finetune", "joint",
    "even", "pdcl0", "pdcl", "pdcl-s",
)  # fmt: skip
REFUSING = ("ewc", "gss", "icarl")
WORDS, LENGTH = 4, 7


class Bag(nn.Module):
    """The mean of word vectors, then a linear layer. Knows its inputs in every form, and gives `form` of output."""

    def __init__(self, outputs: int = 2, gives: str = "tensor", per_token: bool = False) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.vectors = nn.Embedding(40, 12, padding_idx=0)
            self.head = nn.Linear(12, outputs)
        self.gives, self.per_token = gives, per_token

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Any:
        there = (input_ids > 0 if attention_mask is None else attention_mask)[..., None].float()
        vectors = self.vectors(input_ids) * there
        out = self.head(vectors if self.per_token else vectors.sum(1) / there.sum(1).clamp(min=1))
        shapes: dict[str, Callable[[], Any]] = {
            "tensor": lambda: out,
            "tuple": lambda: (out, vectors),
            "dict": lambda: {"logits": out},
            "object": lambda: SimpleNamespace(logits=out),
        }
        return shapes[self.gives]()


def sentences(task: int, count: int = 24, seed: int = 0) -> tuple[list[Tensor], list[str]]:
    """Two classes, each with two words of its own, in sentences of 1 to 7 words."""
    random, found, labels = np.random.default_rng([seed, task]), [], []
    for number in range(count):
        first = 1 + WORDS * task + 2 * (number % 2)
        found.append(torch.as_tensor(random.choice([first, first + 1], random.integers(1, LENGTH + 1))))
        labels.append(f"{'ab'[number % 2]}{task}")
    return found, labels


def in_form(form: str, words: list[Tensor]) -> Tree:
    masks = [torch.ones(len(each)) for each in words]
    fixed = torch.stack([nn.functional.pad(each, (0, LENGTH - len(each))) for each in words])
    forms: dict[str, Callable[[], Tree]] = {
        "ragged": lambda: words,
        "ragged dict": lambda: {"input_ids": words, "attention_mask": masks},
        "dict": lambda: {"input_ids": fixed, "attention_mask": (fixed > 0).float()},
        "tuple": lambda: (fixed, (fixed > 0).float()),
    }
    return forms[form]()


FORMS = ("ragged", "ragged dict", "dict", "tuple")


def made(name: str, given: dict[str, Any] | None = None, **options: Any) -> Any:
    entry = method(name)
    own = {"memory": 12} if entry.uses_memory else {}
    return entry.load()(Bag(**options), lr=0.5, **{**entry.defaults, **own, **(given or {})})


def taught(learner: Any, form: str, tasks: range) -> Any:
    for task in tasks:
        words, labels = sentences(task)
        learner.learn(in_form(form, words), labels, epochs=3, batch=8)
    return learner


@pytest.mark.parametrize("name", ["er", "even", "pdcl0", "pdcl", "pdcl-s"])
@pytest.mark.parametrize("form", FORMS)
def test_replay_learns_every_form_and_keeps_the_past(form: str, name: str) -> None:
    learner = taught(made(name), form, range(3))
    scores = [learner.evaluate(in_form(form, sentences(t, seed=1)[0]), sentences(t)[1]) for t in range(3)]
    assert min(scores) > 0.7
    assert learner.predict(in_form(form, sentences(2)[0])).tolist()[:2] == ["a2", "b2"]


@pytest.mark.parametrize("name", ["er", "pdcl", "pdcl-s"])
def test_all_forms_of_the_same_words_train_the_same_network(name: str) -> None:
    """Padding, names and order of arguments are form, not content."""
    states = [taught(made(name), form, range(2)).model.state_dict() for form in FORMS]
    for state in states[1:]:
        for name, value in state.items():
            assert torch.allclose(value, states[0][name], atol=1e-6), name


@pytest.mark.parametrize("gives", ["tuple", "dict", "object"])
def test_logits_are_found_in_what_a_network_gives(gives: str) -> None:
    plain, other = (taught(made("er", gives=each), "dict", range(2)) for each in ("tensor", gives))
    assert same(plain.model.state_dict(), other.model.state_dict())


def test_a_network_that_gives_no_logits_is_refused_before_training() -> None:
    learner = made("er")
    learner.network.forward = lambda input_ids, attention_mask: {"loss": 1}
    with pytest.raises(UsageError, match="gave dict"):
        taught(learner, "dict", range(1))


@pytest.mark.parametrize("form", ["ragged dict", "tuple"])
@pytest.mark.parametrize("name", [name for name in READY if name != "joint"])
def test_saved_and_loaded_it_learns_on_to_the_bit(name: str, form: str, tmp_path: Path) -> None:
    whole = taught(made(name), form, range(3))
    saved = taught(made(name), form, range(2)).save(tmp_path / "model")
    loaded = pdcl.load(saved, network=Bag())
    assert loaded.spec is not None
    assert loaded.spec.leaves == whole.spec.leaves
    assert same(taught(loaded, form, range(2, 3)).state_dict(), whole.state_dict())
    assert "input" in (tmp_path / "model" / "MODEL.md").read_text()


LIMITS = {"tolerance": "*:+5pt, new:20%", "memory": 40, "guard": 2, "witness": 2}


def test_guards_and_witnesses_of_sequences_steer_and_judge(tmp_path: Path) -> None:
    whole = taught(made("pdcl", LIMITS), "ragged dict", range(3))
    assert [len(whole.held["x"]["input_ids"]), whole.held["role"].bincount().tolist()] == [40, [28, 6, 6]]
    assert [promise.task for promise in whole.promises.rows] == ["0", "1", "2"]
    saved = taught(made("pdcl", LIMITS), "ragged dict", range(2)).save(tmp_path / "model")
    loaded = taught(pdcl.load(saved, network=Bag()), "ragged dict", range(2, 3))
    assert same(loaded.state_dict(), whole.state_dict())
    assert loaded.promises.as_json() == whole.promises.as_json()


@pytest.mark.parametrize("form", FORMS)
def test_a_memory_far_larger_than_the_data_takes_what_the_data_takes(form: str) -> None:
    learner = taught(made("pdcl", {"memory": 10**9}), form, range(2))
    assert len(learner.held) == 48
    assert learner.held.nbytes < 4 * learner.held.stored


@pytest.mark.parametrize("name", ["er", "even", "pdcl", "pdcl-s"])
def test_bytes_bound_what_sequences_take_and_every_task_keeps_some(name: str) -> None:
    learner = taught(made(name, {"memory": "2KB"}), "ragged", range(1))
    for task in (1, 2):
        words, labels = sentences(task)
        heard: list[Event] = []
        learner.learn([each.repeat(3) for each in words], labels, epochs=1, listener=heard.append)
        told = [event.counts for event in heard if isinstance(event, Partitioned)]
        assert told in ([], [learner.held.counts(task + 1)])
        assert learner.held.stored <= learner.held.nbytes <= 2000
    counts = learner.held.counts(3)
    assert min(counts) > 0
    assert sum(counts) == len(learner.held) <= learner.held.capacity


def stream(form: str) -> pdcl.Stream:
    tasks = []
    for task in range(3):
        train, test = sentences(task), sentences(task, 8, seed=1)
        tasks.append((in_form(form, train[0]), train[1], in_form(form, test[0]), test[1]))
    return pdcl.from_tasks(tasks, name="words")


class _Enough(Exception):
    pass


def _stop(event: Event) -> None:
    if isinstance(event, Stepped) and (event.task, event.step) == (1, 1):
        raise _Enough


@pytest.mark.parametrize("form", ["ragged", "dict"])
@pytest.mark.parametrize("name", READY)
def test_an_interrupted_run_resumes_to_the_bit(name: str, form: str, tmp_path: Path) -> None:
    words, small = stream(form), {"epochs": 2, "batch": 8, "checkpoint_every": 1}
    whole = pdcl.run(words, made(name, outputs=6), **small)
    with pytest.raises(_Enough):
        pdcl.run(words, made(name, outputs=6), out=tmp_path, listeners=[_stop], **small)
    found = pdcl.run(words, made(name, outputs=6), resume=next(tmp_path.iterdir()), **small)
    assert found.accuracy == whole.accuracy
    assert same(found.learner.state_dict(), whole.learner.state_dict())


@pytest.mark.parametrize("name", REFUSING)
def test_methods_for_tensors_alone_say_so_in_prepare(name: str) -> None:
    with pytest.raises(UsageError, match=f"'{name}' takes inputs that are one tensor"):
        made(name, outputs=6).prepare(stream("dict").spec)


def test_a_network_by_name_and_a_transform_are_refused_for_trees() -> None:
    with pytest.raises(UsageError, match="give a module"):
        method("er").load()("mlp:8").prepare(stream("dict").spec)
    words, labels = sentences(0)
    with pytest.raises(UsageError, match="transform has no effect"):
        pdcl.split(in_form("dict", words), labels, transform=pdcl.streams.transform.Transform(scale=2.0))


def test_what_doesnt_fit_is_refused_in_one_line() -> None:
    learner, (words, labels) = taught(made("pdcl"), "dict", range(1)), sentences(0)
    whole = in_form("dict", words)
    wrong = {
        r"x holds attention_mask \(7\) float32; the learner reads": {"attention_mask": whole["attention_mask"]},
        r"different numbers of rows: \{'x.input_ids': 24, 'x.attention_mask': 5\}": {
            **whole, "attention_mask": whole["attention_mask"][:5]
        },
        "x, attention_mask: row 3 holds NaN": {
            **whole, "attention_mask": whole["attention_mask"].index_fill(0, torch.tensor(3), torch.nan)
        },
    }  # fmt: skip
    for message, x in wrong.items():
        with pytest.raises(UsageError, match=message):
            learner.predict(x)
    with pytest.raises(UsageError, match=r"the network can't take inputs words \(7\) int64: .*unexpected keyword"):
        made("pdcl").learn({"words": whole["input_ids"]}, labels)


def test_later_sentences_that_happen_to_be_of_one_length_are_still_sequences() -> None:
    learner = taught(made("er"), "ragged", range(1))
    learner.learn([torch.tensor([5, 6])] * 4 + [torch.tensor([7, 8])] * 4, ["a1"] * 4 + ["b1"] * 4, epochs=1)
    assert learner.spec.leaves[0].ragged
    assert learner.tasks_learned == 2


def test_first_sentences_that_happen_to_be_of_one_length_can_be_marked() -> None:
    words = [torch.tensor([1, 2])] * 4 + [torch.tensor([3, 4])] * 4
    labels, later = ["a0"] * 4 + ["b0"] * 4, sentences(1)
    unmarked = made("er")
    unmarked.learn(words, labels, epochs=1)
    with pytest.raises(UsageError, match=r"pdcl\.Ragged\.of"):
        unmarked.learn(later[0], later[1], epochs=1)
    marked = made("er")
    marked.learn(pdcl.Ragged.of(words), labels, epochs=1)
    marked.learn(later[0], later[1], epochs=1)
    assert marked.tasks_learned == 2


class Sentences(Dataset[Any]):
    """Items as a user's Dataset has them: a dict of unpadded words, and the label."""

    def __init__(self, task: int, seed: int = 0) -> None:
        self.words, self.labels = sentences(task, seed=seed)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, row: int) -> tuple[Any, str]:
        return {"input_ids": self.words[row], "attention_mask": torch.ones(len(self.words[row]))}, self.labels[row]


def test_a_dataset_of_dicts_learns_what_its_arrays_would() -> None:
    arrays, lazy = taught(made("er"), "ragged dict", range(2)), made("er")
    for task in range(2):
        lazy.learn(Sentences(task), epochs=3, batch=8)
    assert same(arrays.model.state_dict(), lazy.model.state_dict())
    assert same(arrays.store.state_dict(), lazy.store.state_dict())
    assert lazy.predict(Sentences(1)).tolist() == arrays.predict(in_form("ragged dict", sentences(1)[0])).tolist()


def test_a_collate_function_makes_the_batches() -> None:
    def padded(items: list[Any]) -> Tree:
        return in_form("dict", [item["input_ids"] for item in items])

    arrays, lazy = taught(made("er"), "dict", range(2)), made("er")
    for task in range(2):
        lazy.learn(Sentences(task), epochs=3, batch=8, collate=padded)
    assert same(arrays.model.state_dict(), lazy.model.state_dict())
    assert lazy.evaluate(Sentences(0), collate=padded) == arrays.evaluate(
        in_form("dict", sentences(0)[0]), sentences(0)[1]
    )
    with pytest.raises(UsageError, match="collate has no effect"):
        lazy.learn(in_form("dict", sentences(2)[0]), sentences(2)[1], collate=padded)


def test_a_collate_that_pads_to_each_batch_is_refused_with_the_way_out() -> None:
    def padded(items: list[Any]) -> Tree:
        return nn.utils.rnn.pad_sequence([item["input_ids"] for item in items], batch_first=True)

    learner, heard = made("er"), []
    with pytest.raises(UsageError, match=r"pads to one length or returns pdcl\.Ragged"):
        learner.learn(Sentences(0), epochs=3, batch=2, collate=padded, listener=heard.append)
    assert not heard


def test_two_learners_know_the_same_sentence_again_by_its_words() -> None:
    """A mask of other width, or the order of keys, is the same sample only where its bytes are."""
    learner = taught(made("er"), "ragged dict", range(1))
    before = len(learner.lineage.samples)
    words, labels = sentences(0)
    swapped = dict(reversed(in_form("ragged dict", words).items()))
    learner.learn(swapped, labels, epochs=1)
    assert len(learner.lineage.samples) == before
