"""Sinusoidal positional encoding in PyTorch: `pe_lib.numpy` on any device, and two modules.

Names, signatures, conventions, algorithm and accuracy are those of `pe_lib.numpy`, with ``device=``
beside ``dtype=``, bfloat16 beside float16, and PyTorch's number of threads for ``workers=``.

Shapes, dtypes and options are always checked. Values are checked where looking at them costs
nothing (Python numbers, NumPy arrays, CPU tensors outside a compiled graph); on another device, and
in a compiled graph, a position that is not finite gives NaN without a synchronisation.

The angles are float64 arithmetic on the device itself, and every product in them that matters is
exact, so a compiler that fuses a product with a sum changes nothing. On the CPU, outside graphs and
derivatives, `pe_lib.numpy` does the work. A device without float64 (MPS) gets its result from the
CPU, by a copy, within the same bound; a result in float64 it cannot hold.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self, SupportsFloat, SupportsIndex

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch._C._functorch import peek_interpreter_stack
from torch.autograd.forward_ad import unpack_dual
from torch.fx.experimental.symbolic_shapes import guard_scalar
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from pe_lib import _checks, _exact
from pe_lib import numpy as reference
from pe_lib._checks import (
    Clocks,
    check_axes,
    check_broadcast,
    check_clocks,
    check_integer,
    check_layout,
    check_leading_axes,
    check_probability,
    check_real,
    check_row_width,
    check_same_rows,
    check_start,
)
from pe_lib.numpy import FloatArray

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

Layout = _checks.Layout
Spacing = _checks.Spacing
Device = torch.device | str | int | None
HALF_DTYPES = (torch.float16, torch.bfloat16)
FLOAT_DTYPES = (*HALF_DTYPES, torch.float32, torch.float64)
COMPLEX = {torch.float32: np.complex64, torch.float64: np.complex128}
DEVICES_WITHOUT_FLOAT64 = ("mps",)
BLOCK = reference.BLOCK
KEPT = 32  # constants of each kind that stay on their devices
CHUNK = 2**20  # pairs computed at a time on a device, so that what is temporary stays small


class AttentionTerms(NamedTuple):
    """The four parts of an attention score, each of shape (…, n, m).

    Examples
    --------
    >>> one = torch.ones(1, 2)
    >>> terms = attention_terms(one, 3 * one, one, one, torch.eye(2), torch.eye(2))
    >>> terms.content_content, terms.position_position
    (tensor([[6.]]), tensor([[2.]]))
    """

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
    """Angular frequencies ω_i of the d_model/2 pairs, float64: `pe_lib.numpy.frequencies`.

    Examples
    --------
    >>> frequencies(4, base=100)
    tensor([1.0000, 0.1000], dtype=torch.float64)
    """
    clocks, device = _clocks(d_model, base, spacing), _resolved(device)
    if torch.compiler.is_dynamo_compiling():
        return _frequencies_in_graph(*clocks, device)  # type: ignore[no-any-return]
    return torch.tensor(_exact.frequencies(clocks), dtype=torch.float64, device=device)


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

    The dtype is float16, bfloat16, float32 or float64, each rounded once from float64. The table is
    built on the device it is asked for. In a compiled graph ``seq_len`` and ``start`` may be
    symbolic.

    Returns
    -------
    tensor of shape (seq_len, d_model)
        New, of the accuracy that `pe_lib.numpy` states.

    Examples
    --------
    >>> sinusoidal_table(2, 4, base=100)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0998, 0.9950]])
    """
    seq_len, start = _integer("seq_len", seq_len, at_least=0), _integer("start", start)
    clocks = _clocks(d_model, base, spacing)
    check_layout(layout)
    _check_float_dtype(dtype)
    if torch.compiler.is_compiling():
        positions = torch.arange(start, start + seq_len, device=device)
        return _encode(positions, clocks, layout, dtype, device)
    check_start(start)
    device = _resolved(device)
    if device.type == "cpu" or device.type in DEVICES_WITHOUT_FLOAT64:
        return _table_on_host(seq_len, start, clocks, layout, dtype).to(device)
    return _table_on_device(seq_len, start, clocks, layout, dtype, device)


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

    Differentiable in floating-point positions, to every order. Without ``device=`` the result lies
    where the positions lie.

    Returns
    -------
    tensor of shape (…, d_model)
        New, with the axes of ``positions`` first, of the accuracy that `pe_lib.numpy` states.

    Examples
    --------
    The derivative of sin ωx and of cos ωx at 0, for ω = 1 and ω = 0.1:

    >>> x = torch.tensor(0.0, dtype=torch.float64)
    >>> torch.func.jacfwd(lambda x: sinusoidal_encoding(x, 4, base=100, dtype=x.dtype))(x)
    tensor([1.0000, -0.0000, 0.1000, -0.0000], dtype=torch.float64)
    """
    clocks = _clocks(d_model, base, spacing)
    check_layout(layout)
    _check_float_dtype(dtype)
    positions = _as_positions("positions", positions, device)
    return _encode(positions, clocks, layout, dtype, device)


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
    """T(Δx), dense, shape (d_model, d_model): `pe_lib.numpy.rotation_matrix`.

    Examples
    --------
    >>> rotation_matrix(1, 2)
    tensor([[ 0.5403, -0.8415],
            [ 0.8415,  0.5403]], dtype=torch.float64)
    """
    clocks = _clocks(d_model, base, spacing)
    check_layout(layout)
    _check_float_dtype(dtype)
    if isinstance(offset, Tensor) and offset.ndim:
        raise TypeError(f"offset must be a finite real number, got shape {tuple(offset.shape)}")
    if not isinstance(offset, Tensor | float):  # in a graph, a float may be symbolic
        offset = check_real("offset", offset)
    encoding = _encode(_as_positions("offset", offset, device), clocks, "split", dtype, device)
    sin, cos = encoding.chunk(2)
    above = torch.cat((cos.diag(), (-sin).diag()), dim=1)
    matrix = torch.cat((above, torch.cat((sin.diag(), cos.diag()), dim=1)))
    if layout == "split":
        return matrix
    order = torch.arange(clocks.d_model, device=matrix.device).view(2, -1).T.flatten()
    return matrix[order][:, order]


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
    tensor of x's shape, dtype and device
        New, of the accuracy that `pe_lib.numpy` states.

    Examples
    --------
    >>> table = sinusoidal_table(10, 8)
    >>> torch.allclose(rotate(table[:-3], 3), table[3:])
    True
    """
    _check_rows("x", x, axes=1)
    clocks = _clocks(x.shape[-1], base, spacing, "the last axis of x")
    check_layout(layout)
    offset = _as_positions_of_rows("offset", offset, x)
    working = torch.promote_types(x.dtype, torch.float32)
    if x.device.type != "cpu" or (values := _values(offset)) is None:
        cos, sin = _cos_sin(offset, clocks, working)
        return _rotate(x, cos.to(x.device), sin.to(x.device), layout)
    turned = torch.from_numpy(reference._turn_all(values, clocks, COMPLEX[working]))
    if layout == "interleaved":
        return _multiply(x, turned)
    return _rotate(x, turned.real, -turned.imag, layout)


