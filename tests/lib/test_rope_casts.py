"""Which calls cast the frequencies of a model of transformers, and which do not."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaModel


def small_llama() -> LlamaModel:
    """A Llama of one layer with random weights."""
    return LlamaModel(
        LlamaConfig(
            hidden_size=64,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            vocab_size=16,
        )
    )


@pytest.mark.parametrize(
    ("cast", "dtype"),
    [
        (lambda model: model.to(torch.bfloat16), torch.bfloat16),
        (lambda model: model.bfloat16(), torch.bfloat16),
        (lambda model: model.half(), torch.float16),
    ],
    ids=["to", "bfloat16", "half"],
)
def test_a_cast_of_the_model_rounds_its_frequencies(
    cast: Callable[[nn.Module], nn.Module], dtype: torch.dtype
) -> None:
    model = small_llama()
    trained = model.rotary_emb.inv_freq.clone()
    cast(model)
    assert model.rotary_emb.inv_freq.dtype == dtype
    assert not torch.equal(model.float().rotary_emb.inv_freq, trained)


def test_loading_in_bfloat16_keeps_the_frequencies(tmp_path: Path) -> None:
    model = small_llama()
    model.save_pretrained(tmp_path)
    loaded = LlamaModel.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert next(loaded.parameters()).dtype == torch.bfloat16
    assert torch.equal(loaded.rotary_emb.inv_freq, model.rotary_emb.inv_freq)
