"""The module that rotates queries and keys."""

from collections.abc import Sequence
from typing import NamedTuple, SupportsFloat, SupportsIndex

import torch
from torch import Tensor

from pe_lib import _checks as check
from pe_lib._checks import Layout
from pe_lib.torch._angles import contiguous_table, cos_sin_of_pairs, encode
from pe_lib.torch._arguments import (
    GivenFrequencies,
    as_positions,
    check_device_has,
    check_floats,
    check_left_out_beside_tables,
    check_same_device,
)
from pe_lib.torch._axes import beside, beside_heads, fit_heads
from pe_lib.torch._cache import CachedPositions
from pe_lib.torch._device import COMPLEX_DTYPE, COMPUTE_DTYPE
from pe_lib.torch._rotation import Factors, as_factors, rotate_pairs


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
