"""A capability without data: before training, the model writes samples of what it can do.

    capabilities={"prose": "self"}                                                      512 samples, limit 1.05x
    capabilities={"prose": (SelfMade(2000, prompts=starts, test=prose), "1.02x")}

A sample x is drawn from the model itself, so that the mean rise of its loss is how far the model has moved where it
writes: E[ℓ_now(x) − ℓ_before(x)] = KL(p_before ‖ p_now), per token. Checkpoints hold the samples with their hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError

MASKED = -100


class SelfMade:
    """samples: how many; length: tokens that the model adds to a prompt, fewer where it ends a text before.

    prompts: texts or token ids to start from, one after another; without them a text starts as the model's own do.
    test: text of people, to judge the limit on as well: nothing of it is replayed. at_once: samples of one batch.
    """

    def __init__(
        self, samples: int = 512, length: int = 64, prompts: Sequence[Any] | None = None, test: Any = None,
        seed: int = 0, at_once: int = 64,
    ) -> None:  # fmt: skip
        if min(samples, length, at_once) < 1 or (prompts is not None and not len(prompts)):
            raise UsageError("SelfMade needs at least one sample, token, prompt and sample at once")
        self.samples, self.length, self.prompts, self.test = samples, length, prompts, test
        self.seed, self.at_once = seed, at_once
        self.ids = self.labels = torch.zeros(0, 0, dtype=torch.long)

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, place: int) -> dict[str, list[int]]:
        if not self.written:
            raise UsageError("the model writes its samples when training begins: there is none before")
        return {"input_ids": self.ids[place].tolist(), "labels": self.labels[place].tolist()}

    @property
    def written(self) -> bool:
        return len(self.ids) > 0

    @property
    def digest(self) -> str:
        """A hash of all samples."""
        return hashlib.sha256(self.ids.numpy().tobytes() + self.labels.numpy().tobytes()).hexdigest()

    def write(self, model: Any, tokenizer: Any = None) -> None:
        """Draw all samples from the model as it is; the same seed draws the same ones. What else is random goes on as
        if nothing had been drawn."""
        check_writer(model)
        starts, was = self._starts(model, tokenizer), model.training
        pad = self._token(model, "pad_token_id", "eos_token_id") or 0
        width = max(map(len, starts)) + self.length
        self.ids = torch.full((self.samples, width), pad)
        self.labels = torch.full((self.samples, width), MASKED)
        devices = [model.device] if model.device.type == "cuda" else []
        model.eval()
        try:
            with torch.no_grad(), torch.random.fork_rng(devices):
                torch.manual_seed(self.seed)
                for places, prompt in self._batches(starts):
                    self._fill(model, places, prompt, pad)
        finally:
            model.train(was)

    def _starts(self, model: Any, tokenizer: Any) -> list[Sequence[int]]:
        """The tokens that each sample starts with."""
        if self.prompts is None:
            first = self._token(model, "bos_token_id", "eos_token_id")
            if first is None:
                raise UsageError("the model has no token that starts a text: give SelfMade(prompts=…)")
            return [[first]] * self.samples
        given = [self.prompts[i] for i in range(len(self.prompts))]
        if any(isinstance(each, str) for each in given):
            if tokenizer is None:
                raise UsageError("prompts are texts and the trainer has no processing_class: give token ids")
            given = [tokenizer(each)["input_ids"] if isinstance(each, str) else each for each in given]
        if any(not len(each) for each in given):
            raise UsageError("a prompt of SelfMade has no token: leave it out")
        return [given[i % len(given)] for i in range(self.samples)]

    def _batches(self, starts: list[Sequence[int]]) -> Iterator[tuple[Tensor, Tensor]]:
        """Places of samples whose prompts are equally long, and these prompts: no padding before a text."""
        sizes = torch.tensor([len(each) for each in starts])
        for size in sizes.unique():
            for places in (sizes == size).nonzero().flatten().split(self.at_once):
                yield places, torch.tensor([list(map(int, starts[i])) for i in places.tolist()])

    def _fill(self, model: Any, places: Tensor, prompt: Tensor, pad: int) -> None:
        from transformers import GenerationConfig

        end, start = self._token(model, "eos_token_id"), prompt.shape[1]
        how = GenerationConfig(do_sample=True, temperature=1.0, top_k=0, top_p=1.0, repetition_penalty=1.0,
                               max_new_tokens=self.length, eos_token_id=end, pad_token_id=pad)  # fmt: skip
        ids = prompt.to(model.device)
        found = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), generation_config=how).cpu()
        own = found[:, start:]
        # What follows the end of a text is no sample of the model; the end is.
        ended = (own == (-1 if end is None else end)).long().cumsum(1)
        there = (ended == 0) | ((ended == 1) & (ended.diff(dim=1, prepend=torch.zeros(len(own), 1).long()) == 1))
        self.ids[places, : found.shape[1]] = found
        self.labels[places, start : found.shape[1]] = torch.where(there, own, MASKED)

    @staticmethod
    def _token(model: Any, *names: str) -> int | None:
        """The first of these tokens that the model has."""
        for name in names:
            held = getattr(model.config, name, None)
            if held is not None:
                return int(held[0] if isinstance(held, list) else held)
        return None

    def state_dict(self) -> dict[str, Any]:
        return {"ids": self.ids, "labels": self.labels, "digest": self.digest}

    def load_state_dict(self, state: dict[str, Any], place: str) -> None:
        self.ids, self.labels = state["ids"], state["labels"]
        if self.digest != state["digest"]:
            raise UsageError(f"self-made samples in {place} don't match their hash: take another checkpoint")


def check_writer(model: Any) -> None:
    """UsageError for a model that can't write."""
    can = getattr(model, "can_generate", None)
    if can is None or not can() or getattr(model.config, "is_encoder_decoder", False):
        raise UsageError(f"{type(model).__name__} can't write samples of its own: give a dataset in place of 'self'")
