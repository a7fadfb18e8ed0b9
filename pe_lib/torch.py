"""Sinusoidal positional encoding in PyTorch: `pe_lib.numpy` on any device, and two modules.

Names, signatures and conventions are those of `pe_lib.numpy`, with ``device=`` beside ``dtype=``.
Shapes, dtypes and options are always checked. Values are checked where looking at them costs
nothing (Python numbers, NumPy arrays, CPU tensors outside a compiled graph); on another device, and
in a compiled graph, a position that is not finite gives NaN without a synchronisation.
"""

import math
from typing import NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from pe_lib import numpy as reference
from pe_lib._checks import (
    Layout,
    Spacing,
    check_base,
    check_broadcast,
    check_even,
    check_integer,
    check_layout,
    check_probability,
    check_real,
    check_row_width,
    check_same_rows,
    check_spacing,
)

__all__ = [
    "AttentionTerms",
    "RotaryPositionalEncoding",
    "SinusoidalPositionalEncoding",
    "attention_terms",
    "frequencies",
    "rotate",
    "rotation_matrix",
    "similarity",
    "sinusoidal_encoding",
    "sinusoidal_table",
]

Device = torch.device | str | int | None
FLOAT_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class AttentionTerms(NamedTuple):
    """The four parts of an attention score, each of shape (…, n, m)."""

    content_content: Tensor
    content_position: Tensor
    position_content: Tensor
    position_position: Tensor


def frequencies(
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    device: Device = None,
) -> Tensor:
    """Angular frequencies ω_i of the d_model/2 pairs, float64: `pe_lib.numpy.frequencies`."""
    omega = reference.frequencies(d_model, base=base, spacing=spacing)
    return torch.tensor(omega, dtype=torch.float64, device=device)


def sinusoidal_table(
    seq_len: SupportsIndex,
    d_model: SupportsIndex,
    *,
    start: SupportsIndex = 0,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
    dtype: torch.dtype = torch.float32,
    device: Device = None,
) -> Tensor:
    """Encodings of the positions start … start + seq_len − 1: `pe_lib.numpy.sinusoidal_table`.

    The dtype is float16, bfloat16, float32 or float64. Angles are formed in float64, and every
    dtype is rounded directly from it.

    Returns
    -------
    New tensor of shape (seq_len, d_model).
    """
    seq_len = check_integer("seq_len", seq_len, at_least=0)
    start = check_integer("start", start)
    d_model, base = check_even("d_model", d_model), check_base(base)
    check_spacing(spacing)
    check_layout(layout)
    _check_float_dtype(dtype)
    positions = torch.arange(start, start + seq_len, device=device)
    return _encode(positions, d_model, base, spacing, layout, dtype)


def sinusoidal_encoding(
    positions: Tensor | ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
    dtype: torch.dtype = torch.float32,
    device: Device = None,
) -> Tensor:
    """Encodings of any positions: `pe_lib.numpy.sinusoidal_encoding`.

    Differentiable in floating-point positions. Without ``device=`` the result lies where the
    positions lie.

    Returns
    -------
    New tensor of shape (*positions.shape, d_model).
    """
    d_model, base = check_even("d_model", d_model), check_base(base)
    check_spacing(spacing)
    check_layout(layout)
    _check_float_dtype(dtype)
    positions = _as_positions("positions", positions, device)
    return _encode(positions, d_model, base, spacing, layout, dtype)


def rotation_matrix(
    offset: SupportsFloat,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
    dtype: torch.dtype = torch.float64,
    device: Device = None,
) -> Tensor:
    """T(Δx), dense, shape (d_model, d_model): `pe_lib.numpy.rotation_matrix`."""
    _check_float_dtype(dtype)
    matrix = reference.rotation_matrix(offset, d_model, base=base, spacing=spacing, layout=layout)
    return _round(torch.from_numpy(matrix), dtype).to(device)


def rotate(
    x: Tensor,
    offset: Tensor | ArrayLike,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
) -> Tensor:
    """x · T(Δx), row by row, without forming T: `pe_lib.numpy.rotate`.

    Differentiable in x and in a floating-point offset. Half types are computed in float32.

    Returns
    -------
    New tensor of x's shape, dtype and device.
    """
    _check_rows("x", x, axes=1)
    d_model = check_even("the last axis of x", x.shape[-1])
    base = check_base(base)
    check_spacing(spacing)
    check_layout(layout)
    offset = _as_positions("offset", offset, x.device if _is_on_host(offset) else None)
    _check_same_device("offset", offset, "x", x)
    check_broadcast("offset", tuple(offset.shape), tuple(x.shape[:-1]), "x.shape[:-1]")
    return _rotate(x, offset, d_model, base, spacing, layout)


