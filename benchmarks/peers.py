"""Every way to build the table, behind one signature: (start, seq_len, d_model) → float32 array.

The libraries are called as their documentation shows. Where a class has no start, or keeps its
table, a new one is made, since a table that is already there says nothing of the time to build it.
The recipes are the common ones of tutorials, written anew.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from diffusers.models.embeddings import (
    SinusoidalPositionalEmbedding,
    get_1d_sincos_pos_embed_from_grid,
)
from positional_encodings.torch_encodings import PositionalEncoding1D
from torch import Tensor
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from x_transformers.x_transformers import ScaledSinusoidalEmbedding

import pe_lib.numpy
import pe_lib.torch

Table = Callable[[int, int, int], Any]


def tutorial(start: int, seq_len: int, d_model: int) -> Tensor:
    """The PyTorch tutorial and the Annotated Transformer: exp of a logarithm, float32."""
    return tutorial_at(torch.arange(start, start + seq_len), d_model)


def tutorial_at(positions: Tensor, d_model: int) -> Tensor:
    position = positions.unsqueeze(1)
    rate = torch.exp(torch.arange(0, d_model, 2) * (-np.log(10_000.0) / d_model))
    table = torch.zeros(len(positions), d_model)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


def d2l(start: int, seq_len: int, d_model: int) -> Tensor:
    """Dive into Deep Learning: a power and a quotient, float32."""
    position = torch.arange(start, start + seq_len, dtype=torch.float32).reshape(-1, 1)
    divisor = torch.pow(10_000, torch.arange(0, d_model, 2, dtype=torch.float32) / d_model)
    table = torch.zeros(seq_len, d_model)
    table[:, 0::2] = torch.sin(position / divisor)
    table[:, 1::2] = torch.cos(position / divisor)
    return table


def fairseq(start: int, seq_len: int, d_model: int) -> Tensor:
    """tensor2tensor's spacing and halves, as in fairseq, float32."""
    half = d_model // 2
    rate = torch.exp(torch.arange(half, dtype=torch.float32) * -(np.log(10_000.0) / (half - 1)))
    angle = torch.arange(start, start + seq_len, dtype=torch.float32)[:, None] * rate[None]
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)


def numpy_float64(start: int, seq_len: int, d_model: int) -> np.ndarray:
    """The definition in float64, cast at the end."""
    angle = np.arange(start, start + seq_len)[:, None] * 10_000.0 ** (
        -np.arange(0, d_model, 2) / d_model
    )
    table = np.empty((seq_len, d_model), np.float32)
    table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    return table


def numpy_float32(start: int, seq_len: int, d_model: int) -> np.ndarray:
    """The definition with angles in float32."""
    rate = (10_000.0 ** (-np.arange(0, d_model, 2) / d_model)).astype(np.float32)
    angle = np.arange(start, start + seq_len, dtype=np.float32)[:, None] * rate
    table = np.empty((seq_len, d_model), np.float32)
    table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    return table


def positional_encodings(start: int, seq_len: int, d_model: int) -> Any:
    return PositionalEncoding1D(d_model)(torch.empty(1, seq_len, d_model))[0]


def x_transformers(start: int, seq_len: int, d_model: int) -> Any:
    module = ScaledSinusoidalEmbedding(d_model)
    return module(torch.empty(1, seq_len, 1), offset=start).detach() * d_model**0.5


def m2m100(start: int, seq_len: int, d_model: int) -> Any:
    return M2M100SinusoidalPositionalEmbedding.get_embedding(seq_len, d_model)


def marian(start: int, seq_len: int, d_model: int) -> Any:
    return MarianSinusoidalPositionalEmbedding(seq_len, d_model).create_weight()


def diffusers_float64(start: int, seq_len: int, d_model: int) -> Any:
    positions = torch.arange(start, start + seq_len)
    return get_1d_sincos_pos_embed_from_grid(d_model, positions, output_type="pt").float()


def diffusers_module(start: int, seq_len: int, d_model: int) -> Any:
    return SinusoidalPositionalEmbedding(d_model, seq_len).pe[0]


OURS: dict[str, Table] = {
    "pe_lib.numpy": lambda s, n, d: pe_lib.numpy.sinusoidal_table(n, d, start=s),
    "pe_lib.torch": lambda s, n, d: pe_lib.torch.sinusoidal_table(n, d, start=s),
}
RECIPES: dict[str, Table] = {
    "recipe: PyTorch tutorial": tutorial,
    "recipe: d2l": d2l,
    "recipe: fairseq": fairseq,
    "recipe: NumPy float32": numpy_float32,
    "recipe: NumPy float64": numpy_float64,
}
LIBRARIES: dict[str, Table] = {
    "positional-encodings": positional_encodings,
    "x-transformers": x_transformers,
    "transformers M2M100": m2m100,
    "transformers Marian": marian,
    "diffusers float64": diffusers_float64,
    "diffusers module": diffusers_module,
}
TABLES = OURS | RECIPES | LIBRARIES

# These compute every table from position 0.
FROM_ZERO = {
    "positional-encodings",
    "transformers M2M100",
    "transformers Marian",
    "diffusers module",
}
# All sines before all cosines.
SPLIT = {
    "recipe: fairseq",
    "x-transformers",
    "transformers M2M100",
    "transformers Marian",
    "diffusers float64",
}
# ω divided by d/2 − 1 steps.
TENSOR2TENSOR = {"recipe: fairseq", "transformers M2M100"}
# One Python call an entry: minutes at the largest size.
SLOW = {"transformers Marian"}
