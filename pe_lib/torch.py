"""Sinusoidal positional encoding in PyTorch: `pe_lib.numpy` on any device, and two modules.

Names, signatures, conventions, algorithm and accuracy are those of `pe_lib.numpy`, with ``device=``
beside ``dtype=``, bfloat16 beside float16, and PyTorch's number of threads for ``workers=``.

Values are checked where looking at them costs nothing (Python numbers, NumPy arrays, CPU tensors
outside a compiled graph); elsewhere a position that is not finite gives NaN, and nothing waits.

One path serves every device, derivative, map and graph: the phase of `pe_lib.numpy`, in int64 and
float64 on the device itself; a compiler may fuse products with sums. Tables on the CPU are built by
NumPy, which is faster. A device without float64 (MPS) is right to some ulp of float32.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from pe_lib import _checks as check
from pe_lib import _exact
from pe_lib import numpy as reference
from pe_lib._checks import Layout, Spacing, Spec
from pe_lib.numpy import BLOCK, AttentionTerms

__all__ = ["RotaryPositionalEncoding", "SinusoidalPositionalEncoding", *reference.__all__]

Device = torch.device | str | int | None
Frequencies = Tensor | ArrayLike | None
Constants = tuple[Tensor, Tensor, Tensor, Tensor]
Rows = tuple[Tensor, ...]
Tables = tuple[Tensor, Tensor]
CONSTANTS = "(SymInt d_model, float base, str spacing, float[]? given, Device device)"
FLOATS = "float16, bfloat16, float32 or float64"
HALF_DTYPES = (torch.float16, torch.bfloat16)
FLOAT_DTYPES = (*HALF_DTYPES, torch.float32, torch.float64)
WORKING = dict.fromkeys(FLOAT_DTYPES[:3], torch.float32) | {torch.float64: torch.float64}
WITHOUT_FLOAT64 = ("mps",)
_is_exporting = getattr(torch.compiler, "is_exporting", lambda: True)  # unknown before torch 2.7
PART = 2**18  # entries turned at a time on a CPU, so that what is temporary stays in the cache
CHUNK = 2**21  # pairs computed at a time on a device, so that what is temporary stays small
CHUNK_ON_CPU = 2**14  # and on a CPU, so that it stays in the cache


def frequencies(
    d_model: SupportsIndex, *, base: SupportsFloat = 10_000.0, spacing: Spacing = "paper",
    device: Device = None,
) -> Tensor:  # fmt: skip
    """Angular frequencies ω_i of the d_model/2 pairs, float64: `pe_lib.numpy.frequencies`.

    >>> frequencies(4, base=100)
    tensor([1.0000, 0.1000], dtype=torch.float64)
    """
    return _constants(check.spec(d_model, base, spacing), _resolved(device))[0].clone()


def sinusoidal_table(
    seq_len: SupportsIndex, d_model: SupportsIndex, *, start: SupportsIndex = 0,
    base: SupportsFloat = 10_000.0, spacing: Spacing = "paper", frequencies: Frequencies = None,
    layout: Layout = "interleaved", dtype: torch.dtype = torch.float32, device: Device = None,
) -> Tensor:  # fmt: skip
    """Encodings of the positions start … start + seq_len − 1: `pe_lib.numpy.sinusoidal_table`.

    A new tensor of shape (seq_len, d_model), float16, bfloat16, float32 or float64, each rounded
    once from float64, built on the device it is asked for. In a compiled graph ``seq_len`` and
    ``start`` may be symbolic, and ``frequencies``, if any, are a tuple of floats.

    >>> sinusoidal_table(1, 4, start=1, base=100)
    tensor([[0.8415, 0.5403, 0.0998, 0.9950]])
    """
    seq_len = check.integer("seq_len", seq_len, at_least=0)
    spec = check.spec(d_model, base, spacing, frequencies)
    _check_options(layout, dtype)
    return _rows(seq_len, check.integer("start", start), spec, layout, dtype, _resolved(device))


def sinusoidal_encoding(
    positions: Tensor | ArrayLike, d_model: SupportsIndex, *, base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper", frequencies: Frequencies = None, layout: Layout = "interleaved",
    dtype: torch.dtype = torch.float32, device: Device = None,
) -> Tensor:  # fmt: skip
    """Encodings of any positions: `pe_lib.numpy.sinusoidal_encoding`.

    A new tensor of shape (…, d_model), with the axes of ``positions`` first. Differentiable in
    floating-point positions, to every order. Without ``device=`` it lies where they lie.

    The derivative of sin ωx and of cos ωx at 0, for ω = 1 and ω = 0.1:

    >>> x = torch.tensor(0.0, dtype=torch.float64)
    >>> torch.func.jacfwd(lambda x: sinusoidal_encoding(x, 4, base=100, dtype=x.dtype))(x)
    tensor([1.0000, -0.0000, 0.1000, -0.0000], dtype=torch.float64)
    """
    spec = check.spec(d_model, base, spacing, frequencies)
    _check_options(layout, dtype)
    return _encode(_as_positions("positions", positions, device), spec, layout, dtype)


def rotation_matrix(
    offset: Tensor | ArrayLike, d_model: SupportsIndex, *, base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper", frequencies: Frequencies = None, layout: Layout = "interleaved",
    dtype: torch.dtype = torch.float64, device: Device = None,
) -> Tensor:  # fmt: skip
    """T(Δx), dense, of shape (d_model, d_model): `pe_lib.numpy.rotation_matrix`.

    >>> rotation_matrix(1, 2)[0]
    tensor([ 0.5403, -0.8415], dtype=torch.float64)
    """
    spec = check.spec(d_model, base, spacing, frequencies)
    _check_options(layout, dtype)
    position = _as_positions("offset", offset, device)
    check.broadcast("offset", tuple(position.shape), (), "one number")
    sin, cos = _encode(position, spec, "split", dtype).chunk(2)
    above, below = (cos.diag(), (-sin).diag()), (sin.diag(), cos.diag())
    matrix = torch.cat((torch.hstack(above), torch.hstack(below)))
    if layout == "split":
        return matrix
    order = torch.arange(spec.d_model, device=matrix.device).view(2, -1).T.flatten()
    return matrix[order][:, order]


def rotate(
    x: Tensor, offset: Tensor | ArrayLike, *, base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper", frequencies: Frequencies = None, layout: Layout = "interleaved",
) -> Tensor:  # fmt: skip
    """x · T(Δx), row by row, without forming T: `pe_lib.numpy.rotate`.

    Differentiable in x and in a floating-point offset. Half types are computed in float32.

    >>> table = sinusoidal_table(10, 8)
    >>> torch.allclose(rotate(table[:-3], 3), table[3:])
    True
    """
    _check_floats("x", x, axes=1)
    spec = check.spec(x.shape[-1], base, spacing, frequencies, "the last axis of x")
    _check_options(layout, x.dtype)
    offset = _as_positions_of_rows("offset", offset, x)
    sin, cos = _encode(offset, spec, "split", WORKING[x.dtype]).chunk(2, dim=-1)
    return _rotate(x, _arrange(cos, -sin, layout), layout)


def similarity(
    offset: Tensor | ArrayLike, d_model: SupportsIndex, *, base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper", frequencies: Frequencies = None, device: Device = None,
) -> Tensor:  # fmt: skip
    """Cosine between PE(x) and PE(x + Δ), float64: `pe_lib.numpy.similarity`.

    >>> similarity([0, 1], 4, base=100)
    tensor([1.0000, 0.7677], dtype=torch.float64)
    """
    spec = check.spec(d_model, base, spacing, frequencies)
    offset = _as_positions("offset", offset, device)
    _, cos = _encode(offset, spec, "split", torch.float64).chunk(2, dim=-1)
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
    for name, rows in (("x", x), ("y", y), ("e", e), ("f", f), ("w_q", w_q), ("w_k", w_k)):
        _check_floats(name, rows, axes=2)
        _check_same_device(name, rows, x)
        if rows.dtype != x.dtype:
            raise TypeError(f"{name} must have x's dtype {x.dtype}, got {rows.dtype}")
    check.terms(*(tuple(rows.shape) for rows in (x, y, e, f, w_q, w_k)))
    (x, e), (y, f) = torch.broadcast_tensors(x, e), torch.broadcast_tensors(y, f)
    queries, keys = (x @ w_q, e @ w_q), (y @ w_k, f @ w_k)
    return AttentionTerms(*(q @ k.mT for q in queries for k in keys))


class _Holding(nn.Module):
    """A module that holds its rows for the positions 0 … max_len − 1, made at the first call on a
    device and in a dtype. They are no buffer: there is nothing to save, to move, to average, and
    nothing that a loader can leave uninitialised."""

    __call__: Callable[..., Tensor]

    def __init__(self, max_len: SupportsIndex, spec: Spec, layout: Layout) -> None:
        super().__init__()
        check.choice("layout", layout, check.LAYOUTS)
        self.spec, self.layout = spec, layout
        self.max_len = check.integer("max_len", max_len, at_least=0)
        self._held: dict[tuple[torch.device, torch.dtype], Rows] = {}
        self._outgrown: list[Tensor] = []  # what a captured CUDA graph may go on to read

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_held": {}, "_outgrown": []}

    def _make(self, seq_len: int, start: int, dtype: torch.dtype, device: torch.device) -> Rows:
        return (_rows(seq_len, start, self.spec, self.layout, dtype, device),)

    @staticmethod
    def _chosen(rows: Rows) -> Rows:
        """Of cos, sin and cos + i sin, the last, but for a compiler, which does not fuse them."""
        return rows[:2] if torch.compiler.is_compiling() else rows[2:] or rows

    def _rows_for(self, x: Tensor, offset: SupportsIndex, dtype: torch.dtype) -> Rows:
        """Rows for x, from ``offset`` on. Where sequences run on past the end, what is held
        doubles; rows further off are made for themselves. A compiled graph reads what it finds; an
        exported one, which must hold at any length, and a tensor without values make their rows."""
        seq_len, compiling = x.shape[-2], torch.compiler.is_compiling()
        start = offset if type(offset) is int else check.integer("offset", offset)
        held = self._held.get((x.device, dtype))
        length, end = self.max_len if held is None else held[0].shape[0], start + seq_len
        alone = type(x) is not Tensor if not compiling else _is_exporting() or held is None
        if alone or not 0 <= start <= length or (compiling and end > length):
            return self._chosen(self._make(seq_len, start, dtype, x.device))
        if held is None or end > length:
            if held is not None:
                length *= 2
                self._outgrown += held if x.is_cuda else ()
            with torch.inference_mode(False):  # or no derivative could be taken through it later
                held = self._make(max(end, length), 0, dtype, x.device)
            self._held[x.device, dtype] = held
        return tuple([rows[start:end] for rows in self._chosen(held)])

    def extra_repr(self) -> str:
        width, base, spacing, given = self.spec
        shown = f"{base=:g}, {spacing=}" if given is None else f"frequencies=({given[0]:g}, …)"
        return f"{width}, max_len={self.max_len}, {shown}, layout={self.layout!r}"


class SinusoidalPositionalEncoding(_Holding):
    """Add the sinusoidal encoding to embeddings: Vaswani et al. (2017), sections 3.4 and 3.5.

    The module has no parameter and no buffer. It holds the rows of ``max_len`` positions, made at
    the first call for each device and dtype of x, rounded once from float64; sequences that run on
    past them double what is held. A graph of ``torch.compile`` reads what is held by then, or else
    computes its rows.

    ``dropout``, from 0 to 1, is the rate after the sum; ``scale_input`` multiplies the embeddings
    by √d_model first, as the paper does; the others are as for `sinusoidal_table`.

    >>> encode = SinusoidalPositionalEncoding(8, max_len=4)
    >>> encode(torch.zeros(2, 16, 8)).shape
    torch.Size([2, 16, 8])
    """

    def __init__(
        self, d_model: SupportsIndex, max_len: SupportsIndex = 512, *, dropout: SupportsFloat = 0.0,
        base: SupportsFloat = 10_000.0, spacing: Spacing = "paper", frequencies: Frequencies = None,
        layout: Layout = "interleaved", scale_input: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(max_len, check.spec(d_model, base, spacing, frequencies), layout)
        self.scale = math.sqrt(self.spec.d_model) if scale_input else 1.0
        if not 0 <= (rate := check.real("dropout", dropout)) <= 1:
            raise ValueError(f"dropout must be a number from 0 to 1, got {rate!r}")
        self.dropout = nn.Dropout(rate)

    def forward(
        self, x: Tensor, *, positions: Tensor | None = None, offset: SupportsIndex = 0
    ) -> Tensor:
        """Encode ``x`` of shape (batch, seq, d_model) at positions offset … offset + seq − 1.

        ``positions``, integers or floats that broadcast to (batch, seq), take the place of those.
        They are encoded, not looked up, so no position is out of range. The result has x's dtype.
        """
        _check_floats("x", x, axes=2)
        check.row_width("x", x.shape[-1], self.spec.d_model)
        if positions is None:
            (rows,) = self._rows_for(x, offset, x.dtype)
        else:
            positions = _as_positions_of_rows("positions", positions, x, offset)
            rows = _encode(positions, self.spec, self.layout, x.dtype)
        total = torch.add(rows, x, alpha=self.scale)
        return self.dropout(total) if self.dropout.p else total

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, scale_input={self.scale != 1.0}"


class RotaryPositionalEncoding(_Holding):
    """Rotate queries or keys by their position: Su et al. (2021), RoFormer.

    The sense of turning is RoFormer's and Llama's, q · T(−position), so that a score depends on
    positions through their difference alone. The module has no parameter and no buffer. It holds
    the cosines and sines of ``max_len`` positions, so that a step of decoding costs two or three
    kernels; sequences that run on past them double what is held. One module may serve all layers.

    ``frequencies=`` takes one for each pair that is turned, in place of those of the base (others'
    rope_theta): linear, NTK-aware, YaRN and Llama 3 scaling are other frequencies. ``rotary_dim``
    is the number of entries, from the first, that are turned; all of them by default.
    ``layout="interleaved"`` pairs neighbouring entries (RoFormer, and Meta's own code of Llama),
    ``"split"`` pairs entry i with entry i + rotary_dim/2 (GPT-NeoX, and Llama in transformers).

    Moving query and key on by the same distance leaves their score as it was:

    >>> rotary, (q, k) = RotaryPositionalEncoding(8), torch.randn(2, 1, 4, 10, 8)
    >>> near, far = (rotary(q, offset=n) @ rotary(k, offset=n).mT for n in (3, 1003))
    >>> torch.allclose(near, far, atol=1e-4)  # q and k are (batch, heads, seq, head_dim)
    True

    A cache of an attention layer stores keys turned, each by its own position; the query of the
    next step starts where the cache ends:

    >>> cache = torch.cat((rotary(k[:, :, :9]), rotary(k[:, :, 9:], offset=9)), dim=-2)
    >>> step, whole = rotary(q[:, :, 9:], offset=9) @ cache.mT, rotary(q) @ cache.mT
    >>> torch.allclose(step, whole[:, :, 9:], atol=1e-4)
    True

    Positions of your own, as of packed sequences, become tables once for all layers, q and k:

    >>> tables = rotary.tables(torch.tensor([0, 1, 2, 3, 0, 1, 2, 0, 1, 2]))
    >>> rotary(q, tables=tables).shape == rotary(k, tables=tables).shape == q.shape
    True
    """

    def __init__(
        self, head_dim: SupportsIndex, max_len: SupportsIndex = 2048, *,
        base: SupportsFloat = 10_000.0, frequencies: Frequencies = None,
        rotary_dim: SupportsIndex | None = None, layout: Layout = "interleaved",
    ) -> None:  # fmt: skip
        width = check.even("head_dim", head_dim)
        turned = width if rotary_dim is None else check.even("rotary_dim", rotary_dim)
        if turned > width:
            raise ValueError(f"rotary_dim must be at most head_dim = {width}, got {turned}")
        super().__init__(max_len, check.spec(turned, base, "paper", frequencies), layout)
        self.head_dim = width

    def forward(
        self, x: Tensor, *, positions: Tensor | None = None, offset: SupportsIndex = 0,
        tables: Tables | None = None,
    ) -> Tensor:  # fmt: skip
        """Rotate ``x`` of shape (…, seq, head_dim) at positions offset … offset + seq − 1.

        ``positions`` that broadcast to (…, seq) take the place of those: transformers' position_ids
        as ``ids[:, None]``. So do `tables` that were made of them, once for many calls. Half types
        are computed in float32.
        """
        _check_floats("x", x, axes=2)
        check.row_width("x", x.shape[-1], self.head_dim, "head_dim")
        if tables is not None:
            if positions is not None or offset != 0:
                raise ValueError("positions and offset must be left out where tables are given")
            self._check_tables(tables, x)
            factors: Rows = tables
        elif positions is None:
            factors = self._rows_for(x, offset, WORKING[x.dtype])
        else:
            positions = _as_positions_of_rows("positions", positions, x, offset)
            factors = self.tables(positions, dtype=WORKING[x.dtype])
        width = self.spec.d_model
        if width == self.head_dim:
            return _rotate(x, factors, self.layout)
        return torch.cat((_rotate(x[..., :width], factors, self.layout), x[..., width:]), dim=-1)

    def _check_tables(self, tables: Tables, x: Tensor) -> None:
        needed = WORKING[x.dtype], self.spec.d_model // (2 if self.layout == "interleaved" else 1)
        if (found := [(each.dtype, each.shape[-1]) for each in tables]) != [needed, needed]:
            raise ValueError(f"tables must be two of dtype and last axis {needed}, got {found}")
        if (rows := tables[0].shape[:-1]) != x.shape[-2:-1]:
            check.broadcast("tables", tuple(rows), tuple(x.shape[:-1]), "x.shape[:-1]")

    def tables(self, positions: Tensor, *, dtype: torch.dtype = torch.float32) -> Tables:
        """Cosines and sines of any positions, on their device, for `forward`.

        They have one more axis than ``positions``, and are arranged for the layout: in
        ``"interleaved"`` one entry a pair; in ``"split"`` one for each entry of x that is turned,
        the sines with the sign with which its partner is added, which those of transformers lack.
        ``dtype`` is float64 for x of float64, and else float32. Both may be scaled, as in YaRN.
        """
        rows = _encode(_as_positions("positions", positions, None), self.spec, "split", dtype)
        sin, cos = rows.chunk(2, dim=-1)
        return _arrange(cos, sin, self.layout)

    def _make(self, seq_len: int, start: int, dtype: torch.dtype, device: torch.device) -> Rows:
        sin, cos = _rows(seq_len, start, self.spec, "split", dtype, device).chunk(2, dim=-1)
        if self.layout == "split":
            return _arrange(cos, sin, self.layout)
        pairs = torch.stack((cos, sin), dim=-1)
        return (*pairs.unbind(-1), torch.view_as_complex(pairs))

    def extra_repr(self) -> str:
        return f"{self.head_dim}, rotary_dim={super().extra_repr()}"


def _constants(spec: Spec, device: torch.device) -> Constants:
    """ω; the words of ω/2π, ``high`` in int64 and ``low``, which counts 2⁻⁶⁴ of a turn as well; the
    marks' nearest cos and sin, and what they lack. All but high are float64, or float32 where there
    is no float64. On the CPU they are views of NumPy's. A device keeps them, and ``torch.compile``
    cannot look into the arithmetic that makes them: both get copies from an operator."""
    if device.type == "cpu" and not torch.compiler.is_compiling():
        return _host_constants(spec)
    return _copied_constants(*spec, device)  # type: ignore[no-any-return]


def _host_constants(spec: Spec) -> Constants:
    (omega, high, low), (near, lost) = _exact.phase(spec), _exact.marks()
    marks = np.stack((near.real, -near.imag, lost.real, -lost.imag))
    return tuple(map(torch.from_numpy, (omega, high, low * 2.0**-64, marks)))  # type: ignore[return-value]


@lru_cache(maxsize=32)
def _device_constants(spec: Spec, device: torch.device) -> Constants:
    with torch.inference_mode(False):
        omega, high, low, marks = _host_constants(spec)
        moved = (part.to(device, _real(device)) for part in (omega, low, marks))
        return next(moved), high.to(device), *moved  # type: ignore[return-value]


@torch.library.custom_op(
    "pe_lib::constants", mutates_args=(), schema=f"{CONSTANTS} -> (Tensor, Tensor, Tensor, Tensor)"
)
def _copied_constants(
    d_model: int, base: float, spacing: Spacing, given: list[float] | None, device: torch.device
) -> Constants:
    spec = Spec(d_model, base, spacing, None if given is None else tuple(given))
    return tuple(part.clone() for part in _device_constants(spec, device))  # type: ignore[return-value]


@_copied_constants.register_fake
def _(d_model: int, base: float, spacing: str, given: object, device: torch.device) -> Constants:
    omega = torch.empty(d_model // 2, dtype=_real(device), device=device)
    high, marks = omega.to(torch.int64), omega.new_empty(4, _exact.MARKS)
    return omega, high, torch.empty_like(omega), marks


def _real(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type in WITHOUT_FLOAT64 else torch.float64


def _turn(positions: Tensor, spec: Spec) -> tuple[Tensor, Tensor]:
    """cos ω_ix and sin ω_ix, with one more axis than the positions: `pe_lib.numpy._turn`. The part
    of a position after the point carries its derivatives, to every order."""
    omega, high, low, marks = _constants(spec, positions.device)
    positions = positions.unsqueeze(-1)
    real = positions.to(omega.dtype)
    whole = real.detach().round()
    integer = (whole if positions.is_floating_point() else positions).to(torch.int64)
    phase = integer * high + (whole * low).round().to(torch.int64)  # wraps at one turn
    mark = (phase + 2**53) >> 54
    angle = (phase - (mark << 54)).to(omega.dtype) * (2 * math.pi * 2.0**-64)

    square = angle * angle
    versine = square * (0.5 - square / 24)  # 1 − cos(angle)
    sine = angle * (1 - square * (1 / 6 - square / 120))
    mark = mark & (_exact.MARKS - 1)
    near_cos, near_sin, lost_cos, lost_sin = (row[mark] for row in marks)
    cos = near_cos + (lost_cos - (near_cos * versine + near_sin * sine))
    sin = near_sin + (lost_sin - (near_sin * versine - near_cos * sine))
    if positions.is_floating_point():
        part = (real - whole) * omega
        c, s = part.cos(), part.sin()
        cos, sin = cos * c - sin * s, sin * c + cos * s
    return cos, sin


def _encode(positions: Tensor, spec: Spec, layout: Layout, dtype: torch.dtype) -> Tensor:
    """PE(x) where the positions lie. Integers that lie close together are looked up in their table;
    others are computed, in parts unless a compiler fuses it all."""
    if (dense := _dense_range(positions)) is not None:
        first, seq_len = dense
        return _rows(seq_len, first, spec, layout, dtype, positions.device)[positions - first]
    chunk = CHUNK_ON_CPU if positions.device.type == "cpu" else CHUNK
    size = max(1, 2 * chunk // spec.d_model)
    if torch.compiler.is_compiling() or positions.numel() <= size:
        return _join(*_turn(positions, spec), layout, dtype)
    parts = [_encode(part, spec, layout, dtype) for part in positions.reshape(-1).split(size)]
    return torch.cat(parts).view(*positions.shape, spec.d_model)


def _dense_range(positions: Tensor) -> tuple[int, int] | None:
    """`pe_lib.numpy._dense_range`, where looking at values is free, and no tracer forbids it."""
    looks = positions.device.type == "cpu" and not torch.compiler.is_compiling()
    if positions.is_floating_point() or not looks or positions.numel() < BLOCK:
        return None
    try:
        first, last = (int(end) for end in positions.aminmax())
    except RuntimeError:  # there are no values under vmap, nor in a FakeTensor
        return None
    return (first, last - first + 1) if last - first < positions.numel() else None


def _rows(
    seq_len: int, start: int, spec: Spec, layout: Layout, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """PE(start + 64a + b) = PE(start + 64a)·T(b): by NumPy on the CPU, on a device in few kernels,
    CHUNK pairs at a time; a graph computes each row. bfloat16, which NumPy lacks, is rounded from
    float64, 64 rows at a time."""
    if torch.compiler.is_compiling():
        return _encode(torch.arange(start, start + seq_len, device=device), spec, layout, dtype)
    check.start(start, seq_len)
    if device.type != "cpu" and _real(device) == torch.float64:
        return _blocks(seq_len, start, spec, layout, dtype, device)
    if dtype != torch.bfloat16:
        name, threads = str(dtype).removeprefix("torch."), torch.get_num_threads()
        table = reference._table(seq_len, start, spec, layout, name, threads)
        return torch.from_numpy(table).to(device)
    rows = torch.empty(seq_len, spec.d_model, dtype=dtype, device="cpu")
    for part, first in zip(rows.split(BLOCK), range(start, start + seq_len, BLOCK), strict=False):
        exact = reference._table(len(part), first, spec, layout, np.float64)
        part.copy_(_round(torch.from_numpy(exact), dtype))
    return rows.to(device)


def _blocks(
    seq_len: int, start: int, spec: Spec, layout: Layout, dtype: torch.dtype, device: torch.device
) -> Tensor:
    c, s = _turn(torch.arange(BLOCK, device=device), spec)
    blocks = start + BLOCK * torch.arange(-(-seq_len // BLOCK), device=device)
    parts = []
    for part in blocks.split(max(1, 2 * CHUNK // (BLOCK * spec.d_model))):
        cos, sin = (each.unsqueeze(1) for each in _turn(part, spec))
        parts.append(_join(cos * c - sin * s, sin * c + cos * s, layout, dtype).flatten(0, 1))
    return (torch.cat(parts) if len(parts) > 1 else parts[0])[:seq_len]


def _rotate(x: Tensor, factors: Rows, layout: Layout) -> Tensor:
    """Each pair a + ib times cos + i sin: as complex numbers in one pass over memory, or each entry
    with its partner in three. ``factors`` are (cos, sin) of `_arrange`, or cos + i sin. On a CPU
    what takes several passes is done in parts."""
    compiling, pairs_up = torch.compiler.is_compiling(), layout == "interleaved"
    if not compiling and x.numel() > PART and x.device.type == "cpu":
        seq_len, one_pass = x.shape[-2], pairs_up and x.dtype not in HALF_DTYPES
        rows = max(1, PART * seq_len // x.numel())
        if rows < seq_len and not one_pass:
            wide = [f.broadcast_to(*f.shape[:-2], seq_len, f.shape[-1]) for f in factors]
            parts = zip(*(each.split(rows, -2) for each in (x, *wide)), strict=True)
            return torch.cat([_rotate(part, tuple(fs), layout) for part, *fs in parts], dim=-2)
    working = x.to(WORKING[x.dtype])
    if not pairs_up:
        cos, sin = factors
        partners = working.roll(x.shape[-1] // 2, -1)
        return torch.addcmul(working * cos, partners, sin).to(x.dtype)
    if compiling:  # which does not fuse complex numbers
        cos, sin = factors
        a, b = working[..., 0::2], working[..., 1::2]
        return _join(b * cos + a * sin, a * cos - b * sin, layout, x.dtype)
    pairs = working.unflatten(-1, (-1, 2))
    try:
        pairs = torch.view_as_complex(pairs)
    except RuntimeError:  # a complex number cannot start between two real ones
        pairs = torch.view_as_complex(pairs.clone(memory_format=torch.contiguous_format))
    turned = pairs * (factors[0] if len(factors) == 1 else torch.complex(*factors))
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def _arrange(cos: Tensor, sin: Tensor, layout: Layout) -> Tables:
    if layout == "interleaved":
        return cos, sin
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def _join(cos: Tensor, sin: Tensor, layout: Layout, dtype: torch.dtype) -> Tensor:
    rounded = _round(sin, dtype), _round(cos, dtype)
    return torch.cat(rounded, -1) if layout == "split" else torch.stack(rounded, -1).flatten(-2)


def _round(x: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 to ``dtype`` in one rounding, where torch takes two, by way of float32: the half
    type's digits are split off first (Veltkamp, 1968). Below 2⁻¹⁴ a float16 has fewer."""
    if dtype in HALF_DTYPES and x.dtype == torch.float64:
        shifted = x * (2.0 ** (45 if dtype == torch.bfloat16 else 42) + 1)
        x = shifted - (shifted - x)
    return x.to(dtype)


def _resolved(device: Device) -> torch.device:
    """The device that is meant, with its index: "cuda" may be "cuda:0", None the default device."""
    return torch.empty(0, device=device).device


def _as_positions(name: str, values: Tensor | ArrayLike, device: Device) -> Tensor:
    """Real numbers as a tensor, int64 or floating; checked where looking at them is free."""
    if not isinstance(values, Tensor):
        device = _resolved(device)
        if torch.compiler.is_compiling():
            return torch.as_tensor(values, dtype=_real(device), device=device)
        array = reference._as_positions(name, values)
        dtype = torch.int64 if array.dtype.kind == "i" else _real(device)
        if array.ndim == 0:  # filled in on the device: a copy from the host would wait for it
            return torch.full((), array.item(), dtype=dtype, device=device)
        return torch.as_tensor(array, dtype=dtype, device=device)
    if values.dtype.is_complex or values.dtype == torch.bool or values.layout != torch.strided:
        got = f"dtype {values.dtype}, layout {values.layout}"
        raise TypeError(f"{name} must be real numbers in a dense tensor, got {got}")
    if not values.dtype.is_floating_point:
        values = values.to(torch.int64)
    elif values.device.type == "cpu" and not torch.compiler.is_compiling():
        with suppress(RuntimeError):  # there are no values under vmap, nor in a FakeTensor
            good = (values >= -(2.0**63)) & (values < 2.0**63)
            if not good.all():
                bad = values[~good].flatten()[0].item()
                raise ValueError(f"{name} must be finite and fit 64 bits, got {bad}")
    return values if device is None else values.to(device)


def _as_positions_of_rows(
    name: str, values: Tensor | ArrayLike, x: Tensor, offset: SupportsIndex = 0
) -> Tensor:
    """One position for each row of x, on its device, given in place of an offset."""
    if check.integer("offset", offset) != 0:
        raise ValueError(f"offset must be 0 where positions are given, got {offset!r}")
    on_host = not isinstance(values, Tensor) or (values.ndim == 0 and values.device.type == "cpu")
    positions = _as_positions(name, values, x.device if on_host else None)
    _check_same_device(name, positions, x)
    check.broadcast(name, tuple(positions.shape), tuple(x.shape[:-1]), "x.shape[:-1]")
    return positions


def _check_options(layout: Layout, dtype: torch.dtype) -> None:
    check.choice("layout", layout, check.LAYOUTS)
    if dtype not in FLOAT_DTYPES:
        raise TypeError(f"dtype must be {FLOATS}, got {dtype!r}")


def _check_floats(name: str, x: Tensor, *, axes: int) -> None:
    if not isinstance(x, Tensor) or x.dtype not in FLOAT_DTYPES:
        got = x.dtype if isinstance(x, Tensor) else repr(x)
        raise TypeError(f"{name} must be a tensor of {FLOATS}, got {got}")
    if x.layout != torch.strided or x.is_nested:
        kind = "nested" if x.is_nested else x.layout
        raise TypeError(f"{name} must be a dense tensor, got layout {kind}")
    if x.ndim < axes:
        check.axes(name, tuple(x.shape), at_least=axes)


def _check_same_device(name: str, values: Tensor, x: Tensor) -> None:
    if (ours := values.device) != x.device:
        raise ValueError(f"{name} and x must be on one device, got {ours} and {x.device}")
