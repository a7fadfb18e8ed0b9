"""The module that rotates queries and keys."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Self, SupportsFloat, SupportsIndex

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from pe_lib import _angles
from pe_lib import _checks as check
from pe_lib._checks import Layout
from pe_lib.rope import LayerRotation, RotaryFrequencies, rotary_settings
from pe_lib.rope.families import Family
from pe_lib.torch._angles import (
    contiguous_table,
    encode,
    encode_axes,
    in_parts,
    positions_of_pairs,
)
from pe_lib.torch._arguments import (
    GivenFrequencies,
    as_positions,
    as_shift,
    check_device_has,
    check_floats,
    check_nothing_else,
    check_options,
    check_same_device,
)
from pe_lib.torch._axes import align, along
from pe_lib.torch._cache import CachedPositions
from pe_lib.torch._device import COMPLEX_DTYPE, COMPUTE_DTYPE, smallest_and_largest
from pe_lib.torch._rotation import Factors, as_factors, map_rows, rotate_pairs


class _Settings(NamedTuple):
    """What the cosines and sines of a rotation depend on, besides the positions."""

    rotary_dim: int
    frequencies: tuple[float, ...] | None  # before the base, which is a filler beside them
    base: float
    attention_factor: float
    layout: Layout
    pair_axes: tuple[int, ...] | None


class RotaryTables(NamedTuple):
    """What `RotaryPositionalEncoding.tables` makes of positions, for layers of these settings.

    It is what the parameter of a layer that gets tables can be annotated with. Only that method
    makes one, and its parts are for the module alone.

    >>> rotary = RotaryPositionalEncoding(8, layout="split")
    >>> def turned(q: torch.Tensor, tables: RotaryTables) -> torch.Tensor:
    ...     return rotary(q, tables=tables)
    >>> turned(torch.randn(2, 5, 8), rotary.tables(torch.arange(5))).shape
    torch.Size([2, 5, 8])
    """

    settings: _Settings
    factors: Factors  # their first axes are those of the positions


class RotaryPositionalEncoding(CachedPositions[Factors]):
    """Rotate queries or keys by their position: Su et al. (2021), RoFormer.

    The sense of turning is that of RoFormer and Llama, q · T(−position), so a score depends on
    positions through their difference alone. The module has no parameter and no buffer. It caches
    cosines and sines from position 0 on, made as they are needed, and shared by modules of equal
    settings. The cache grows with a sequence or a batch; single positions further on are computed.

    `from_config` makes the module of a layer from a ``config.json``. By hand:

    ``layout`` has no default, because the wrong one raises no error. ``"split"`` pairs entry i with
    entry i + rotary_dim/2: rotate_half in transformers, NEOX, ``interleaved=False``, MLX's
    ``traditional=False``. ``"interleaved"`` pairs entries 2i and 2i + 1: RoFormer, GPT-J, Meta's
    own files of Llama, llama.cpp's NORM.

    ``base`` is rope_theta in other libraries. ``frequencies=`` takes its place: the pair that
    `rotary_frequencies` returns, with its attention factor and the number of entries that turn, or
    one frequency for each pair. Linear, NTK-aware, YaRN and Llama 3 scaling are other frequencies.
    ``attention_factor`` multiplies cosines and sines, and so queries and keys, as YaRN and LongRoPE
    need it: without their factor the scores of such a model are too small. ``rotary_dim`` is the
    number of entries, from the first, that turn: all of them, or what the pair says.

    ``seq_dim`` names the axis of x that counts positions. The default, −2, assumes
    (batch, heads, seq, head_dim); ``seq_dim=1`` is for (batch, seq, heads, head_dim), and for
    (batch, seq, head_dim) too.

    ``pair_axes`` is for positions of several axes, such as those of an image or a video: one
    integer for each pair says which axis of the positions turns it. Then ``positions`` has one more
    axis, the first, of that many. Axial RoPE turns half of the pairs by the row and half by the
    column of a patch. Both halves need the same ``frequencies``, those of a head of half the width,
    given twice: without them, the rows would get the fast pairs and the columns the slow ones.
    Qwen2-VL's M-RoPE with sections (16, 24, 24) of time, height and width is
    ``pair_axes=[0] * 16 + [1] * 24 + [2] * 24``; ERNIE 4.5 VL's with (22, 22, 20) is
    ``[1, 2] * 22 + [0] * 20``, in the interleaved layout. A call without ``positions`` takes the
    index of the token along every axis. M-RoPE means this for text; patches of an image need
    ``positions``.

    The arguments are fixed when the module is made; for others, make a new one.

    Moving query and key on by the same distance leaves their score as it was:

    >>> rotary = RotaryPositionalEncoding(8, layout="split")
    >>> q, k = torch.randn(2, 1, 4, 10, 8)
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
        *,
        layout: Layout | None = None,
        base: SupportsFloat = 10_000.0,
        frequencies: RotaryFrequencies | GivenFrequencies = None,
        attention_factor: SupportsFloat | None = None,
        rotary_dim: SupportsIndex | None = None,
        seq_dim: SupportsIndex = -2,
        pair_axes: Sequence[int] | None = None,
    ) -> None:
        layout = check.rotary_layout(layout)
        config, factor = check.rotation(
            head_dim,
            width_name="head_dim",
            base=base,
            frequencies=frequencies,
            attention_factor=attention_factor,
            rotary_dim=rotary_dim,
        )
        super().__init__(config, layout, seq_dim, factor)
        self.head_dim, self.rotary_dim = check.even("head_dim", head_dim), config.d_model
        self.attention_factor = factor
        pairs = config.d_model // 2
        self.pair_axes = None if pair_axes is None else check.pair_axes(pair_axes, pairs)
        if self.pair_axes is not None:
            self._before_positions = (max(self.pair_axes) + 1,)
        self._settings = _Settings(
            rotary_dim=config.d_model,
            frequencies=config.frequencies,
            base=config.base,
            attention_factor=factor,
            layout=layout,
            pair_axes=self.pair_axes,
        )
        self._is_made = True

    @classmethod
    def from_config(
        cls,
        config: Any,
        *,
        layer: SupportsIndex | None = None,
        seq_len: SupportsIndex | None = None,
        family: Family | str | None = None,
        seq_dim: SupportsIndex = -2,
    ) -> Self:
        """The module of one layer of a model, from the model's ``config.json``.

        ``config`` is what `pe_lib.rope.rotary_settings` takes: a path, a JSON text, a dictionary,
        or a configuration of transformers. Layout, width, part, frequencies, factor and axes of
        positions are read from it. ``layer`` counts from 0, and may be left out where all layers
        turn alike. ``seq_len`` is the longest text, for scalings that depend on it, and ``family``
        says what the code does of a ``model_type`` that is not in the table, by the name of a
        family that shares its code or as a dictionary. For all layers at once, `rotary_modules`.

        Some families, such as DeepSeek-V3, write split what they read interleaved, and this module
        gives it back interleaved. Scores are equal; cached keys have another order than theirs.

        Raises `ValueError` if the configuration cannot be read, if its family is not known, or if
        the layer does not turn, and `NotImplementedError` where the last entries of a head turn.

        >>> config = {"model_type": "qwen3", "num_hidden_layers": 2, "head_dim": 64}
        >>> RotaryPositionalEncoding.from_config(config, layer=1).layout
        'split'
        """
        number = None if seq_len is None else check.integer("seq_len", seq_len, at_least=1)
        settings = rotary_settings(config, number, family=family)
        if layer is None:
            if len(set(settings.layers)) != 1:
                raise ValueError(
                    f"layer must be given, from 0 to {len(settings.layers) - 1}: the layers of "
                    f"{settings.model_type!r} do not turn alike"
                )
            layer = 0
        index = check.integer("layer", layer, at_least=0)
        if index >= len(settings.layers):
            raise ValueError(f"layer must be below {len(settings.layers)}, got {index}")
        found = settings.layers[index]
        if found is None:
            raise ValueError(f"layer must be one that turns, got {index}, which does not")
        return cls._of_layer(found, seq_dim)

    @classmethod
    def _of_layer(cls, layer: LayerRotation, seq_dim: SupportsIndex) -> Self:
        if layer.rotary_start:
            raise NotImplementedError(
                f"the last {layer.rotary_dim} of {layer.head_dim} entries turn: make a module of "
                f"width {layer.rotary_dim} for these entries, x[..., {layer.rotary_start}:]"
            )
        is_plain = _turns_by_its_base(layer)
        # Numbers and no tensors, which would follow a default device, such as meta.
        omega = tuple(layer.direction * each for each in layer.frequencies)
        clocks: dict[str, Any] = {"base": layer.base} if is_plain else {"frequencies": omega}
        module = cls(
            layer.head_dim,
            layout=layer.layout,
            attention_factor=layer.attention_factor,
            rotary_dim=layer.rotary_dim,
            seq_dim=seq_dim,
            pair_axes=layer.pair_axes,
            **clocks,
        )
        if not is_plain and layer.base is not None:
            module._origin = f" of base={layer.base:.15g} and rope_type={layer.rope_type!r}"
        return module

    @property
    def frequencies(self) -> Tensor:
        """In radians a position, float64, one for each pair that turns."""
        return torch.from_numpy(_angles.exact_frequencies(self.config).omega.copy())

    def forward(
        self,
        x: Tensor,
        *,
        positions: Tensor | None = None,
        offset: SupportsIndex | Tensor = 0,
        tables: RotaryTables | None = None,
    ) -> Tensor:
        """Rotate ``x`` of shape (…, seq, head_dim) at positions offset … offset + seq − 1.

        ``offset`` is the first position, an integer of at least 0, or an integer tensor of shape
        (batch,): one for each row of the batch, as when prompts of different lengths are continued.
        On a GPU and in a compiled graph values of a tensor are not looked at: negative offsets of
        rows are positions below 0 there, and those that run on past 2⁶³ − 1 wrap around to −2⁶³.

        Instead of an offset you may pass ``positions``, integers or floats of shape (seq,) or
        (batch, seq), like the position_ids of transformers. Other shapes must broadcast to
        ``x.shape[:-1]`` and have as many axes, and their axis of the sequence must have its full
        size. Instead of positions you may pass ``tables``, which `tables` has made of them once for
        many calls.

        With ``pair_axes`` the positions have one more axis, the first. Without positions every axis
        counts the tokens, which is right for text, and wrong for an image or a video.

        The result has the shape and dtype of x. Half types are computed in float32.

        Raises `ValueError` for a last axis of x that is not head_dim, for positions, offsets or
        tables of another shape, for a negative offset, for two of them at once, and for tables that
        a module of other settings has made; `TypeError` for another dtype, and for tables that this
        class has not made.
        """
        axis = self._axis_of(x)
        if tables is not None:
            check_nothing_else(positions, offset)
            return rotate_pairs(x, self._factors_in(tables, x, axis), axis)
        factors = self._rows(x, axis, positions, offset, COMPUTE_DTYPE[x.dtype])
        return rotate_pairs(x, factors, axis)

    def _check_first(self, position: int) -> None:
        """An offset below 0 was meant as a move of keys that are turned already. A symbol is no
        int, and stays one."""
        if isinstance(position, int) and position < 0:
            raise ValueError(
                f"offset must be the first position, at least 0, got {check.brief(position)}; keys "
                "that are turned already are moved by shift(k, by=…), and positions= takes "
                "positions below 0"
            )

    def shift(self, x: Tensor, *, by: Tensor | ArrayLike) -> Tensor:
        """Move keys (or queries) ``x`` that are already turned on by so many positions.

        The theorem of the book, PE(x + Δ) = PE(x)·T(Δ), for RoPE: a key turned at position p and
        shifted by Δ is the key turned at p + Δ. So the cache of a context that loses its first 300
        tokens is ``shift(cache, by=-300)`` of the rest, and no key is computed again. The attention
        factor, which cached keys have already, is not applied.

        ``x`` is of a shape that `forward` takes. ``by`` is a number, or a tensor of shape (batch,);
        with ``pair_axes`` a number moves all axes, and a first axis of ``by`` has one for each. It
        is computed in float32 for half types and rounded once; each shift rounds the keys once
        more, so many shifts are better made from the original, or keys kept unturned.

        >>> rotary, k = RotaryPositionalEncoding(8, layout="split"), torch.randn(1, 2, 5, 8)
        >>> moved = rotary.shift(rotary(k, offset=300), by=-300)
        >>> torch.allclose(moved, rotary(k), atol=1e-5)
        True
        """
        axis = self._axis_of(x)
        moves = as_shift(by, x, "shift(k, by=n) moves keys on, and shift(k, by=-n) back")
        several = self.pair_axes is not None and moves.ndim > 0
        batch = check.batch_axis(axis + x.ndim)
        shape = tuple(moves.shape[1:] if several else moves.shape)
        axes_fit = not several or moves.shape[0] == self._before_positions[0]
        if not axes_fit or (shape and (x.ndim < 3 or shape != (x.shape[batch],))):
            sizes = f"(batch,) = ({x.shape[batch]},)" if x.ndim > 2 else "(batch,)"
            if self.pair_axes is not None:
                sizes = f"(axes,) or (axes, batch) with {self._before_positions[0]} axes"
            got = tuple(moves.shape)
            raise ValueError(f"by must be a number or of shape {sizes}, got shape {got}")
        if shape:
            place = partial(along, batch, x=x)
            moves = torch.stack([*map(place, moves)]) if several else place(moves)
        dtype = COMPUTE_DTYPE[x.dtype]
        if several:
            rows = self._encode_axes(moves, dtype)
        else:
            rows = encode(moves, self.config, "split", dtype)
        sin, cos = rows.chunk(2, dim=-1)
        return rotate_pairs(x, as_factors(cos, sin, self.layout), axis)

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
        return RotaryTables(self._settings, self._rows_at(positions, dtype))

    def cos_sin(
        self, positions: Tensor | ArrayLike, *, dtype: torch.dtype = torch.float32
    ) -> tuple[Tensor, Tensor]:
        """Cosines and sines of ``positions`` as tensors, for other kernels.

        Each is of shape ``(*positions.shape, rotary_dim/2)``, one entry a pair, as flash-attn takes
        them; ``torch.cat((cos, cos), dim=-1)`` is what transformers hands to its layers. With
        ``pair_axes`` the first axis of the positions, that of their axes, is gone. The attention
        factor is included. ``dtype`` is any floating-point type: half types are rounded last.

        >>> cos, sin = RotaryPositionalEncoding(8, layout="split").cos_sin(torch.arange(5))
        >>> cos.shape, bool((cos[0] == 1).all()), bool((sin[0] == 0).all())
        (torch.Size([5, 4]), True, True)
        """
        check_options(self.layout, dtype)
        positions = as_positions("positions", positions, None)
        check_device_has(dtype, positions.device)
        if self.pair_axes is not None:
            self._check_axes(positions)
        cos, sin = self._cos_sin_at(positions, COMPUTE_DTYPE[dtype])
        return cos.to(dtype).contiguous(), sin.to(dtype).contiguous()

    def extra_repr(self) -> str:
        text = f"{self.head_dim}, rotary_dim={super().extra_repr()}"
        if self.attention_factor != 1:
            text += f", attention_factor={self.attention_factor:g}"
        return text if self.pair_axes is None else f"{text}, pair_axes={self.pair_axes}"

    def _axis_of(self, x: Tensor) -> int:
        """The axis of a good x that counts positions, from the end."""
        check_floats("x", x, axes=2)
        check.row_width("x", x.shape[-1], self.head_dim, "head_dim")
        return self._sequence_axis(x)

    def _rows_at(self, positions: Tensor, dtype: torch.dtype) -> Factors:
        if self.pair_axes is None:
            return self._rows_at_one_axis(positions, dtype)
        self._check_axes(positions)
        cached = self._cached_for(smallest_and_largest(positions), positions, dtype)
        if cached is None:
            return self._compute_at(positions, dtype)
        return self._look_up_axes(positions, self.pair_axes, cached)

    def _look_up_axes(
        self, positions: Tensor, pair_axes: tuple[int, ...], cached: Factors
    ) -> Factors:
        """From the cached rows, each pair of the row of its own position."""
        pairs = len(pair_axes)
        columns = torch.arange(2 * pairs, device=positions.device)

        def look_up(part: Tensor) -> Factors:
            places = positions_of_pairs(part, pair_axes)
            twice = torch.cat((places, places), dim=-1) if len(cached) > 1 else places

            def pick(table: Tensor) -> Tensor:
                width = table.shape[-1]
                return table[places if width == pairs else twice, columns[:width]]

            return map_rows(pick, cached)

        found = in_parts(look_up, positions.flatten(1).T, self.config)
        shape = positions.shape[1:]
        return type(cached)(*[part.view(*shape, part.shape[-1]) for part in found])

    def _check_axes(self, positions: Tensor) -> None:
        """The positions must have one entry for each of the axes that `pair_axes` names."""
        (count,) = self._before_positions
        if positions.ndim < 2 or positions.shape[0] != count:
            allowed = f"(axes, seq) or (axes, batch, seq) with {count} axes, as pair_axes says"
            raise ValueError(f"positions must be of shape {allowed}, got {tuple(positions.shape)}")

    def _compute_range(
        self, seq_len: int, start: int, dtype: torch.dtype, device: torch.device
    ) -> Factors:
        rows = contiguous_table(seq_len, start, self.config, "split", dtype, device)
        return as_factors(*self._scaled(rows), self.layout)

    def _compute_at(self, positions: Tensor, dtype: torch.dtype) -> Factors:
        return as_factors(*self._cos_sin_at(positions, dtype), self.layout)

    def _cos_sin_at(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        if self.pair_axes is not None and positions.ndim > 1:
            return self._scaled(self._encode_axes(positions, dtype))
        return self._scaled(encode(positions, self.config, "split", dtype))

    def _encode_axes(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        assert self.pair_axes is not None
        return encode_axes(positions, self.pair_axes, self.config, dtype)

    def _scaled(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines in rows of the split layout, times the attention factor."""
        sin, cos = rows.chunk(2, dim=-1)
        if self.attention_factor == 1:
            return cos, sin
        return cos * self.attention_factor, sin * self.attention_factor

    def _factors_in(self, tables: RotaryTables, x: Tensor, axis: int) -> Factors:
        """The factors in tables of these settings, dtype and device, as they broadcast with x."""
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
        return align("tables", factors, x, axis, self._before_positions)


def _turns_by_its_base(layer: LayerRotation) -> bool:
    """Whether the base says what the frequencies are. Then it is the better argument: it equals
    that of a module made by hand, and has the digits that a float64 frequency lacks, which amount
    to whole turns at 2⁵³."""
    if layer.base is None or layer.direction != 1:
        return False
    config = check.frequency_config(layer.rotary_dim, layer.base, "paper")
    return layer.frequencies == tuple(_angles.exact_frequencies(config).omega.tolist())


def _other_settings(given: _Settings, own: _Settings) -> str:
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


def rotary_modules(
    config: Any,
    *,
    seq_len: SupportsIndex | None = None,
    family: Family | str | None = None,
    seq_dim: SupportsIndex = -2,
) -> list[RotaryPositionalEncoding | None]:
    """For each layer of a model its `RotaryPositionalEncoding`, or None where nothing turns.

    Layers that turn alike share one module. The arguments are those of
    `RotaryPositionalEncoding.from_config`.

    >>> config = {"model_type": "cohere2", "num_hidden_layers": 4, "head_dim": 64}
    >>> [module is not None for module in rotary_modules(config)]
    [True, True, True, False]
    """
    number = None if seq_len is None else check.integer("seq_len", seq_len, at_least=1)
    settings = rotary_settings(config, number, family=family)
    made = {kind: RotaryPositionalEncoding._of_layer(kind, seq_dim) for kind in settings.kinds}
    return [None if layer is None else made[layer] for layer in settings.layers]
