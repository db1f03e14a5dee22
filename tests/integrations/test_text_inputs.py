"""What text users hold: Hugging Face's tokenizers, Datasets and LoRA, and pandas' tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
datasets = pytest.importorskip("datasets")
pandas = pytest.importorskip("pandas")

import pdcl  # noqa: E402
from pdcl.networks.heads import widen  # noqa: E402
from pdcl.streams.checks import BadData  # noqa: E402
from pdcl.streams.texts import tokenized  # noqa: E402

WORDS = ("card", "cash", "loan", "fee")
TEXTS = [f"my {word} {'really ' * (k % 3)}please" for k in range(20) for word in WORDS]
LABELS = list(WORDS) * 20


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    known = {word: k for k, word in enumerate(["[PAD]", "[UNK]", "my", "really", "please", *WORDS])}
    made = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", model_max_length=16
    )


def classifier(outputs: int = 2) -> Any:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=12, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        num_labels=outputs, max_position_embeddings=32,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def adapted(outputs: int = 2) -> Any:
    """A small transformer, frozen but for LoRA and the classifier."""
    settings = peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
    return peft.get_peft_model(classifier(outputs), settings)


def test_texts_with_a_real_tokenizer_and_a_real_transformer() -> None:
    stream = pdcl.split(TEXTS, LABELS, tokenizer=tokenizer())
    assert {"input_ids", "attention_mask"} <= {leaf.name for leaf in stream.spec.leaves}
    result = pdcl.run(stream, "er", network=adapted(4), memory=40, epochs=1)
    assert 0 <= result.mean_accuracy <= 1


def test_lora_learns_grows_and_is_saved_without_what_is_frozen(tmp_path: Path) -> None:
    import safetensors.torch

    network = adapted()
    frozen = {name: p.clone() for name, p in network.named_parameters() if not p.requires_grad}
    learner = pdcl.learner("pdcl", network, memory=20, lr=0.01, scheduler="linear:0.1", clip_norm=1.0)
    rows = np.asarray(LABELS)
    for words in (WORDS[:2], WORDS[2:]):
        chosen = np.isin(rows, words).nonzero()[0]
        learner.learn(tokenized([TEXTS[k] for k in chosen], tokenizer()), rows[chosen], epochs=1)
    now = dict(network.named_parameters())
    assert all(torch.equal(value, now[name]) for name, value in frozen.items())
    learning = {id(p) for p in network.parameters() if p.requires_grad}
    assert {id(p) for group in learner.optimiser.param_groups for p in group["params"]} == learning
    learner.save(tmp_path / "model", frozen=False)
    held = safetensors.torch.load_file(tmp_path / "model" / "network.safetensors")
    assert not set(held) & set(frozen)
    found = pdcl.load(tmp_path / "model", network=adapted())
    inputs = tokenized(TEXTS[:8], tokenizer())
    np.testing.assert_allclose(found.predict_proba(inputs), learner.predict_proba(inputs), rtol=1e-6)


def test_a_grown_classifier_is_one_that_transformers_can_load(tmp_path: Path) -> None:
    """Its width stands in three places: the layer, the model's num_labels and the config with the labels' names."""
    network = classifier()
    network.config.id2label, network.config.label2id = {0: "card", 1: "cash"}, {"card": 0, "cash": 1}
    learner = pdcl.learner("pdcl", network, memory=20, lr=0.01)
    rows = np.asarray(LABELS)
    for words in (WORDS[:2], WORDS[2:]):
        chosen = np.isin(rows, words).nonzero()[0]
        learner.learn(tokenized([TEXTS[k] for k in chosen], tokenizer()), rows[chosen], epochs=1)
    assert network.config.num_labels == network.num_labels == network.classifier.out_features == 4
    assert [network.config.id2label[k] for k in range(2)] == ["card", "cash"]
    inputs = tokenizer()(TEXTS[:8], padding=True, return_tensors="pt")
    assert network(**inputs, labels=torch.arange(8) % 4).loss.isfinite()
    network.eval().save_pretrained(tmp_path / "saved")
    found = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "saved").eval()
    torch.testing.assert_close(found(**inputs).logits, network(**inputs).logits)


def test_an_encoder_under_a_head_of_ones_own_keeps_its_config() -> None:
    """Every config of transformers has num_labels = 2: where a head of two outputs grows, it is not the encoder's."""

    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = classifier().bert, torch.nn.Linear(16, 2)

        def forward(self, **inputs: Any) -> Any:
            return self.head(self.encoder(**inputs).pooler_output)

    network = Own()
    assert network.encoder.config.num_labels == 2
    widen(network, 4, 2)
    assert (network.head.out_features, network.encoder.config.num_labels) == (4, 2)


def test_texts_in_a_hugging_face_dataset_are_refused_with_the_way_out() -> None:
    held = datasets.Dataset.from_dict({"text": TEXTS, "label": LABELS})
    with pytest.raises(BadData, match=r'list\(d\["text"\]\), with tokenizer='):
        pdcl.split(held)
    stream = pdcl.split(list(held["text"]), list(held["label"]), tokenizer=tokenizer())
    assert len(stream.tasks) == 2


def test_a_table_with_categories_and_gaps_is_refused_with_the_way_out() -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    table = pandas.DataFrame({"age": [20.0, None, 40.0, 50.0] * 10, "plan": pandas.Categorical(["gold", "free"] * 20)})
    with pytest.raises(BadData, match=r"columns plan of x aren't numbers.*ColumnTransformer"):
        pdcl.split(table, np.arange(40) % 4)
    with pytest.raises(BadData, match=r"columns age of x have missing values.*ColumnTransformer"):
        pdcl.split(table[["age"]], np.arange(40) % 4)
    numbers = make_column_transformer((SimpleImputer(), ["age"]), (OneHotEncoder(sparse_output=False), ["plan"]))
    stream = pdcl.split(numbers.fit_transform(table), np.arange(40) % 4)
    assert stream.spec.shape == (3,)