def similarity(
    offset: Tensor | ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    device: Device = None,
) -> Tensor:
    """Cosine between PE(x) and PE(x + Δ), float64: `pe_lib.numpy.similarity`.

    Examples
    --------
    >>> similarity([0, 1], 4, base=100)
    tensor([1.0000, 0.7677], dtype=torch.float64)
    """
    clocks = _clocks(d_model, base, spacing)
    offset = _as_positions("offset", offset, device)
    _, cos = _encode(offset, clocks, "split", torch.float64, device).chunk(2, dim=-1)
    return cos.mean(dim=-1)


def attention_terms(
    x: Tensor, y: Tensor, e: Tensor, f: Tensor, w_q: Tensor, w_k: Tensor
) -> AttentionTerms:
    """The four terms of (x + e)W_q · ((y + f)W_k)ᵀ: `pe_lib.numpy.attention_terms`.

    Examples
    --------
    >>> x, e, w_q, w_k = torch.randn(4, 8, 8).unbind()
    >>> score = (x + e) @ w_q @ ((x + e) @ w_k).mT
    >>> torch.allclose(sum(attention_terms(x, x, e, e, w_q, w_k)), score, atol=1e-4)
    True
    """
    for name, rows in (("x", x), ("y", y), ("e", e), ("f", f), ("w_q", w_q), ("w_k", w_k)):
        _check_rows(name, rows, axes=2)
        _check_same_device(name, rows, "x", x)
        if rows.dtype != x.dtype:
            raise TypeError(f"{name} must have x's dtype {x.dtype}, got {rows.dtype}")
    if w_q.ndim != 2 or w_q.shape != w_k.shape:
        raise ValueError(
            "w_q and w_k must have one shape (d_model, d_k), "
            f"got {tuple(w_q.shape)} and {tuple(w_k.shape)}"
        )
    for name, rows in (("x", x), ("y", y), ("e", e), ("f", f)):
        check_row_width(name, rows.shape[-1], w_q.shape[0])
    check_same_rows("e", tuple(e.shape), "x", tuple(x.shape))
    check_same_rows("f", tuple(f.shape), "y", tuple(y.shape))
    check_leading_axes(
        {name: tuple(rows.shape) for name, rows in (("x", x), ("e", e), ("y", y), ("f", f))}
    )
    x, e = torch.broadcast_tensors(x, e)
    y, f = torch.broadcast_tensors(y, f)
    queries, keys = (x @ w_q, e @ w_q), (y @ w_k, f @ w_k)
    return AttentionTerms(*(q @ k.mT for q in queries for k in keys))


