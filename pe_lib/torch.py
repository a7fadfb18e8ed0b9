"""Sinusoidal positional encoding in PyTorch: `pe_lib.numpy` on any device, and two modules.

In a model, use one of the modules: `RotaryPositionalEncoding` rotates queries and keys (RoPE), and
`SinusoidalPositionalEncoding` adds a table to the embeddings.

The functions have the names, the conventions, the algorithm and the accuracy of `pe_lib.numpy`.
Three things differ: they take ``device=`` beside ``dtype=``, they know bfloat16 as well as float16,
and PyTorch's own number of threads takes the place of ``workers=``. A half type is rounded from the
float32 entry. The tests compare the CPU with exact values; those marked ``cuda`` do the same on an
NVIDIA GPU, and need one.

The accuracy needs float64. On a device without it (MPS), entries are right to some ulp of float32.
There `frequencies` and `similarity` are float32 as well, and ``dtype=torch.float64`` is refused. It
is the default of `rotation_matrix`, which needs another one there.

Values are checked where this does not make the program wait for a device: Python numbers, NumPy
arrays, and CPU tensors outside a compiled graph. Elsewhere a position that is not finite gives NaN.

The angles are computed as in `pe_lib.numpy`, in int64 and float64 on the device itself. This works
in compiled graphs and in ``torch.func`` transforms as well, derivatives included. A compiler may
fuse products with sums. Tables on the CPU are built by NumPy, which is faster.

Not supported: ``torch.fx.symbolic_trace`` and ``torch.jit.trace`` (use ``torch.export``), DTensor,
and sparse, nested and quantised tensors.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, SupportsFloat, SupportsIndex

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from pe_lib import _checks as check
from pe_lib._arguments_torch import (
    Device,
    GivenFrequencies,
    as_offset_of_rows,
    as_positions,
    check_device_has,
    check_floats,
    check_left_out_beside_tables,
    check_options,
    check_same_device,
    resolved,
)
from pe_lib._axes_torch import beside, beside_heads, fit_heads
from pe_lib._cache_torch import CachedPositions
from pe_lib._checks import Layout, Spacing
from pe_lib._constants_torch import constants_on
from pe_lib._dtypes_torch import COMPLEX_DTYPE, COMPUTE_DTYPE, real_dtype
from pe_lib._encodings_torch import contiguous_table, cos_sin_of_pairs, encode
from pe_lib._rope import RotaryFrequencies
from pe_lib._rope_torch import convert_layout, rotary_frequencies
from pe_lib._rotation_torch import as_factors, rotate_pairs
from pe_lib._rows_torch import Encodings, Factors
from pe_lib.numpy import AttentionTerms

__all__ = [
    "AttentionTerms",
    "RotaryFrequencies",
    "RotaryPositionalEncoding",
    "SinusoidalPositionalEncoding",
    "attention_terms",
    "convert_layout",
    "frequencies",
    "rotary_frequencies",
    "rotate",
    "rotation_matrix",
    "similarity",
    "sinusoidal_encoding",
    "sinusoidal_table",
]


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
    offset: Tensor | ArrayLike,
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
    position = as_positions("offset", offset, device)
    check_device_has(dtype, position.device)
    check.one_number("offset", tuple(position.shape))
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
    offset: Tensor | ArrayLike,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: GivenFrequencies = None,
    layout: Layout = "interleaved",
) -> Tensor:
    """x · T(Δx), row by row, without forming T: `pe_lib.numpy.rotate`.

    Differentiable in x and in a floating-point offset. Half types are computed in float32.

    >>> table = sinusoidal_table(10, 8)
    >>> torch.allclose(rotate(table[:-3], 3), table[3:])
    True
    """
    check_floats("x", x, axes=1)
    config = check.frequency_config(x.shape[-1], base, spacing, frequencies, "the last axis of x")
    check_options(layout, x.dtype)
    offset = as_offset_of_rows(offset, x)
    sin, cos = encode(offset, config, "split", COMPUTE_DTYPE[x.dtype]).chunk(2, dim=-1)
    return rotate_pairs(x, as_factors(cos, -sin, layout))


def similarity(
    offset: Tensor | ArrayLike,
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
    offset = as_positions("offset", offset, device)
    _, cos = encode(offset, config, "split", real_dtype(offset.device)).chunk(2, dim=-1)
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


# The modules


class SinusoidalPositionalEncoding(CachedPositions[Encodings]):
    """Add the sinusoidal encoding to embeddings: Vaswani et al. (2017), sections 3.4 and 3.5.

    The module has no parameter and no buffer. It caches the rows of up to ``max_len`` positions,
    made as they are needed for each device and dtype of x. Sequences may run on past ``max_len``:
    the cache doubles then. A call that starts further on computes its rows. A graph of
    ``torch.compile`` reads the cache if that holds all rows of x, and computes the rows if not.
    When the cache has grown, the next call may compile once more.

    The arguments are fixed when the module is made; for others, make a new one. Only the attribute
    ``dropout``, a module like ``nn.Dropout``, may change.

    ``dropout``, from 0 to 1, is the rate after the sum. ``scale_input`` multiplies the embeddings
    by √d_model first, as the paper does. ``seq_dim`` names the axis of x that counts positions: the
    default, −2, assumes (batch, seq, d_model), and ``seq_dim=0`` is for (seq, batch, d_model). The
    other arguments are those of `sinusoidal_table`.

    >>> encode = SinusoidalPositionalEncoding(8, max_len=4)
    >>> encode(torch.zeros(2, 16, 8)).shape
    torch.Size([2, 16, 8])
    """

    FIXED = CachedPositions.FIXED | {"d_model", "spacing", "scale_input", "scale"}

    def __init__(
        self,
        d_model: SupportsIndex,
        max_len: SupportsIndex = 512,
        *,
        dropout: SupportsFloat = 0.0,
        base: SupportsFloat = 10_000.0,
        spacing: Spacing = "paper",
        frequencies: GivenFrequencies = None,
        layout: Layout = "interleaved",
        scale_input: bool = False,
        seq_dim: SupportsIndex = -2,
    ) -> None:
        config = check.frequency_config(d_model, base, spacing, frequencies)
        super().__init__(config, max_len, layout, seq_dim)
        scales = check.true_or_false("scale_input", scale_input)
        self.scale = math.sqrt(config.d_model) if scales else 1.0
        rate = check.real("dropout", dropout)
        if not 0 <= rate <= 1:
            raise ValueError(f"dropout must be a number from 0 to 1, got {rate!r}")
        self.dropout: nn.Module = nn.Dropout(rate)
        self._is_made = True

    def forward(
        self, x: Tensor, *, positions: Tensor | None = None, offset: SupportsIndex | Tensor = 0
    ) -> Tensor:
        """Encode ``x`` of shape (batch, seq, d_model) at positions offset … offset + seq − 1.

        ``offset`` is an integer, or an integer tensor of shape (batch,): one for each row of the
        batch. ``positions``, integers or floats of shape (seq,) or (batch, seq), take the place of
        an offset. Every position that fits 64 bits is in range; on a GPU and in a compiled graph,
        where values are not looked at, offsets of rows that run on past 2⁶³ − 1 wrap around to
        −2⁶³. The result has the shape and dtype of x.

        Raises `ValueError` for a last axis of x that is not d_model, for positions or offsets of
        another shape, and for positions beside an offset; `TypeError` for another dtype.
        """
        check_floats("x", x, axes=2)
        check.row_width("x", x.shape[-1], self.config.d_model)
        encodings = self._rows_for(x, self._sequence_axis(x), positions, offset, x.dtype)
        total = torch.add(encodings.rows, x, alpha=self.scale)
        if (
            getattr(self.dropout, "p", None) == 0
        ):  # the call would take a quarter of a short sum's time
            return total
        dropped: Tensor = self.dropout(total)
        return dropped

    def _compute_from(
        self, seq_len: int, start: int, dtype: torch.dtype, device: torch.device
    ) -> Encodings:
        return Encodings(contiguous_table(seq_len, start, self.config, self.layout, dtype, device))

    def _compute_at(self, positions: Tensor, dtype: torch.dtype) -> Encodings:
        return Encodings(encode(positions, self.config, self.layout, dtype))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, scale_input={self.scale != 1.0}"


class RotarySettings(NamedTuple):
    """What the cosines and sines of a rotation depend on, besides the positions."""

    rotary_dim: int
    base: float
    frequencies: tuple[float, ...] | None
    attention_factor: float
    layout: Layout
    pair_axes: tuple[int, ...] | None


class RotaryTables(NamedTuple):
    """What `RotaryPositionalEncoding.tables` makes of positions, for layers of these settings."""

    settings: RotarySettings
    factors: Factors  # their first axes are those of the positions
    factors_beside_heads: Factors | None  # the same for x with heads: no call has to reshape them
    axis: int  # that which counts positions in x with heads


class RotaryPositionalEncoding(CachedPositions[Factors]):
    """Rotate queries or keys by their position: Su et al. (2021), RoFormer.

    The sense of turning is that of RoFormer and Llama, q · T(−position), so a score depends on
    positions through their difference alone. The module has no parameter and no buffer. It caches
    the cosines and sines of up to ``max_len`` positions, made as they are needed. Sequences may run
    on past ``max_len``: the cache doubles then. A call that starts further on computes its own. One
    module may serve all layers.

    ``frequencies=`` takes one frequency for each pair that is turned, in place of those of the base
    (rope_theta in other libraries): linear, NTK-aware, YaRN and Llama 3 scaling are other
    frequencies. ``attention_factor`` multiplies cosines and sines, and so queries and keys, as YaRN
    and LongRoPE need it: without their factor the scores of such a model are too small.
    ``rotary_dim`` is the number of entries, from the first, that are turned; all by default.
    ``layout="interleaved"`` pairs neighbouring entries (RoFormer, and Meta's own code of Llama),
    ``"split"`` pairs entry i with entry i + rotary_dim/2 (GPT-NeoX, and Llama in transformers).

    ``seq_dim`` names the axis of x that counts positions. The default, −2, assumes
    (batch, heads, seq, head_dim); ``seq_dim=-3`` is for (batch, seq, heads, head_dim).

    ``pair_axes`` is for positions of several axes, such as those of an image or a video: one
    integer for each pair says which axis of the positions turns it. Then ``positions`` has one more
    axis, the first, of that many. Axial RoPE turns half of the pairs by the row and half by the
    column of a patch. Both halves need the same ``frequencies``, those of a head of half the width,
    given twice: without them, the rows would get the fast pairs and the columns the slow ones.
    Qwen2-VL's M-RoPE with sections (16, 24, 24) of time, height and width is
    ``pair_axes=[0] * 16 + [1] * 24 + [2] * 24``. A call without ``positions`` takes the index of
    the token along every axis. M-RoPE means this for text; patches of an image need ``positions``.

    The arguments are fixed when the module is made; for others, make a new one.

    Moving query and key on by the same distance leaves their score as it was:

    >>> rotary, (q, k) = RotaryPositionalEncoding(8), torch.randn(2, 1, 4, 10, 8)
    >>> def score(n):  # q and k are (batch, heads, seq, head_dim)
    ...     return rotary(q, offset=n) @ rotary(k, offset=n).mT
    >>> torch.allclose(score(3), score(1003), atol=1e-4)
    True

    A cache of an attention layer stores keys turned, each by its own position; the query of the
    next step starts where the cache ends:

    >>> first, last = rotary(k[:, :, :9]), rotary(k[:, :, 9:], offset=9)
    >>> cache = torch.cat((first, last), dim=-2)
    >>> step, whole = rotary(q[:, :, 9:], offset=9) @ cache.mT, rotary(q) @ cache.mT
    >>> torch.allclose(step, whole[:, :, 9:], atol=1e-4)
    True

    Positions of your own, as of packed sequences, become tables once for all layers, q and k:

    >>> tables = rotary.tables(torch.tensor([0, 1, 2, 3, 0, 1, 2, 0, 1, 2]))
    >>> rotary(q, tables=tables).shape == rotary(k, tables=tables).shape == q.shape
    True
    """

    FIXED = CachedPositions.FIXED | {"head_dim", "rotary_dim", "attention_factor", "pair_axes"}

    def __init__(
        self,
        head_dim: SupportsIndex,
        max_len: SupportsIndex = 2048,
        *,
        base: SupportsFloat = 10_000.0,
        frequencies: GivenFrequencies = None,
        attention_factor: SupportsFloat = 1.0,
        rotary_dim: SupportsIndex | None = None,
        layout: Layout = "interleaved",
        seq_dim: SupportsIndex = -2,
        pair_axes: Sequence[int] | None = None,
    ) -> None:
        width = check.even("head_dim", head_dim)
        turned = width if rotary_dim is None else check.even("rotary_dim", rotary_dim)
        if turned > width:
            raise ValueError(f"rotary_dim must be at most head_dim = {width}, got {turned}")
        config = check.frequency_config(turned, base, "paper", frequencies, "rotary_dim")
        super().__init__(config, max_len, layout, seq_dim)
        self.head_dim = width
        self.attention_factor = check.real("attention_factor", attention_factor)
        if self.attention_factor <= 0:
            raise ValueError(f"attention_factor must be positive, got {self.attention_factor!r}")
        self.pair_axes = None if pair_axes is None else check.pair_axes(pair_axes, turned // 2)
        if self.pair_axes is not None:
            self._before_positions = (max(self.pair_axes) + 1,)
        self._settings = RotarySettings(
            rotary_dim=turned,
            base=config.base,
            frequencies=config.frequencies,
            attention_factor=self.attention_factor,
            layout=layout,
            pair_axes=self.pair_axes,
        )
        self._is_made = True

    def forward(
        self,
        x: Tensor,
        *,
        positions: Tensor | None = None,
        offset: SupportsIndex | Tensor = 0,
        tables: RotaryTables | None = None,
    ) -> Tensor:
        """Rotate ``x`` of shape (…, seq, head_dim) at positions offset … offset + seq − 1.

        ``offset`` is an integer, or an integer tensor of shape (batch,): one for each row of the
        batch, as when prompts of different lengths are continued. On a GPU and in a compiled graph,
        where values are not looked at, offsets of rows that run on past 2⁶³ − 1 wrap around to
        −2⁶³.

        Instead of an offset you may pass ``positions``, integers or floats of shape (seq,) or
        (batch, seq), like the position_ids of transformers. Other shapes must broadcast to
        ``x.shape[:-1]`` and have as many axes, and their axis of the sequence must have its full
        size. Instead of positions you may pass ``tables``, which `tables` has made of them once for
        many calls.

        With ``pair_axes`` the positions have one more axis, the first. Without positions every axis
        counts the tokens, which is right for text, and wrong for an image or a video.

        The result has the shape and dtype of x. Half types are computed in float32.

        Raises `ValueError` for a last axis of x that is not head_dim, for positions, offsets or
        tables of another shape, for two of them at once, and for tables that a module of other
        settings has made; `TypeError` for another dtype, and for tables that this class has not
        made.
        """
        check_floats("x", x, axes=2)
        check.row_width("x", x.shape[-1], self.head_dim, "head_dim")
        axis = self._sequence_axis(x)
        if tables is None:
            factors = self._rows_for(x, axis, positions, offset, COMPUTE_DTYPE[x.dtype])
        else:
            check_left_out_beside_tables(positions, offset)
            factors = self._checked_factors(tables, x, axis)
        width = self.config.d_model
        if width == self.head_dim:
            return rotate_pairs(x, factors, axis)
        turned = rotate_pairs(x[..., :width], factors, axis)
        return torch.cat((turned, x[..., width:]), dim=-1)

    def tables(self, positions: Tensor, *, dtype: torch.dtype = torch.float32) -> RotaryTables:
        """Cosines and sines of ``positions``, on their device, for many calls of `forward`.

        ``positions`` are of a shape that `forward` takes. ``dtype`` is float64 for x of float64,
        and float32 for any other. The attention factor is included. Tables made in inference mode
        cannot be used in training: PyTorch refuses to. The result has a type of
        its own, which knows the settings of this module, such as its base. So cosines and sines
        of another library, or of a layer with another base, which have the same shape, cannot be
        passed by mistake.
        """
        if dtype not in (torch.float32, torch.float64):
            raise TypeError(f"dtype must be torch.float32 or torch.float64, got {dtype!r}")
        positions = as_positions("positions", positions, None)
        check_device_has(dtype, positions.device)
        factors = self._rows_at_positions(positions, dtype)
        axis = self.seq_dim if self.seq_dim < 0 else self.seq_dim - 4  # x with heads has four axes
        return RotaryTables(
            settings=self._settings,
            factors=factors,
            factors_beside_heads=beside_heads(factors, axis),
            axis=axis,
        )

    def extra_repr(self) -> str:
        text = f"{self.head_dim}, rotary_dim={super().extra_repr()}"
        if self.attention_factor != 1:
            text += f", attention_factor={self.attention_factor:g}"
        return text if self.pair_axes is None else f"{text}, pair_axes={self.pair_axes}"

    def _rows_at_positions(self, positions: Tensor, dtype: torch.dtype) -> Factors:
        if self.pair_axes is None:
            return self._look_up_or_compute(positions, dtype)
        return self._factors_of_axes(self._axes_of(positions), dtype)

    def _axes_of(self, positions: Tensor) -> tuple[Tensor, ...]:
        """The positions along each of the axes that `pair_axes` names."""
        (count,) = self._before_positions
        if positions.ndim < 2 or positions.shape[0] != count:
            allowed = f"(axes, seq) or (axes, batch, seq) with {count} axes, as pair_axes says"
            raise ValueError(f"positions must be of shape {allowed}, got {tuple(positions.shape)}")
        return positions.unbind(0)

    def _factors_of_axes(self, positions: tuple[Tensor, ...], dtype: torch.dtype) -> Factors:
        """Each pair is turned by the position along its own axis."""
        assert self.pair_axes is not None
        of_pairs = torch.stack([positions[axis] for axis in self.pair_axes], dim=-1)
        cos, sin = cos_sin_of_pairs(of_pairs, self.config)
        return self._factors(cos.to(dtype), sin.to(dtype))

    def _compute_from(
        self, seq_len: int, start: int, dtype: torch.dtype, device: torch.device
    ) -> Factors:
        table = contiguous_table(seq_len, start, self.config, "split", dtype, device)
        sin, cos = table.chunk(2, dim=-1)
        return self._factors(cos, sin)

    def _compute_at(self, positions: Tensor, dtype: torch.dtype) -> Factors:
        sin, cos = encode(positions, self.config, "split", dtype).chunk(2, dim=-1)
        return self._factors(cos, sin)

    def _factors(self, cos: Tensor, sin: Tensor) -> Factors:
        if self.attention_factor != 1:
            cos, sin = cos * self.attention_factor, sin * self.attention_factor
        return as_factors(cos, sin, self.layout)

    def _checked_factors(self, tables: RotaryTables, x: Tensor, axis: int) -> Factors:
        """The factors in tables of these settings, dtype and device, placed beside x."""
        if not isinstance(tables, RotaryTables):
            raise TypeError(
                "tables must be what the method tables() of this module returns, "
                f"got {type(tables).__name__}"
            )
        factors, settings = tables.factors, tables.settings
        if settings is not self._settings and settings != self._settings:
            raise ValueError(_other_settings(settings, self._settings))
        dtype = COMPUTE_DTYPE[x.dtype]
        if factors[0].dtype not in (dtype, COMPLEX_DTYPE[dtype]):
            got = factors[0].real.dtype
            raise ValueError(f"tables must be made with dtype={dtype}, got {got}")
        check_same_device("tables", factors[0], x)
        ready = tables.factors_beside_heads
        if ready is not None and axis == tables.axis and fit_heads(ready, x, axis):
            return ready
        return beside("tables", factors, x, axis, self._before_positions)


def _other_settings(given: RotarySettings, own: RotarySettings) -> str:
    """What to say of tables whose settings are not those of this module: the first difference."""
    name = next(name for name in own._fields if getattr(given, name) != getattr(own, name))
    allowed, got = getattr(own, name), getattr(given, name)
    if isinstance(allowed, tuple) and isinstance(got, tuple):  # a value for each pair
        pair = next(pair for pair, value in enumerate(allowed) if value != got[pair])
        name, allowed, got = f"{name}[{pair}]", allowed[pair], got[pair]
    return (
        f"tables must be made by a module with {name}={check.brief(allowed)}, as this one, "
        f"got {check.brief(got)}"
    )
