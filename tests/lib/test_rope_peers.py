"""Rotary embedding beside the transformers library: sense, pairs, frequencies, and loaded models.

Nothing is downloaded: configurations and random weights are enough.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from configurations import LLAMA_3_1
from safetensors import safe_open
from torch import Tensor, nn
from transformers import LlamaConfig, PreTrainedModel
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama import modeling_llama as llama

import pe_lib.numpy as pe
from pe_book import rope
from pe_lib.torch import (
    RotaryPositionalEncoding,
    SinusoidalPositionalEncoding,
    rotary_frequencies,
)

HEADS, HEAD_DIM, LENGTH = 4, 32, 40
FLOAT32_ANGLE = 6 * 2 * LENGTH * 2.0**-23  # peers form angles in float32; entries stay below 6


def config(**options: Any) -> LlamaConfig:
    return LlamaConfig(hidden_size=HEADS * HEAD_DIM, num_attention_heads=HEADS, **options)


@pytest.mark.parametrize(
    "scaling",
    [
        {"rope_type": "default"},
        {"rope_type": "yarn", "factor": 8.0},
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    ],
)
def test_a_module_turns_as_llama_at_every_position(scaling: dict[str, Any]) -> None:
    """Entry by entry: the peer's frequencies given to ours, and its attention factor."""
    parameters = scaling | {"rope_theta": 500_000.0, "original_max_position_embeddings": 512}
    peer = llama.LlamaRotaryEmbedding(config(rope_parameters=parameters))
    their_cos, their_sin = peer(torch.zeros(1), torch.arange(LENGTH)[None])
    rotary = RotaryPositionalEncoding(
        HEAD_DIM,
        frequencies=peer.inv_freq,
        attention_factor=peer.attention_scaling,
        layout="split",
    )
    assert (rotary.attention_factor > 1.2) == (scaling["rope_type"] == "yarn")
    tables = rotary.tables(torch.arange(LENGTH))
    x = torch.randn(2, HEADS, LENGTH, HEAD_DIM)
    theirs = llama.apply_rotary_pos_emb(x, x, their_cos, their_sin)[0]
    ids = torch.arange(LENGTH).expand(2, -1)
    for ours in (rotary(x), rotary(x, positions=ids), rotary(x, tables=tables)):
        assert (ours - theirs).abs().max() < FLOAT32_ANGLE
    as_ours = np.allclose(peer.inv_freq, pe.frequencies(HEAD_DIM, base=500_000), rtol=1e-6)
    assert as_ours == (scaling["rope_type"] == "default")


PAGE = (Path(__file__).resolve().parents[2] / "book" / "library.md").read_text(encoding="utf-8")


def test_the_differences_from_transformers_are_those_that_the_page_names() -> None:
    """For queries from a normal distribution, with Llama 3.1's frequencies. Each number on the page
    is right to a factor of two. Exact angles are those of float64, off by 10⁻¹¹ here."""
    (sentence,) = re.findall(r"^Compared with transformers, .*?\n\n", PAGE, re.M | re.S)
    near, far, own = map(float, re.findall(r"\d+e-\d+", sentence))
    assert "first 64 positions" in sentence
    assert "100,000" in sentence

    settings = config(
        head_dim=128, max_position_embeddings=131_072, rope_parameters=dict(LLAMA_3_1)
    )
    peer = llama.LlamaRotaryEmbedding(settings)
    scaled = rotary_frequencies(128, **LLAMA_3_1)
    rotary = RotaryPositionalEncoding(128, layout="split", **scaled._asdict())
    x = torch.randn(1, HEADS, 64, 128, generator=torch.Generator().manual_seed(0))
    for start, difference in ((0, near), (100_000, far)):
        positions = torch.arange(start, start + 64)
        angles = positions[:, None].double() * scaled.frequencies.repeat(2)
        exact, _ = llama.apply_rotary_pos_emb(
            x.double(), x.double(), angles.cos()[None], angles.sin()[None]
        )
        theirs, _ = llama.apply_rotary_pos_emb(x, x, *peer(x, positions[None]))
        ours = rotary(x, positions=positions)
        assert difference / 2 < (ours - theirs).abs().max() < 2 * difference
        assert own / 2 < (ours - exact).abs().max() < 2 * own


@pytest.mark.parametrize(
    ("kind", "ours"),
    [("linear", rope.interpolated), ("dynamic", rope.ntk_aware), ("yarn", rope.yarn)],
)
@pytest.mark.parametrize(
    ("d", "base", "length"), [(128, 1e4, 4096), (128, 5e5, 8192), (64, 1e4, 2048)]
)
@pytest.mark.parametrize("scale", [2.0, 32.0])
def test_the_book_s_scaled_frequencies_are_the_peers(
    kind: str, ours: Callable[..., np.ndarray], d: int, base: float, length: int, scale: float
) -> None:
    """With a factor of 1, "dynamic" takes its scale from the length of the text."""
    parameters = {
        **{"rope_type": kind, "rope_theta": base, "factor": 1.0 if kind == "dynamic" else scale},
        "original_max_position_embeddings": length,
    }
    settings = config(head_dim=d, max_position_embeddings=length, rope_parameters=parameters)
    theirs, factor = ROPE_INIT_FUNCTIONS[kind](
        settings, torch.device("cpu"), seq_len=int(scale * length)
    )
    np.testing.assert_allclose(ours(scale, d, base, length), theirs, rtol=1e-5)
    assert factor == pytest.approx(0.1 * np.log(scale) + 1 if kind == "yarn" else 1)


def test_the_book_s_yarn_refuses_a_length_that_leaves_no_ramp() -> None:
    """All pairs make more than 32 turns within 2000, and would be divided by the peer's formula."""
    with pytest.raises(ValueError, match=r"length must leave room for a ramp .*, got 2000"):
        rope.yarn(4.0, d=64, base=2.0, length=2000)


class Reader(PreTrainedModel):  # type: ignore[misc]
    config_class = LlamaConfig

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.embed = nn.Embedding(16, 8)
        self.encode = SinusoidalPositionalEncoding(8)
        self.rotary = RotaryPositionalEncoding(
            8, frequencies=(1.0, 0.1, 0.01, 0.001), layout="interleaved"
        )
        self.post_init()

    def forward(self, ids: Tensor) -> Tensor:
        return self.rotary(self.encode(self.embed(ids)))


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_comes_out_of_from_pretrained_right(tmp_path: Path, dtype: torch.dtype) -> None:
    """transformers makes models on meta and leaves non-persistent buffers uninitialised."""
    ids = torch.arange(16)[None]
    model = Reader(config()).to(dtype)
    expected = model(ids)
    model.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as saved:
        assert set(saved.keys()) == {"embed.weight"}
    loaded = Reader.from_pretrained(tmp_path, dtype=dtype)
    assert torch.equal(loaded(ids), expected)