class SinusoidalPositionalEncoding(nn.Module):
    """Add the sinusoidal encoding to embeddings: Vaswani et al. (2017), sections 3.4 and 3.5.

    The table is a non-persistent buffer of ``max_len`` rows. It follows ``.to``, ``.half``,
    ``.bfloat16`` and ``to_empty``, each time rounded anew from float64. Past its end, rows are
    computed. On the CPU a longer table is then kept beside it, as long as sequences run on from one
    to the next; on a device, whose queues and captured graphs would outlive a table that is
    replaced, none is. Compiled graphs and the transforms of ``torch.func`` read the buffer and keep
    nothing; an exported graph, which must hold at any length, computes all of its rows.

    Parameters
    ----------
    d_model
        Width of the embeddings, a positive even integer.
    max_len
        Number of positions to hold. Longer sequences work.
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
    longer: Tensor | None  # no buffer: what averages or synchronises models needs equal shapes

    if TYPE_CHECKING:
        __call__: Callable[..., Tensor]

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
        self.clocks = check_clocks(d_model, base, spacing)
        check_layout(layout)
        self.layout = layout
        self.scale = math.sqrt(self.clocks.d_model) if scale_input else 1.0
        self.dropout = nn.Dropout(check_probability("dropout", dropout))
        max_len = check_integer("max_len", max_len, at_least=0)
        table = torch.empty(max_len, self.clocks.d_model, dtype=torch.get_default_dtype())
        self.register_buffer("table", table, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the table anew, for example after ``to_empty``."""
        self.longer = None
        self.table = self._lasting_rows(len(self.table))

    def forward(
        self, x: Tensor, *, positions: Tensor | None = None, offset: SupportsIndex = 0
    ) -> Tensor:
        """Encode ``x`` of shape (batch, seq, d_model) at positions offset … offset + seq − 1.

        ``positions``, integers or floats that broadcast to (batch, seq), take the place of those.
        They are encoded, not looked up, so no position is out of range. The result has x's dtype.
        """
        _check_rows("x", x, axes=2)
        check_row_width("x", x.shape[-1], self.clocks.d_model)
        _check_same_device("x", x, "the module", self.table)
        if positions is None:
            encoding = self._contiguous(x.shape[-2], _integer("offset", offset))
        else:
            positions = _as_row_positions(positions, offset, x)
            clocks, dtype = _clocks(*self.clocks), self.table.dtype
            encoding = _encode(positions, clocks, self.layout, dtype, x.device)
        return self.dropout(torch.add(encoding, x, alpha=self.scale).to(x.dtype))  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        d_model, base, spacing = self.clocks
        return (
            f"{d_model}, max_len={len(self.table)}, base={base:g}, spacing={spacing!r}, "
            f"layout={self.layout!r}, scale_input={self.scale != 1.0}"
        )

    def _contiguous(self, seq_len: int, offset: int) -> Tensor:
        end = offset + seq_len
        if offset < 0 or torch.compiler.is_exporting():
            return self._rows(seq_len, offset)
        if end <= len(self.table):
            return self.table[offset:end]
        if self.table.device.type != "cpu" or not _is_lasting():
            return self._rows(seq_len, offset)
        table = self.table if self.longer is None else self.longer  # a thread may replace it
        if offset > len(table):
            return self._rows(seq_len, offset)
        if end > len(table):
            self.longer = table = self._lasting_rows(max(end, 2 * len(table)))
        return table[offset:end]

    def _lasting_rows(self, seq_len: int) -> Tensor:
        with torch.inference_mode(False):  # or no derivative could be taken through them later
            return self._rows(seq_len, 0)

    def _rows(self, seq_len: int, start: int) -> Tensor:
        d_model, base, spacing = self.clocks
        return sinusoidal_table(
            seq_len,
            d_model,
            start=start,
            base=base,
            spacing=spacing,
            layout=self.layout,
            dtype=self.table.dtype,
            device=self.table.device,
        )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = self.table
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.table is not before:
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
        ``"interleaved"`` pairs neighbouring entries (RoFormer, and Meta's own code of Llama),
        ``"split"`` pairs entry i with entry i + head_dim/2 (GPT-NeoX, and Llama in transformers).

    Examples
    --------
    Moving query and key on by the same distance leaves their score as it was:

    >>> rotary, (q, k) = RotaryPositionalEncoding(8), torch.randn(2, 1, 8)
    >>> near = rotary(q, offset=7) @ rotary(k, offset=3).mT
    >>> far = rotary(q, offset=1007) @ rotary(k, offset=1003).mT
    >>> torch.allclose(near, far, atol=1e-5)
    True
    """

    if TYPE_CHECKING:
        __call__: Callable[..., Tensor]

    def __init__(
        self,
        head_dim: SupportsIndex,
        *,
        base: SupportsFloat = 10_000.0,
        layout: Layout = "interleaved",
    ) -> None:
        super().__init__()
        self.clocks = check_clocks(head_dim, base, "paper", "head_dim")
        check_layout(layout)
        self.layout = layout

    def forward(
        self, x: Tensor, *, positions: Tensor | None = None, offset: SupportsIndex = 0
    ) -> Tensor:
        """Rotate ``x`` of shape (…, seq, head_dim) at positions offset … offset + seq − 1.

        ``positions`` that broadcast to (…, seq) take the place of those.
        """
        _check_rows("x", x, axes=2)
        head_dim, base, _ = self.clocks
        check_row_width("x", x.shape[-1], head_dim)
        working = torch.promote_types(x.dtype, torch.float32)
        if positions is None:
            table = sinusoidal_table(
                x.shape[-2],
                head_dim,
                start=_integer("offset", offset),
                base=base,
                layout="split",
                dtype=working,
                device=x.device,
            )
        else:
            positions = _as_row_positions(positions, offset, x)
            table = _encode(positions, _clocks(*self.clocks), "split", working, x.device)
        sin, cos = table.chunk(2, dim=-1)
        return _rotate(x, cos, -sin, self.layout)

    def extra_repr(self) -> str:
        return f"{self.clocks.d_model}, base={self.clocks.base:g}, layout={self.layout!r}"


def _cos_sin(positions: Tensor, clocks: Clocks, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos ω_ix and sin ω_ix, with one more axis than the positions: `pe_lib.numpy._turn`.

    Derivatives are those of a further turn, by the angle ω_i(x − x): it is nothing, and its
    derivative is ω_i. So they are exact to every order, and the series below is not differentiated.
    """
    if positions.device.type in DEVICES_WITHOUT_FLOAT64:
        cos, sin = _cos_sin(positions.cpu(), clocks, dtype)
        return cos.to(positions.device), sin.to(positions.device)
    turns, marks = _constants(clocks, positions.device)
    coarse, medium, fine, nearest = turns
    has_derivative = positions.is_floating_point() and _is_followed(positions)
    positions = positions.to(torch.float64).unsqueeze(-1)
    fixed = positions.detach()
    whole = fixed.round()
    part = fixed - whole
    high = _fraction(_fraction(whole * coarse) + whole * medium)  # exact up to 2³²
    low = _fraction(whole * fine + part * nearest)
    mark = ((high + low) * _exact.MARKS).round()
    angle = 2 * math.pi * ((high - mark / _exact.MARKS) + low)  # below 0.0031

    square = angle * angle
    versine = square * (0.5 - square / 24)  # 1 − cos(angle)
    sine = angle * (1 - square * (1 / 6 - square / 120))
    index = mark.to(torch.int64) & (_exact.MARKS - 1)
    near_cos, near_sin, lost_cos, lost_sin = (row[index] for row in marks)
    cos = near_cos + (lost_cos - (near_cos * versine + near_sin * sine))
    sin = near_sin + (lost_sin - (near_sin * versine - near_cos * sine))
    if has_derivative:
        further = 2 * math.pi * nearest * (positions - fixed)
        c, s = further.cos(), further.sin()  # 1 and 0
        cos, sin = cos * c - sin * s, sin * c + cos * s
    return _round(cos, dtype), _round(sin, dtype)


def _fraction(turns: Tensor) -> Tensor:
    """What is left of an angle in turns, from −½ to ½, when the whole turns are taken off."""
    return turns - turns.round()


def _encode(
    positions: Tensor, clocks: Clocks, layout: Layout, dtype: torch.dtype, device: Device
) -> Tensor:
    """Computed where the positions lie, and moved where a device is named."""
    if (values := _values(positions)) is not None:
        encoding = _encode_on_host(values, clocks, layout, dtype)
    else:
        encoding = _encode_on_device(positions, clocks, layout, dtype)
    return encoding if device is None else encoding.to(device)


def _encode_on_device(
    positions: Tensor, clocks: Clocks, layout: Layout, dtype: torch.dtype
) -> Tensor:
    """In parts, so that what is temporary stays small, unless PyTorch must follow it."""
    size = max(1, 2 * CHUNK // clocks.d_model)
    if _is_followed(positions) or positions.numel() <= size:
        cos, sin = _cos_sin(positions, clocks, dtype)
        return _join(sin, cos, layout)
    encoding = torch.empty(*positions.shape, clocks.d_model, dtype=dtype, device=positions.device)
    rows = encoding.view(-1, clocks.d_model).split(size)
    for part, some in zip(rows, positions.reshape(-1).split(size), strict=True):
        cos, sin = _cos_sin(some, clocks, dtype)
        part.copy_(_join(sin, cos, layout))
    return encoding


def _encode_on_host(
    values: NDArray[np.float64], clocks: Clocks, layout: Layout, dtype: torch.dtype
) -> Tensor:
    d_model, base, spacing = clocks
    encode = partial(
        reference.sinusoidal_encoding, d_model=d_model, base=base, spacing=spacing, layout=layout
    )
    flat = values.reshape(-1)
    rows = _by_numpy(lambda rows, name: encode(flat[rows], dtype=name), flat.size, clocks, dtype)
    return rows.view(*values.shape, d_model)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, layout: Layout) -> Tensor:
    """Each pair s + ic times cos − i sin: in eager mode in as few passes over memory as the layout
    allows; written out in a graph, for the compiler to fuse, and under `torch.func`, which cannot
    map what is written in place."""
    if torch.compiler.is_compiling() or _is_transforming():
        s, c = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else x.chunk(2, dim=-1)
        return _join(s * cos + c * sin, c * cos - s * sin, layout).to(x.dtype)
    if layout == "interleaved":
        return _multiply(x, torch.complex(cos, -sin))
    working, half = x.to(cos.dtype), x.shape[-1] // 2
    turned = working * torch.cat((cos, cos), dim=-1)
    turned.narrow(-1, 0, half).addcmul_(working.narrow(-1, half, half), sin)
    turned.narrow(-1, half, half).addcmul_(working.narrow(-1, 0, half), sin, value=-1)
    return turned.to(x.dtype)


def _multiply(x: Tensor, turned: Tensor) -> Tensor:
    """Each pair, as the complex number s + ic, times cos − i sin: one pass over memory."""
    pairs = _as_complex(x.to(torch.promote_types(x.dtype, torch.float32)).contiguous())
    return torch.view_as_real(pairs * turned).flatten(-2).to(x.dtype)


def _as_complex(x: Tensor) -> Tensor:
    if x.storage_offset() % 2:  # a complex number cannot start between two real ones
        x = x.clone()
    return torch.view_as_complex(x.unflatten(-1, (x.shape[-1] // 2, 2)))


def _join(sines: Tensor, cosines: Tensor, layout: Layout) -> Tensor:
    if layout == "split":
        return torch.cat((sines, cosines), dim=-1)
    return torch.stack((sines, cosines), dim=-1).flatten(-2)


def _by_numpy(
    make: Callable[[slice, str], FloatArray], seq_len: int, clocks: Clocks, dtype: torch.dtype
) -> Tensor:
    """Rows that ``make(rows, dtype)`` computes, without a copy. bfloat16, which NumPy lacks, is
    rounded from its float64, 64 rows at a time."""
    if dtype != torch.bfloat16:
        return torch.from_numpy(make(slice(0, seq_len), str(dtype).removeprefix("torch.")))
    result = torch.empty(seq_len, clocks.d_model, dtype=dtype, device="cpu")
    for first in range(0, seq_len, BLOCK):
        rows = slice(first, min(first + BLOCK, seq_len))
        result[rows] = _round(torch.from_numpy(make(rows, "float64")), dtype)
    return result


def _table_on_host(
    seq_len: int, start: int, clocks: Clocks, layout: Layout, dtype: torch.dtype
) -> Tensor:
    """NumPy's table, in as many threads as PyTorch takes."""
    d_model, base, spacing = clocks
    build = partial(
        reference.sinusoidal_table,
        d_model=d_model,
        base=base,
        spacing=spacing,
        layout=layout,
        workers=torch.get_num_threads(),
    )

    def make(rows: slice, name: str) -> FloatArray:
        return build(rows.stop - rows.start, start=start + rows.start, dtype=name)

    return _by_numpy(make, seq_len, clocks, dtype)


def _table_on_device(
    seq_len: int,
    start: int,
    clocks: Clocks,
    layout: Layout,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """PE(start + 64a + b) = PE(start + 64a)·T(b), in `pe_lib.numpy`'s order: a few kernels."""
    table = torch.empty(seq_len, clocks.d_model, dtype=dtype, device=device)
    stride = BLOCK * BLOCK
    starts = start + stride * torch.arange(-(-seq_len // stride), device=device)
    cos, sin = _cos_sin(starts, clocks, torch.float64)
    ahead = torch.complex(sin, cos).unsqueeze(1) * _powers(BLOCK, clocks, device)
    ahead, near = ahead.flatten(0, 1).unsqueeze(1), _powers(1, clocks, device)
    whole, left = divmod(seq_len, BLOCK)
    blocks = table[: whole * BLOCK].unflatten(0, (whole, BLOCK))
    if layout == "interleaved" and dtype not in HALF_DTYPES:
        torch.mul(ahead[:whole], near, out=_as_complex(blocks))
    else:
        for first in range(0, whole, BLOCK):
            some = slice(first, first + BLOCK)
            blocks[some] = _arrange(ahead[some][: whole - first] * near, layout, dtype)
    if left:
        table[-left:] = _arrange(ahead[whole] * near[:left], layout, dtype)
    return table


def _arrange(pairs: Tensor, layout: Layout, dtype: torch.dtype) -> Tensor:
    return _join(_round(pairs.real, dtype), _round(pairs.imag, dtype), layout)


def _round(x: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 to ``dtype`` in one rounding.

    torch converts float64 to a half type through float32 and so rounds twice. Rounding to float32
    *to odd* instead, where the last bit kept says whether anything was lost, makes the second
    rounding the right one: Boldo and Melquiond (2008), "Emulation of FMA and correctly rounded
    sums: proved algorithms using rounding to odd". (Below 2⁻¹²⁶ float32 has fewer bits, and a
    bfloat16 may still be off by one in its last.)
    """
    if dtype not in HALF_DTYPES:
        return x.to(dtype)
    lost = 2**29 - 1  # the bits that float64 has and float32 has not
    bits = x.detach().view(torch.int64)
    odd = (bits | ((bits & lost) + lost)) & ~lost
    single = odd.view(torch.float64).to(torch.float32)
    if _is_followed(x):  # the derivative of a rounding is 1; the sum below is exact
        through = x.to(torch.float32)
        single = through + (single - through.detach())
    return single.to(dtype)


class _Kept:
    """Constants of ``build(…, device)``, kept on their device, so that forward copies nothing. The
    ones that were used last are kept, and all that a CUDA graph under capture reads, since it goes
    on to read them at their address."""

    def __init__(self, build: Callable[..., Tensor]) -> None:
        self.build = build
        self.kept: dict[tuple[object, ...], Tensor] = {}
        self.captured: dict[tuple[object, ...], Tensor] = {}

    def __call__(self, *key: object) -> Tensor:
        kept = self.kept.get(key)
        if kept is not None and not _makes_stand_ins():
            self._keep(key, kept)
            return kept
        with torch.inference_mode(False):
            built = self.build(*key)
        if _is_lasting():
            self._keep(key, built)
        return built

    def _keep(self, key: tuple[object, ...], constant: Tensor) -> None:
        if constant.is_cuda and torch.cuda.is_current_stream_capturing():
            self.captured[key] = constant
        self.kept.pop(key, None)
        self.kept[key] = constant  # at the end of those that wait to be forgotten
        for oldest in list(self.kept)[:-KEPT]:
            self.kept.pop(oldest, None)


@_Kept
def _turns(clocks: Clocks, device: torch.device) -> Tensor:
    return torch.from_numpy(np.stack(_exact.turns(clocks))).to(device)


@_Kept
def _marks(device: torch.device) -> Tensor:
    near, lost = _exact.marks()
    return torch.from_numpy(np.stack((near.real, -near.imag, lost.real, -lost.imag))).to(device)


@_Kept
def _powers(step: int, clocks: Clocks, device: torch.device) -> Tensor:
    return torch.from_numpy(reference._powers(step, clocks)).to(device)


def _constants(clocks: Clocks, device: torch.device) -> tuple[Tensor, Tensor]:
    """The parts of ω/2π and the marks. `torch.compile` cannot look into decimal arithmetic, so it
    gets an operator, which the compiled graph calls when it runs."""
    if torch.compiler.is_dynamo_compiling():
        return _constants_in_graph(*clocks, device)  # type: ignore[no-any-return]
    return _turns(clocks, device), _marks(device)


@torch.library.custom_op("pe_lib::constants", mutates_args=())
def _constants_in_graph(
    d_model: int, base: float, spacing: str, device: torch.device
) -> tuple[Tensor, Tensor]:
    clocks = check_clocks(d_model, base, spacing)  # type: ignore[arg-type]
    return _turns(clocks, device).clone(), _marks(device).clone()


@_constants_in_graph.register_fake
def _(d_model: int, base: float, spacing: str, device: torch.device) -> tuple[Tensor, Tensor]:
    turns = torch.empty(4, d_model // 2, dtype=torch.float64, device=device)
    return turns, torch.empty(4, _exact.MARKS, dtype=torch.float64, device=device)


@torch.library.custom_op("pe_lib::frequencies", mutates_args=())
def _frequencies_in_graph(d_model: int, base: float, spacing: str, device: torch.device) -> Tensor:
    return frequencies(d_model, base=base, spacing=spacing, device=device)  # type: ignore[arg-type]


@_frequencies_in_graph.register_fake
def _(d_model: int, base: float, spacing: str, device: torch.device) -> Tensor:
    return torch.empty(d_model // 2, dtype=torch.float64, device=device)


def _resolved(device: Device) -> torch.device:
    """The device that is meant, with its index: "cuda" may be "cuda:0", None the default device."""
    return torch.empty(0, device=device).device


def _is_on_host(values: object) -> bool:
    return not isinstance(values, Tensor) or (values.ndim == 0 and values.device.type == "cpu")


def _clocks(
    d_model: SupportsIndex, base: SupportsFloat, spacing: Spacing, name: str = "d_model"
) -> Clocks:
    """`check_clocks`. A graph is compiled for these values: its frequencies are constants."""
    symbolic = (int, float, torch.SymInt, torch.SymFloat)
    if torch.compiler.is_compiling() and type(d_model) in symbolic and type(base) in symbolic:
        d_model, base = guard_scalar(d_model), guard_scalar(base)  # type: ignore[arg-type, assignment]
    return check_clocks(d_model, base, spacing, name)


def _integer(name: str, value: SupportsIndex, *, at_least: int | None = None) -> int:
    """An integer, checked. In a graph it may be symbolic, and looking at it would fix its value."""
    if torch.compiler.is_compiling() and type(value) in (int, torch.SymInt):
        return value  # type: ignore[return-value]
    return check_integer(name, value, at_least=at_least)


def _as_positions(name: str, values: Tensor | ArrayLike, device: Device) -> Tensor:
    """Real numbers as a tensor; finite where looking costs nothing."""
    if not isinstance(values, Tensor):
        if torch.compiler.is_compiling():
            return torch.as_tensor(values, dtype=torch.float64, device=device)
        array = reference._as_positions(name, values)
        if _lacks_float64(device):
            return torch.as_tensor(array, device="cpu")
        if array.ndim == 0:  # filled in on the device: a copy from the host would wait for it
            return torch.full((), array.item(), dtype=torch.float64, device=device)
        return torch.as_tensor(array, device=device)
    if values.dtype.is_complex or values.dtype == torch.bool:
        raise TypeError(f"{name} must be real numbers, got dtype {values.dtype}")
    if values.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got layout {values.layout}")
    if values.dtype.is_floating_point and not _looks_finite(values):
        bad = values[~torch.isfinite(values)].flatten()[0].item()
        raise ValueError(f"{name} must be finite, got {bad}")
    return values if device is None or _lacks_float64(device) else values.to(device)


def _lacks_float64(device: Device) -> bool:
    """Whether positions for this device stay where they are, and what is made of them moves."""
    return device is not None and torch.device(device).type in DEVICES_WITHOUT_FLOAT64


def _looks_finite(values: Tensor) -> bool:
    """False if a look, where one is possible and free, finds a NaN or an infinity."""
    if values.device.type != "cpu" or torch.compiler.is_compiling():
        return True
    try:
        return bool(torch.isfinite(values).all())
    except RuntimeError:  # there are no values under vmap, nor in a stand-in for a tensor
        return True


def _values(positions: Tensor) -> NDArray[np.float64] | None:
    """What lies on the CPU, for NumPy; None where it lies elsewhere, or PyTorch must follow it."""
    if positions.device.type != "cpu" or _is_followed(positions):
        return None
    try:
        return positions.to(torch.float64).numpy()
    except RuntimeError:
        return None


def _is_lasting() -> bool:
    """Whether a tensor made now is one that a module may keep."""
    return not (torch.compiler.is_compiling() or _makes_stand_ins() or _is_transforming())


def _makes_stand_ins() -> bool:
    """Whether a mode is on under which tensors have no values."""
    return type(torch.empty(0)) is not Tensor


def _is_transforming() -> bool:
    """Whether `torch.func` (grad, vmap, jvp, functionalize) is at work, which wraps tensors."""
    return peek_interpreter_stack() is not None


def _is_followed(x: Tensor) -> bool:
    """Whether PyTorch must see what is done with x: in a graph that is being made, for a derivative
    of any kind, under vmap, for a stand-in."""
    return (
        torch.compiler.is_compiling()
        or x.requires_grad
        or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        or is_in_torch_dispatch_mode()
        or _is_transforming()
        or unpack_dual(x).tangent is not None
    )


def _as_row_positions(positions: Tensor, offset: SupportsIndex, x: Tensor) -> Tensor:
    """Explicit positions of the rows of x, given in place of an offset."""
    if _integer("offset", offset) != 0:
        raise ValueError(f"offset must be 0 where positions are given, got {offset!r}")
    return _as_positions_of_rows("positions", positions, x)


def _as_positions_of_rows(name: str, values: Tensor | ArrayLike, x: Tensor) -> Tensor:
    """One position for each row of x, on its device (or the host, if that has no float64)."""
    on_host = _is_on_host(values)
    positions = _as_positions(name, values, x.device if on_host else None)
    if not (on_host and _lacks_float64(x.device)):
        _check_same_device(name, positions, "x", x)
    check_broadcast(name, tuple(positions.shape), tuple(x.shape[:-1]), "x.shape[:-1]")
    return positions


def _check_float_dtype(dtype: torch.dtype) -> None:
    if dtype not in FLOAT_DTYPES:
        raise TypeError(f"dtype must be float16, bfloat16, float32 or float64, got {dtype!r}")


def _check_rows(name: str, x: Tensor, *, axes: int) -> None:
    if not isinstance(x, Tensor) or x.dtype not in FLOAT_DTYPES:
        got = x.dtype if isinstance(x, Tensor) else repr(x)
        raise TypeError(
            f"{name} must be a tensor of float16, bfloat16, float32 or float64, got {got}"
        )
    if x.layout != torch.strided or x.is_nested:
        kind = "nested" if x.is_nested else x.layout
        raise TypeError(f"{name} must be a dense tensor, got layout {kind}")
    check_axes(name, tuple(x.shape), at_least=axes)


def _check_same_device(name: str, x: Tensor, other_name: str, other: Tensor) -> None:
    if x.device != other.device:
        raise ValueError(
            f"{name} and {other_name} must be on one device, got {x.device} and {other.device}"
        )
