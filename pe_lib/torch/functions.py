"""The functions of `pe_lib.numpy` for tensors."""

from typing import SupportsFloat, SupportsIndex, Unpack, cast

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from pe_lib import _checks as check
from pe_lib import rope
from pe_lib._checks import Layout, Spacing
from pe_lib.numpy import AttentionTerms
from pe_lib.rope import RopeParameters, RotaryFrequencies
from pe_lib.torch._angles import constants_on, contiguous_table, encode
from pe_lib.torch._arguments import (
    Device,
    GivenFrequencies,
    as_positions,
    as_positions_of,
    as_shift,
    check_device_has,
    check_floats,
    check_options,
    check_same_device,
    resolved,
)
from pe_lib.torch._device import COMPUTE_DTYPE, real_dtype
from pe_lib.torch._rotation import as_factors, rotate_pairs


def frequencies(
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    device: Device = None,
) -> Tensor:
    """Angular frequencies ω_i of the d_model/2 pairs: `pe_lib.numpy.frequencies`.

    They are float64, or float32 on a device without float64.

    >>> frequencies(4, base=100)
    tensor([1.0000, 0.1000], dtype=torch.float64)
    """
    config = check.frequency_config(d_model, base, spacing)
    return constants_on(config, resolved(device)).omega.clone()


def sinusoidal_table(
    seq_len: SupportsIndex,
    d_model: SupportsIndex,
    *,
    start: SupportsIndex = 0,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: GivenFrequencies = None,
    layout: Layout = "interleaved",
    dtype: torch.dtype = torch.float32,
    device: Device = None,
) -> Tensor:
    """Encodings of the positions start … start + seq_len − 1: `pe_lib.numpy.sinusoidal_table`.

    A new tensor of shape (seq_len, d_model), built on the device it is asked for. ``dtype`` is
    float16, bfloat16, float32 or float64. In a compiled graph ``seq_len`` and ``start`` may be
    symbolic, and ``frequencies``, if any, are a tuple of floats.

    >>> sinusoidal_table(1, 4, start=1, base=100)
    tensor([[0.8415, 0.5403, 0.0998, 0.9950]])
    """
    seq_len = check.integer("seq_len", seq_len, at_least=0)
    config = check.frequency_config(d_model, base, spacing, frequencies)
    check_options(layout, dtype)
    start = check.integer("start", start)
    on = resolved(device)
    check_device_has(dtype, on)
    return contiguous_table(seq_len, start, config, layout, dtype, on)


def sinusoidal_encoding(
    positions: Tensor | ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: GivenFrequencies = None,
    layout: Layout = "interleaved",
    dtype: torch.dtype = torch.float32,
    device: Device = None,
) -> Tensor:
    """Encodings of any positions: `pe_lib.numpy.sinusoidal_encoding`.

    A new tensor of shape (…, d_model), with the axes of ``positions`` first, on their device unless
    ``device=`` names another. It is differentiable in floating-point positions, to every order.
    Positions in a half type are refused: bfloat16 holds whole numbers up to 256 only.

    The derivative of sin ωx and of cos ωx at 0, for ω = 1 and ω = 0.1:

    >>> def encode(x):
    ...     return sinusoidal_encoding(x, 4, base=100, dtype=x.dtype)
    >>> torch.func.jacfwd(encode)(torch.tensor(0.0, dtype=torch.float64))
    tensor([1.0000, -0.0000, 0.1000, -0.0000], dtype=torch.float64)
    """
    config = check.frequency_config(d_model, base, spacing, frequencies)
    check_options(layout, dtype)
    positions = as_positions("positions", positions, device)
    check_device_has(dtype, positions.device)
    return encode(positions, config, layout, dtype)


def rotation_matrix(
    by: Tensor | ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: GivenFrequencies = None,
    layout: Layout = "interleaved",
    dtype: torch.dtype = torch.float64,
    device: Device = None,
) -> Tensor:
    """T(Δx), dense, of shape (d_model, d_model): `pe_lib.numpy.rotation_matrix`.

    >>> rotation_matrix(1, 2)[0]
    tensor([ 0.5403, -0.8415], dtype=torch.float64)
    """
    config = check.frequency_config(d_model, base, spacing, frequencies)
    check_options(layout, dtype)
    position = as_positions("by", by, device)
    check_device_has(dtype, position.device)
    check.one_number("by", tuple(position.shape))
    sin, cos = encode(position, config, "split", dtype).chunk(2)
    upper = torch.hstack((cos.diag(), (-sin).diag()))
    lower = torch.hstack((sin.diag(), cos.diag()))
    matrix = torch.cat((upper, lower))
    if layout == "split":
        return matrix
    order = torch.arange(config.d_model, device=matrix.device).view(2, -1).T.flatten()
    return matrix[order][:, order]


