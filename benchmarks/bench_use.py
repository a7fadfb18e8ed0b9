"""Time to use an encoding: rotate against a copy, and the module against one torch.add."""

from typing import Any

import numpy as np
import pytest
import torch
from peers import tutorial_at
from positional_encodings.torch_encodings import PositionalEncoding1D, Summer
from rotary_embedding_torch import RotaryEmbedding
from torch import Tensor
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from x_transformers.x_transformers import ScaledSinusoidalEmbedding

import pe_lib.numpy
import pe_lib.torch

ROWS, WIDTH = 4096, 512
HEADS = (4, 8, 1024, 64)
BATCH = (32, 512, 512)


def label(benchmark: Any, group: str, name: str) -> None:
    benchmark.group = group
    benchmark.extra_info.update(kind=group, maker=name)


@pytest.mark.parametrize(
    "name", ["copy", "torch copy", "pe_lib.numpy", "pe_lib.torch", "dense product"]
)
def test_rotate(benchmark: Any, name: str) -> None:
    """x·T(Δx) for a table's worth of rows and one offset."""
    label(benchmark, "rotate", name)
    x = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
    tensor, dense = torch.from_numpy(x), pe_lib.numpy.rotation_matrix(7, WIDTH, dtype=np.float32)
    benchmark(
        {
            "copy": x.copy,
            "torch copy": tensor.clone,
            "pe_lib.numpy": lambda: pe_lib.numpy.rotate(x, 7),
            "pe_lib.torch": lambda: pe_lib.torch.rotate(tensor, 7),
            "dense product": lambda: x @ dense,
        }[name]
    )


@pytest.mark.parametrize(
    "name", ["write", "pe_lib.numpy", "pe_lib.torch", "recipe: PyTorch tutorial", "x-transformers"]
)
def test_positions(benchmark: Any, name: str) -> None:
    """Encodings of integers in no order, as of packed or padded sequences; float32."""
    label(benchmark, "positions", name)
    positions = np.random.default_rng(0).integers(0, ROWS, 2 * ROWS)
    tensor, warm = torch.from_numpy(positions), np.ones((2 * ROWS, WIDTH), np.float32)
    peer = ScaledSinusoidalEmbedding(WIDTH)
    with torch.no_grad():
        benchmark(
            {
                "write": lambda: warm.fill(0.5),
                "pe_lib.numpy": lambda: pe_lib.numpy.sinusoidal_encoding(positions, WIDTH),
                "pe_lib.torch": lambda: pe_lib.torch.sinusoidal_encoding(tensor, WIDTH),
                "recipe: PyTorch tutorial": lambda: tutorial_at(tensor, WIDTH),
                "x-transformers": lambda: peer(warm, pos=tensor),
            }[name]
        )


def llama(q: Tensor) -> Any:
    config = LlamaConfig(hidden_size=512, num_attention_heads=8, head_dim=64)
    module, positions = LlamaRotaryEmbedding(config), torch.arange(HEADS[2])[None]
    return lambda: apply_rotary_pos_emb(q, q[:, :0], *module(q, positions))


@pytest.mark.parametrize(
    "name", ["copy", "pe_lib, interleaved", "pe_lib, split", "rotary-embedding-torch", "Llama"]
)
def test_rotary(benchmark: Any, name: str) -> None:
    """Queries of several heads, each row at its own position."""
    label(benchmark, "rotary", name)
    q = torch.randn(HEADS)
    interleaved, split = (
        pe_lib.torch.RotaryPositionalEncoding(64, layout=layout)
        for layout in ("interleaved", "split")
    )
    peer = RotaryEmbedding(64)
    with torch.no_grad():
        benchmark(
            {
                "copy": q.clone,
                "pe_lib, interleaved": lambda: interleaved(q),
                "pe_lib, split": lambda: split(q),
                "rotary-embedding-torch": lambda: peer.rotate_queries_or_keys(q),
                "Llama": llama(q),
            }[name]
        )


@pytest.mark.parametrize(
    "name",
    ["one torch.add", "pe_lib", "pe_lib, scaled", "x * scale + table", "positional-encodings"],
)
def test_add(benchmark: Any, name: str) -> None:
    """x + PE with everything cached, and with the paper's √d_model."""
    label(benchmark, "add", name)
    x = torch.randn(BATCH)
    plain = pe_lib.torch.SinusoidalPositionalEncoding(BATCH[2], BATCH[1])
    scaled = pe_lib.torch.SinusoidalPositionalEncoding(BATCH[2], BATCH[1], scale_input=True)
    peer = Summer(PositionalEncoding1D(BATCH[2]))
    table = plain.table
    with torch.no_grad():
        benchmark(
            {
                "one torch.add": lambda: torch.add(table, x),
                "pe_lib": lambda: plain(x),
                "pe_lib, scaled": lambda: scaled(x),
                "x * scale + table": lambda: x * BATCH[2] ** 0.5 + table,
                "positional-encodings": lambda: peer(x),
            }[name]
        )
