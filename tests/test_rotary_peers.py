"""Rotary embedding beside the transformers library: the same turn, pairs and frequencies.

Nothing is downloaded: configurations and random weights are enough.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn
from transformers import GPTNeoXConfig, LlamaConfig, PreTrainedModel
from transformers.models.gpt_neox import modeling_gpt_neox as gpt_neox
from transformers.models.gptj import modeling_gptj as gpt_j
from transformers.models.llama import modeling_llama as llama

import pe_lib.numpy as pe
from pe_lib.torch import RotaryPositionalEncoding, SinusoidalPositionalEncoding

HEADS, HEAD_DIM, LENGTH = 4, 32, 40
FLOAT32_ANGLE = 6 * 2 * LENGTH * 2.0**-23  # peers form angles in float32; entries stay below 6


def config(**options: Any) -> LlamaConfig:
    """A small Llama whose attention is written out, not fused."""
    settings: dict[str, Any] = {
        "hidden_size": HEADS * HEAD_DIM,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "attn_implementation": "eager",
    }
    return LlamaConfig(**settings | options)


def random_heads(seed: int = 0) -> Tensor:
    return torch.randn(2, HEADS, LENGTH, HEAD_DIM, generator=torch.Generator().manual_seed(seed))


def llama_turn(x: Tensor, positions: Tensor) -> Tensor:
    cos, sin = llama.LlamaRotaryEmbedding(config())(x, positions[None])
    turned: Tensor = llama.apply_rotary_pos_emb(x, x, cos, sin)[0]
    return turned


def gpt_neox_turn(x: Tensor, positions: Tensor) -> Tensor:
    cos, sin = llama.LlamaRotaryEmbedding(config())(x, positions[None])
    turned: Tensor = gpt_neox.apply_rotary_pos_emb(x, x, cos, sin)[0]
    return turned


def gpt_j_turn(x: Tensor, positions: Tensor) -> Tensor:
    table = gpt_j.create_sinusoidal_positions(LENGTH * 2, HEAD_DIM)[positions]
    sin, cos = table[None].chunk(2, dim=-1)
    turned: Tensor = gpt_j.apply_rotary_pos_emb(
        x.transpose(1, 2), sin, cos
    )  # (batch, seq, head, d)
    return turned.transpose(1, 2)


PEERS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Any]] = {
    "llama": (llama_turn, "split"),
    "gpt_neox": (gpt_neox_turn, "split"),
    "gpt_j": (gpt_j_turn, "interleaved"),
}
every_peer = pytest.mark.parametrize(("turn", "layout"), PEERS.values(), ids=PEERS)


@every_peer
def test_peers_turn_against_the_clock(turn: Callable[..., Tensor], layout: Any) -> None:
    x, positions = random_heads(), torch.arange(LENGTH)
    peers = turn(x, positions).numpy()
    ours = pe.rotate(x.numpy(), -positions.numpy(), layout=layout)
    assert np.abs(ours - peers).max() < FLOAT32_ANGLE
    with_the_clock = pe.rotate(x.numpy(), positions.numpy(), layout=layout)
    assert np.abs(with_the_clock - peers).max() > 1


@every_peer
def test_module_has_the_peers_sense_and_positions(turn: Callable[..., Tensor], layout: Any) -> None:
    x, module = random_heads(), RotaryPositionalEncoding(HEAD_DIM, layout=layout)
    assert (module(x) - turn(x, torch.arange(LENGTH))).abs().max() < FLOAT32_ANGLE
    later = turn(x, torch.arange(LENGTH) + 17)
    assert (module(x, offset=17) - later).abs().max() < FLOAT32_ANGLE


@every_peer
def test_the_layouts_are_not_the_same(turn: Callable[..., Tensor], layout: Any) -> None:
    other: Any = "split" if layout == "interleaved" else "interleaved"
    x = random_heads()
    wrong = RotaryPositionalEncoding(HEAD_DIM, layout=other)(x)
    assert (wrong - turn(x, torch.arange(LENGTH))).abs().max() > 1


def attention_of(layer: Any, x: Tensor, turn: Callable[[Tensor], Tensor], order: Tensor) -> Tensor:
    """The layer's output, its heads' queries and keys rearranged by ``order`` and then turned."""

    def heads(project: Any, *, rearranged: bool) -> Tensor:
        weights = project.weight.unflatten(0, (HEADS, HEAD_DIM))
        folded = weights[:, order] if rearranged else weights
        return torch.einsum("bsi,hdi->bhsd", x, folded)

    q, k = (turn(heads(project, rearranged=True)) for project in (layer.q_proj, layer.k_proj))
    weights = (q @ k.transpose(-1, -2) / HEAD_DIM**0.5).softmax(-1)
    mixed = weights @ heads(layer.v_proj, rearranged=False)
    output: Tensor = layer.o_proj(mixed.transpose(1, 2).flatten(-2))
    return output


@torch.no_grad()
def test_a_layer_of_llama_runs_interleaved_with_its_weights_folded() -> None:
    torch.manual_seed(0)
    layer = llama.LlamaAttention(config(), layer_idx=0).eval()
    for project in (layer.q_proj, layer.k_proj):
        project.weight.mul_(4)  # scores that matter
    x = torch.randn(2, LENGTH, HEADS * HEAD_DIM)
    tables = llama.LlamaRotaryEmbedding(config())(x, torch.arange(LENGTH)[None])
    expected = layer(x, position_embeddings=tables, attention_mask=None)[0]

    as_it_is = torch.arange(HEAD_DIM)
    to_interleaved = as_it_is.view(2, -1).T.flatten()  # i and i + d/2 become neighbours
    split = RotaryPositionalEncoding(HEAD_DIM, layout="split")
    interleaved = RotaryPositionalEncoding(HEAD_DIM, layout="interleaved")
    size = expected.abs().max()
    assert (attention_of(layer, x, split, as_it_is) - expected).abs().max() < 1e-4 * size
    assert (
        attention_of(layer, x, interleaved, to_interleaved) - expected
    ).abs().max() < 1e-4 * size
    assert (attention_of(layer, x, interleaved, as_it_is) - expected).abs().max() > 1e-2 * size


SCALINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 4.0},
    "yarn": {"factor": 8.0, "original_max_position_embeddings": 512},
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 512,
    },
}


@pytest.mark.parametrize("kind", SCALINGS)
def test_tables_of_scaled_frequencies_are_the_peers(kind: str) -> None:
    """Entry by entry: the peer's frequencies given to ours, linear, NTK-aware, YaRN and Llama 3."""
    parameters = {"rope_type": kind, "rope_theta": 500_000.0, **SCALINGS[kind]}
    settings = config(rope_parameters=parameters, max_position_embeddings=64)
    peer, positions = llama.LlamaRotaryEmbedding(settings), torch.arange(300)
    their_cos, their_sin = peer(torch.zeros(1), positions[None])  # "dynamic" looks at the length
    rotary = RotaryPositionalEncoding(HEAD_DIM, frequencies=peer.inv_freq, layout="split")
    cos, sin = (peer.attention_scaling * table for table in rotary.tables(positions))
    angle_error = 300 * 2.0**-24 * 2  # theirs: an angle in float32
    assert (cos - their_cos[0]).abs().max() < angle_error
    assert (sin[:, HEAD_DIM // 2 :] - their_sin[0, :, HEAD_DIM // 2 :]).abs().max() < angle_error
    assert torch.equal(sin[:, : HEAD_DIM // 2], -sin[:, HEAD_DIM // 2 :])
    x = random_heads()
    theirs = llama.apply_rotary_pos_emb(x, x, their_cos[:, :LENGTH], their_sin[:, :LENGTH])[0]
    ours = rotary(x, tables=(cos[:LENGTH], sin[:LENGTH]))
    assert (ours - theirs).abs().max() < FLOAT32_ANGLE
    if kind != "default":
        assert not np.allclose(peer.inv_freq, pe.frequencies(HEAD_DIM, base=500_000), rtol=0.01)


def test_partial_rotary_is_the_peers() -> None:
    """GPT-NeoX turns a quarter of the entries."""
    parameters = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25}
    settings = GPTNeoXConfig(hidden_size=HEADS * HEAD_DIM, num_attention_heads=HEADS)
    settings.rope_parameters = parameters
    x, positions = random_heads(), torch.arange(LENGTH)
    cos, sin = gpt_neox.GPTNeoXRotaryEmbedding(settings)(x, positions[None])
    assert cos.shape[-1] == HEAD_DIM // 4
    theirs = gpt_neox.apply_rotary_pos_emb(x, x, cos, sin)[0]
    for layout in ("split", "interleaved"):
        rotary = RotaryPositionalEncoding(HEAD_DIM, rotary_dim=HEAD_DIM // 4, layout=layout)
        assert torch.equal(rotary(x)[..., HEAD_DIM // 4 :], x[..., HEAD_DIM // 4 :])
        close = (rotary(x) - theirs).abs().max() < FLOAT32_ANGLE
        assert close == (layout == "split")


class Reader(PreTrainedModel):  # type: ignore[misc]
    """A model of the transformers library that holds our modules."""

    config_class = LlamaConfig

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.embed = nn.Embedding(16, 8)
        self.encode = SinusoidalPositionalEncoding(8, 32)
        self.rotary = RotaryPositionalEncoding(8, frequencies=(1.0, 0.1, 0.01, 0.001))
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
    assert (expected - RotaryPositionalEncoding(8)(model.embed(ids))).abs().max() > 0.5