def similarity(
    offset: Tensor | ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    device: Device = None,
) -> Tensor:
    """Cosine between PE(x) and PE(x + Δ), float64: `pe_lib.numpy.similarity`."""
    d_model, base = check_even("d_model", d_model), check_base(base)
    check_spacing(spacing)
    offset = _as_positions("offset", offset, device)
    return torch.cos(_angles(offset, d_model, base, spacing)).mean(dim=-1)


def attention_terms(
    x: Tensor, y: Tensor, e: Tensor, f: Tensor, w_q: Tensor, w_k: Tensor
) -> AttentionTerms:
    """The four terms of (x + e)W_q · ((y + f)W_k)ᵀ: `pe_lib.numpy.attention_terms`."""
    for name, rows in (("x", x), ("y", y), ("e", e), ("f", f), ("w_q", w_q), ("w_k", w_k)):
        _check_rows(name, rows, axes=2)
        _check_same_device(name, rows, "x", x)
    if w_q.ndim != 2 or w_q.shape != w_k.shape:
        raise ValueError(
            "w_q and w_k must have one shape (d_model, d_k), "
            f"got {tuple(w_q.shape)} and {tuple(w_k.shape)}"
        )
    for name, rows in (("x", x), ("y", y), ("e", e), ("f", f)):
        check_row_width(name, rows.shape[-1], w_q.shape[0])
    check_same_rows("e", tuple(e.shape), "x", tuple(x.shape))
    check_same_rows("f", tuple(f.shape), "y", tuple(y.shape))
    (x, e), (y, f) = torch.broadcast_tensors(x, e), torch.broadcast_tensors(y, f)
    queries, keys = (x @ w_q, e @ w_q), (y @ w_k, f @ w_k)
    return AttentionTerms(*(q @ k.mT for q in queries for k in keys))


