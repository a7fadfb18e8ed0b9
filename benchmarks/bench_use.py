"""Time to use an encoding: rotate against a copy, and the module against one torch.add."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from positional_encodings.torch_encodings import PositionalEncoding1D, Summer
from rotary_embedding_torch import RotaryEmbedding
from torch import Tensor
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from x_transformers.x_transformers import ScaledSinusoidalEmbedding

import pe_lib.numpy
import pe_lib.torch
from benchmarks.peers import tutorial_at
from pe_lib import _angles
from pe_lib._angles import block_of_rotations
from pe_lib._checks import Layout

ROWS, WIDTH = 4096, 512
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
            "pe_lib.numpy": lambda: pe_lib.numpy.rotate(x, by=7),
            "pe_lib.torch": lambda: pe_lib.torch.rotate(tensor, by=7),
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


def rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("seq_len", [1, 2048], ids=["decode", "prefill"])
@pytest.mark.parametrize(
    "name",
    [
        "rotate_half with ready tables",
        "pe_lib, interleaved, cached",
        "pe_lib, split, cached",
        "pe_lib, split, an offset for each row",
        "pe_lib, interleaved, ready tables",
        "pe_lib, split, ready tables",
        "Llama, tables made anew",
        "rotary-embedding-torch",
    ],
)
def test_rotary(benchmark: Any, name: str, seq_len: int, dtype: str) -> None:
    """Queries of 32 heads of 128, as a projection lays them out; usual practice has its cosines and
    sines ready. So have we, or the module caches them."""
    label(benchmark, f"rotary {'decode' if seq_len == 1 else 'prefill'} {dtype}", name)
    q = torch.randn(1, seq_len, 32, 128).to(getattr(torch, dtype)).transpose(1, 2)
    positions = torch.arange(5, 5 + seq_len)
    layers = {
        layout: pe_lib.torch.RotaryPositionalEncoding(128, layout=layout)
        for layout in ("interleaved", "split")
    }
    tables = {layout: layer.tables(positions) for layout, layer in layers.items()}
    starts = torch.tensor([5])
    cos, sin = (part.repeat(1, 2) for part in layers["split"].cos_sin(positions, dtype=q.dtype))
    llama, peer = LlamaRotaryEmbedding(LlamaConfig(head_dim=128)), RotaryEmbedding(128)
    with torch.no_grad():
        benchmark(
            {
                "rotate_half with ready tables": lambda: q * cos + rotate_half(q) * sin,
                "pe_lib, interleaved, cached": lambda: layers["interleaved"](q, offset=5),
                "pe_lib, split, cached": lambda: layers["split"](q, offset=5),
                "pe_lib, split, an offset for each row": lambda: layers["split"](q, offset=starts),
                "pe_lib, interleaved, ready tables": lambda: layers["interleaved"](
                    q, tables=tables["interleaved"]
                ),
                "pe_lib, split, ready tables": lambda: layers["split"](q, tables=tables["split"]),
                "Llama, tables made anew": lambda: apply_rotary_pos_emb(
                    q, q[:, :0], *llama(q, positions[None])
                ),
                "rotary-embedding-torch": lambda: peer.rotate_queries_or_keys(q, offset=5),
            }[name]
        )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(4, 8, 2048, 64), (8, 8, 4096, 64)], ids=str)
@pytest.mark.parametrize(
    "name", ["rotate_half with ready tables", "pe_lib, split", "pe_lib, interleaved"]
)
def test_training(benchmark: Any, name: str, shape: tuple[int, ...], dtype: str) -> None:
    """Forward and backward through one rotation of queries, as a step of training has it."""
    label(benchmark, f"training {shape} {dtype}", name)
    x = torch.randn(shape).to(getattr(torch, dtype)).requires_grad_()
    direction = torch.randn(shape).to(x.dtype)
    layers = {
        layout: pe_lib.torch.RotaryPositionalEncoding(shape[-1], layout=layout)
        for layout in ("interleaved", "split")
    }
    places = torch.arange(shape[-2])
    cos, sin = (part.repeat(1, 2) for part in layers["split"].cos_sin(places, dtype=x.dtype))
    ways: dict[str, Callable[[], torch.Tensor]] = {
        "rotate_half with ready tables": lambda: x * cos + rotate_half(x) * sin,
        "pe_lib, split": lambda: layers["split"](x),
        "pe_lib, interleaved": lambda: layers["interleaved"](x),
    }
    turned = ways[name]
    benchmark(lambda: torch.autograd.grad(turned(), x, direction))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize(
    "name",
    [
        "transformers, ready tables",
        "pe_lib, split, ready tables",
        "pe_lib, interleaved, ready tables",
    ],
)
def test_step(benchmark: Any, name: str, batch: int, dtype: str) -> None:
    """One token of each text: queries of 32 heads and keys of 8, as projections lay them out. The
    tables are those of position_ids. transformers has them in the dtype of the model."""
    label(benchmark, f"step of {batch} {dtype}", name)
    q, k = (
        torch.randn(batch, 1, heads, 128).to(getattr(torch, dtype)).transpose(1, 2)
        for heads in (32, 8)
    )
    position_ids = torch.full((batch, 1), 5)
    cos, sin = LlamaRotaryEmbedding(LlamaConfig(head_dim=128))(q, position_ids)
    layout: Layout = "split" if "split" in name else "interleaved"
    rotary = pe_lib.torch.RotaryPositionalEncoding(128, layout=layout)
    tables = rotary.tables(position_ids)
    with torch.no_grad():
        if name.startswith("transformers"):
            benchmark(lambda: apply_rotary_pos_emb(q, k, cos, sin))
        else:
            benchmark(lambda: (rotary(q, tables=tables), rotary(k, tables=tables)))


@pytest.mark.parametrize("name", ["pe_lib", "positional-encodings"])
def test_construction(benchmark: Any, name: str) -> None:
    """A module of 512 × 512 and its first call, constants included."""
    label(benchmark, "construction", name)
    x = torch.randn(1, 512, 512)

    def forget() -> None:
        for cache in (_angles.exact_frequencies, _angles.grid, block_of_rotations):
            cache.cache_clear()

    def ours() -> Tensor:
        return pe_lib.torch.SinusoidalPositionalEncoding(512)(x)

    peer = {"pe_lib": ours, "positional-encodings": lambda: PositionalEncoding1D(512)(x)}[name]
    benchmark.pedantic(peer, setup=forget, rounds=20)


@pytest.mark.parametrize("name", ["torch", "pe_lib.torch"])
def test_import(benchmark: Any, name: str) -> None:
    """In a process of its own; what we add is the difference."""
    label(benchmark, "import", name)
    benchmark.pedantic(
        lambda: subprocess.run([sys.executable, "-c", f"import {name}"], check=True), rounds=5
    )


@pytest.mark.parametrize(
    "name",
    ["one torch.add", "pe_lib", "pe_lib, scaled", "x * scale + table", "positional-encodings"],
)
def test_add(benchmark: Any, name: str) -> None:
    """x + PE with everything cached, and with the paper's √d_model."""
    label(benchmark, "add", name)
    x = torch.randn(BATCH)
    plain = pe_lib.torch.SinusoidalPositionalEncoding(BATCH[2])
    scaled = pe_lib.torch.SinusoidalPositionalEncoding(BATCH[2], scale_input=True)
    peer = Summer(PositionalEncoding1D(BATCH[2]))
    table = pe_lib.torch.sinusoidal_table(BATCH[1], BATCH[2])
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
