"""Tiny models and texts for the tests of Hugging Face's trainers: a token's successor is `step` further."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, TrainingArguments

TOKENS, LENGTH = 32, 8


def llama(dropout: float = 0.0) -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=TOKENS, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=2, max_position_embeddings=32, attention_dropout=dropout, pad_token_id=0,
        )
    )  # fmt: skip


def gpt2(dropout: float = 0.0) -> Any:
    torch.manual_seed(0)
    drops = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), dropout)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=TOKENS, n_embd=16, n_layer=1, n_head=2, n_positions=32, bos_token_id=0, eos_token_id=0, **drops
        )
    )  # fmt: skip


def sequences(count: int, step: int, seed: int = 0, masked: bool = False) -> list[dict[str, Any]]:
    """masked: the first tokens of a sequence have no label, of some more than of others."""
    made = torch.Generator().manual_seed(seed)
    ids = (torch.randint(0, TOKENS, (count, 1), generator=made) + step * torch.arange(LENGTH)) % TOKENS
    labels = ids.clone()
    if masked:
        labels[torch.arange(LENGTH) < torch.randint(0, LENGTH - 2, (count, 1), generator=made)] = -100
    return [{"input_ids": x, "labels": y} for x, y in zip(ids, labels, strict=True)]


def arguments(place: Any, **more: Any) -> TrainingArguments:
    usual = {
        "max_steps": 6, "per_device_train_batch_size": 4, "learning_rate": 1e-2, "use_cpu": True, "report_to": [],
        "save_strategy": "no", "logging_steps": 1, "disable_tqdm": True,
    }  # fmt: skip
    return TrainingArguments(output_dir=str(place), **{**usual, **more})


def weights(model: Any) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