class SinusoidalPositionalEncoding(nn.Module):
    """Add the sinusoidal encoding to embeddings: Vaswani et al. (2017), sections 3.4 and 3.5.

    The table is a non-persistent buffer. It follows ``.to``, ``.half``, ``.bfloat16`` and
    ``to_empty``, each time rounded anew from float64, and it grows when a sequence is longer.

    Parameters
    ----------
    d_model
        Width of the embeddings, a positive even integer.
    max_len
        Number of positions to hold from the start. Longer sequences work.
    dropout
        Rate of the dropout after the sum, from 0 to 1.
    base, spacing, layout
        As for `sinusoidal_table`.
    scale_input
        Multiply the embeddings by √d_model first, as the paper does.

    Examples
    --------
    >>> encode = SinusoidalPositionalEncoding(8, max_len=4)
    >>> encode(torch.zeros(2, 16, 8)).shape
    torch.Size([2, 16, 8])
    """

    table: Tensor

    def __init__(
        self,
        d_model: SupportsIndex,
        max_len: SupportsIndex = 512,
        *,
        dropout: SupportsFloat = 0.0,
        base: SupportsFloat = 10_000.0,
        spacing: Spacing = "paper",
        layout: Layout = "interleaved",
        scale_input: bool = False,
    ) -> None:
        super().__init__()
        self.d_model = check_even("d_model", d_model)
        self.base = check_base(base)
        check_spacing(spacing)
        check_layout(layout)
        self.spacing, self.layout = spacing, layout
        self.scale = math.sqrt(self.d_model) if scale_input else 1.0
        self.dropout = nn.Dropout(check_probability("dropout", dropout))
        max_len = check_integer("max_len", max_len, at_least=0)
        table = torch.empty(max_len, self.d_model, dtype=torch.get_default_dtype())
        self.register_buffer("table", table, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the table anew, for example after ``to_empty``."""
        self.table = self._encode(torch.arange(len(self.table), device=self.table.device))

    def forward(
        self, x: Tensor, *, positions: Tensor | None = None, offset: SupportsIndex = 0
    ) -> Tensor:
        """Encode ``x`` of shape (batch, seq, d_model) at positions offset … offset + seq − 1.

        ``positions``, integers or floats that broadcast to (batch, seq), take the place of those.
        They are encoded, not looked up, so no position is out of range. The result has x's dtype.
        """
        _check_rows("x", x, axes=2)
        check_row_width("x", x.shape[-1], self.d_model)
        _check_same_device("x", x, "the module", self.table)
        if positions is None:
            encoding = self._contiguous(x.shape[-2], offset)
        else:
            _check_offset_unused(offset)
            encoding = self._explicit(positions, x)
        return self.dropout(torch.add(encoding, x, alpha=self.scale).to(x.dtype))

    def extra_repr(self) -> str:
        return (
            f"{self.d_model}, max_len={len(self.table)}, base={self.base:g}, "
            f"spacing={self.spacing!r}, layout={self.layout!r}, scale_input={self.scale != 1.0}"
        )

    def _contiguous(self, seq_len: int, offset: SupportsIndex) -> Tensor:
        if not torch.compiler.is_compiling():
            offset = check_integer("offset", offset)
        end = offset + seq_len
        if offset < 0:
            return self._encode(torch.arange(offset, end, device=self.table.device))
        if end > len(self.table):
            if torch.compiler.is_compiling():  # a graph must not replace the module's buffer
                return self._encode(torch.arange(offset, end, device=self.table.device))
            self._grow(end)
        return self.table[offset:end]

    def _grow(self, length: int) -> None:
        length = max(length, 2 * len(self.table))
        self.table = self._encode(torch.arange(length, device=self.table.device))

    def _explicit(self, positions: Tensor, x: Tensor) -> Tensor:
        positions = _as_positions("positions", positions, None)
        _check_same_device("positions", positions, "x", x)
        check_broadcast("positions", tuple(positions.shape), tuple(x.shape[:-1]), "x.shape[:-1]")
        return self._encode(positions)

    def _encode(self, positions: Tensor) -> Tensor:
        return _encode(
            positions, self.d_model, self.base, self.spacing, self.layout, self.table.dtype
        )

    def _apply(self, fn, recurse: bool = True):  # noqa: ANN001, ANN202  (torch's own signature)
        before = self.table
        super()._apply(fn, recurse)
        if (self.table.dtype, self.table.device) != (before.dtype, before.device):
            self.reset_parameters()
        return self


class RotaryPositionalEncoding(nn.Module):
    """Rotate queries or keys by their position: Su et al. (2021), RoFormer.

    The sense of turning is RoFormer's and Llama's, q · T(−position), so that a score depends on
    positions through their difference alone. The module holds no tensor.

    Parameters
    ----------
    head_dim
        Width of one head, a positive even integer.
    base
        As for `sinusoidal_table`.
    layout
        ``"interleaved"`` pairs neighbouring entries (RoFormer), ``"split"`` pairs entry i with
        entry i + head_dim/2 (Llama's ``rotate_half``).

    Examples
    --------
    >>> RotaryPositionalEncoding(8)(torch.zeros(2, 4, 16, 8)).shape
    torch.Size([2, 4, 16, 8])
    """

    def __init__(
        self,
        head_dim: SupportsIndex,
        *,
        base: SupportsFloat = 10_000.0,
        layout: Layout = "interleaved",
    ) -> None:
        super().__init__()
        self.head_dim = check_even("head_dim", head_dim)
        self.base = check_base(base)
        check_layout(layout)
        self.layout = layout

    def forward(
        self, x: Tensor, *, positions: Tensor | None = None, offset: SupportsIndex = 0
    ) -> Tensor:
        """Rotate ``x`` of shape (…, seq, head_dim) at positions offset … offset + seq − 1.

        ``positions`` that broadcast to (…, seq) take the place of those.
        """
        _check_rows("x", x, axes=2)
        check_row_width("x", x.shape[-1], self.head_dim)
        if positions is None:
            if not torch.compiler.is_compiling():
                offset = check_integer("offset", offset)
            positions = torch.arange(offset, offset + x.shape[-2], device=x.device)
        else:
            _check_offset_unused(offset)
            positions = _as_positions("positions", positions, None)
            _check_same_device("positions", positions, "x", x)
            shape = tuple(positions.shape)
            check_broadcast("positions", shape, tuple(x.shape[:-1]), "x.shape[:-1]")
        return _rotate(x, -positions, self.head_dim, self.base, "paper", self.layout)

    def extra_repr(self) -> str:
        return f"{self.head_dim}, base={self.base:g}, layout={self.layout!r}"


def _angles(positions: Tensor, d_model: int, base: float, spacing: Spacing) -> Tensor:
    """Angles ω_i·x in float64, one more axis than the positions."""
    omega = frequencies(d_model, base=base, spacing=spacing, device=positions.device)
    return positions.to(torch.float64).unsqueeze(-1) * omega


def _encode(
    positions: Tensor,
    d_model: int,
    base: float,
    spacing: Spacing,
    layout: Layout,
    dtype: torch.dtype,
) -> Tensor:
    angles = _angles(positions, d_model, base, spacing)
    return _join(_round(torch.sin(angles), dtype), _round(torch.cos(angles), dtype), layout)


def _rotate(
    x: Tensor, offset: Tensor, d_model: int, base: float, spacing: Spacing, layout: Layout
) -> Tensor:
    angles = _angles(offset, d_model, base, spacing)
    working = torch.promote_types(x.dtype, torch.float32)
    cos, sin = torch.cos(angles).to(working), torch.sin(angles).to(working)
    if layout == "interleaved":
        s, c = x[..., 0::2], x[..., 1::2]
    else:
        s, c = x.chunk(2, dim=-1)
    return _join(s * cos + c * sin, c * cos - s * sin, layout).to(x.dtype)


def _join(sines: Tensor, cosines: Tensor, layout: Layout) -> Tensor:
    if layout == "split":
        return torch.cat((sines, cosines), dim=-1)
    return torch.stack((sines, cosines), dim=-1).flatten(-2)


def _round(x: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 to ``dtype`` in one rounding.

    torch converts float64 to a half type through float32 and so rounds twice. Rounding to float32
    *to odd* instead keeps a trace of what was lost, and the second rounding is then the right one:
    Boldo and Melquiond (2008), "Emulation of FMA and correctly rounded sums".
    """
    if dtype not in (torch.float16, torch.bfloat16):
        return x.to(dtype)
    single = x.to(torch.float32)
    lost = x.detach() - single.detach().to(torch.float64)
    bits = single.detach().view(torch.int32)
    outwards = torch.sign(lost) == torch.sign(x.detach())  # |x| is above |single|
    step = torch.where(outwards, 1, -1).to(torch.int32)
    odd = torch.where((lost != 0) & (bits % 2 == 0), bits + step, bits).view(torch.float32)
    return (single + (odd - single.detach())).to(dtype)


def _is_on_host(values: object) -> bool:
    return not isinstance(values, Tensor) or (values.ndim == 0 and values.device.type == "cpu")


def _as_positions(name: str, values: Tensor | ArrayLike, device: Device) -> Tensor:
    """Real numbers as a tensor; finite where looking costs nothing."""
    if not isinstance(values, Tensor):
        return torch.as_tensor(reference._as_positions(name, values), device=device)
    if values.dtype.is_complex or values.dtype == torch.bool:
        raise TypeError(f"{name} must be real numbers, got dtype {values.dtype}")
    looks = values.device.type == "cpu" and not torch.compiler.is_compiling()
    if looks and values.dtype.is_floating_point and not torch.isfinite(values).all():
        bad = values[~torch.isfinite(values)].flatten()[0].item()
        raise ValueError(f"{name} must be finite, got {bad}")
    return values.to(device) if device is not None else values


def _check_float_dtype(dtype: torch.dtype) -> None:
    if dtype not in FLOAT_DTYPES:
        raise TypeError(f"dtype must be float16, bfloat16, float32 or float64, got {dtype!r}")


def _check_rows(name: str, x: Tensor, *, axes: int) -> None:
    if not isinstance(x, Tensor) or x.dtype not in FLOAT_DTYPES or x.ndim < axes:
        got = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else repr(x)
        raise TypeError(
            f"{name} must be a tensor of float16, bfloat16, float32 or float64 "
            f"with at least {axes} axes, got {got}"
        )


def _check_same_device(name: str, x: Tensor, other_name: str, other: Tensor) -> None:
    if x.device != other.device:
        raise ValueError(
            f"{name} and {other_name} must be on one device, got {x.device} and {other.device}"
        )


def _check_offset_unused(offset: SupportsIndex) -> None:
    if offset is not None and not (isinstance(offset, int) and offset == 0):
        raise ValueError(f"offset must be 0 where positions are given, got {offset!r}")