def rotate(
    x: Tensor,
    by: Tensor | ArrayLike | None = None,
    *,
    positions: Tensor | ArrayLike | None = None,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: RotaryFrequencies | GivenFrequencies = None,
    attention_factor: SupportsFloat | None = None,
    rotary_dim: SupportsIndex | None = None,
    layout: Layout | None = None,
) -> Tensor:
    """x · T(Δx), row by row, without forming T: `pe_lib.numpy.rotate`.

    Differentiable in x, and in ``by`` or ``positions`` of floats. Half types are computed in
    float32. In float64, many integers that lie close together are looked up in a table, and the
    error of a pair is at most 10·2⁻⁵³ times its norm.

    >>> table = sinusoidal_table(10, 8)
    >>> torch.allclose(rotate(table[:-3], by=3), table[3:])
    True
    """
    check_floats("x", x, axes=1)
    layout = check.by_or_positions(by, positions, attention_factor, layout)
    config, factor = check.rotation(
        x.shape[-1],
        width_name="the last axis of x",
        base=base,
        spacing=spacing,
        frequencies=frequencies,
        attention_factor=attention_factor,
        rotary_dim=rotary_dim,
    )
    check_options(layout, x.dtype)
    leading = tuple(x.shape[:-1])
    if positions is None:
        places = as_shift(cast(ArrayLike, by), x, check.INSTEAD_OF_A_MINUS)
        check.by_shape(tuple(places.shape), leading)
    else:
        places = as_positions_of("positions", positions, x)
        places = places.reshape(check.positions_in_x(tuple(places.shape), leading))
    sin, cos = encode(places, config, "split", COMPUTE_DTYPE[x.dtype]).chunk(2, dim=-1)
    if positions is None:
        return rotate_pairs(x, as_factors(cos, -sin, layout))
    if factor != 1:
        cos, sin = cos * factor, sin * factor
    return rotate_pairs(x, as_factors(cos, sin, layout))


def similarity(
    by: Tensor | ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: GivenFrequencies = None,
    device: Device = None,
) -> Tensor:
    """Cosine between PE(x) and PE(x + Δ): `pe_lib.numpy.similarity`.

    It is float64, or float32 on a device without float64.

    >>> similarity([0, 1], 4, base=100)
    tensor([1.0000, 0.7677], dtype=torch.float64)
    """
    config = check.frequency_config(d_model, base, spacing, frequencies)
    shift = as_positions("by", by, device)
    _, cos = encode(shift, config, "split", real_dtype(shift.device)).chunk(2, dim=-1)
    return cos.mean(dim=-1)


def attention_terms(
    x: Tensor, y: Tensor, e: Tensor, f: Tensor, w_q: Tensor, w_k: Tensor
) -> AttentionTerms:
    """The four terms of (x + e)W_q · ((y + f)W_k)ᵀ: `pe_lib.numpy.attention_terms`.

    >>> x, e, w_q, w_k = torch.randn(4, 8, 8).unbind()
    >>> score = (x + e) @ w_q @ ((x + e) @ w_k).mT
    >>> torch.allclose(sum(attention_terms(x, x, e, e, w_q, w_k)), score, atol=1e-4)
    True
    """
    arguments = {"x": x, "y": y, "e": e, "f": f, "w_q": w_q, "w_k": w_k}
    for name, rows in arguments.items():
        check_floats(name, rows, axes=2)
        check_same_device(name, rows, x)
        if rows.dtype != x.dtype:
            raise TypeError(f"{name} must have x's dtype {x.dtype}, got {rows.dtype}")
    shapes = (tuple(rows.shape) for rows in arguments.values())
    check.attention_shapes(*shapes, broadcast_shapes=torch.broadcast_shapes)
    x, e = torch.broadcast_tensors(x, e)
    y, f = torch.broadcast_tensors(y, f)
    content_queries, position_queries = x @ w_q, e @ w_q
    content_keys, position_keys = (y @ w_k).mT, (f @ w_k).mT
    return AttentionTerms(
        content_content=content_queries @ content_keys,
        content_position=content_queries @ position_keys,
        position_content=position_queries @ content_keys,
        position_position=position_queries @ position_keys,
    )


def rotary_frequencies(
    head_dim: SupportsIndex,
    *,
    seq_len: SupportsIndex | None = None,
    **rope_parameters: Unpack[RopeParameters],
) -> RotaryFrequencies:
    """Frequencies and attention factor of RoPE from a configuration:
    `pe_lib.numpy.rotary_frequencies`.

    The frequencies are a float64 tensor on the CPU, whatever the default device is, because modules
    take them as numbers.

    >>> fields = {"rope_theta": 100, "rope_type": "linear", "factor": 4}
    >>> rotary_frequencies(8, **fields).frequencies
    tensor([0.2500, 0.0791, 0.0250, 0.0079], dtype=torch.float64)
    """
    pair = rope.rotary_frequencies(head_dim, seq_len=seq_len, **rope_parameters)
    tensors = RotaryFrequencies(torch.from_numpy(pair.frequencies), pair.attention_factor)
    return tensors.of_head(int(head_dim))


def convert_layout(
    weights: Tensor,
    head_dim: SupportsIndex,
    *,
    to: Layout,
    rotary_dim: SupportsIndex | None = None,
    axis: SupportsIndex = 0,
) -> Tensor:
    """Reorder the weights that make queries or keys: `pe_lib.numpy.convert_layout`.

    A new tensor on the device and of the dtype of ``weights``, and differentiable in them.

    >>> layer = torch.nn.Linear(16, 24)  # three heads of width 8
    >>> split = convert_layout(layer.weight, 8, to="split")
    >>> torch.equal(convert_layout(split, 8, to="interleaved"), layer.weight)
    True
    """
    if not isinstance(weights, Tensor):
        raise TypeError(f"weights must be a tensor, got {check.brief(weights)}")
    order = rope.layout_order(tuple(weights.shape), head_dim, to, rotary_dim, axis)
    return weights.index_select(int(axis), torch.from_numpy(order).to(weights.device))
