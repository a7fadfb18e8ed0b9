"""Sinusoidal positional encoding in NumPy: the reference implementation.

Conventions, the same throughout the book: positions count from 0; pair i = 0 … d_model/2 − 1 turns
at the angular frequency ω_i, in radians per position; the encoding of a position is a **row**, so a
shift multiplies from the right: PE(x + Δx) = PE(x) · T(Δx). Source: Vaswani et al. (2017), § 3.5.

Which function to call
----------------------
- A table for the positions 0, 1, 2, …: `sinusoidal_table`.
- Rows for other positions, such as 7, −3 or 0.5: `sinusoidal_encoding`.
- RoPE: ``rotate(q, positions=p, layout="split")``, with the frequencies of a model from
  `rotary_frequencies`. If the pairs of a checkpoint lie in the other layout: `convert_layout`.
- To study the encoding: `frequencies`, `rotation_matrix`, `similarity` and `attention_terms`.

A wrong argument gives a ``TypeError`` or a ``ValueError`` that names the argument, the value it got
and what is allowed. No function writes into what you pass, and no result is a view of a cache.

Accuracy
--------
Angles are computed in integers, and rounded once: ``pe_lib._angles`` says how, and proves it. With
u = 2⁻⁵³, every entry at an integer position of magnitude up to 2⁵³ is within 2⁻⁵⁰ = 8u of the exact
real number, before it is rounded once to the dtype you ask for. So a float64 entry is within 2⁻⁵⁰,
and a float32 entry within ½ ulp + 2⁻⁵⁰. An entry of a half type is the float32 entry, rounded.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pe_lib import _angles
from pe_lib import _checks as check
from pe_lib._checks import Layout, Spacing
from pe_lib.rope import RotaryFrequencies, convert_layout, rotary_frequencies

__all__ = [
    "AttentionTerms",
    "RotaryFrequencies",
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

if TYPE_CHECKING:  # the default of a type variable came with Python 3.13
    from typing_extensions import TypeVar

    F = TypeVar("F", bound=np.floating, default=np.floating)
else:
    F = np.floating
FloatArray = NDArray[np.floating]
ComplexArray = NDArray[np.complex128]


class AttentionTerms(NamedTuple):
    """The four parts of an attention score, arrays or tensors of shape (…, n, m).

    >>> sum(AttentionTerms(4, 3, 2, 1))
    10
    """

    content_content: Any
    content_position: Any
    position_content: Any
    position_position: Any


def frequencies(
    d_model: SupportsIndex, *, base: SupportsFloat = 10_000.0, spacing: Spacing = "paper"
) -> NDArray[np.float64]:
    """Angular frequencies ω_i of the d_model/2 pairs, in radians per position, from 1 downwards.

    ``spacing="paper"`` gives ω_i = base^(−2i/d_model), whose last value stays short of 1/base.
    ``spacing="tensor2tensor"`` gives ω_i = base^(−i/(d_model/2 − 1)), whose last value is 1/base;
    so do the authors' own code and the libraries that descend from it. At d_model = 2 both are [1].
    ``d_model`` is positive and even, ``base``, the 10000 of the paper, at least 1. Each frequency
    is the float64 nearest to the exact value.

    >>> frequencies(4, base=100)
    array([1. , 0.1])
    """
    config = check.frequency_config(d_model, base, spacing)
    return _angles.exact_frequencies(config).omega.copy()


def sinusoidal_table(
    seq_len: SupportsIndex,
    d_model: SupportsIndex,
    *,
    start: SupportsIndex = 0,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: ArrayLike | None = None,
    layout: Layout = "interleaved",
    dtype: type[F] | np.dtype[F] | str = "float32",
) -> NDArray[F]:
    """Encodings of the contiguous positions start … start + seq_len − 1, one a row.

    ``d_model``, ``base`` and ``spacing`` are as for `frequencies`. Instead of base and spacing you
    may pass ``frequencies=``, d_model/2 numbers of magnitude up to 2²⁰. ``layout`` is
    ``"interleaved"`` for [sin ω_0x, cos ω_0x, sin ω_1x, …], or ``"split"`` for all the sines
    followed by all the cosines. ``dtype`` is float16, float32 or float64. ``start`` and the last
    position must fit 64 bits.

    The result is a new array of shape (seq_len, d_model). For positions of magnitude up to 2⁵³ each
    float64 or float32 entry is within 2⁻⁵⁰ of the exact value before its one rounding to ``dtype``;
    a float16 entry is the float32 entry, rounded. See "Accuracy" in this module. A longer table
    starts with the shorter one, bit for bit.

    >>> sinusoidal_table(1, 4, start=1, base=100, dtype=np.float64).round(3)
    array([[0.841, 0.54 , 0.1  , 0.995]])
    """
    seq_len = check.integer("seq_len", seq_len, at_least=0)
    start = check.window("start", start, seq_len)
    config = check.frequency_config(d_model, base, spacing, frequencies)
    check.choice("layout", layout, check.LAYOUTS)
    return _angles.table(seq_len, start, config, layout, check.as_float_dtype(dtype))


def sinusoidal_encoding(
    positions: ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: ArrayLike | None = None,
    layout: Layout = "interleaved",
    dtype: type[F] | np.dtype[F] | str = "float32",
) -> NDArray[F]:
    """Encodings of any positions: integers or floats, negative too, in any order and shape.

    The result, a new array of shape (…, d_model), has the axes of ``positions`` first. The other
    arguments are those of `sinusoidal_table`. Positions in float16 are refused, because that type
    holds whole numbers up to 2048 only.

    For integers of magnitude up to 2⁵³ the result is as accurate as a `sinusoidal_table`, and for
    other numbers too unless a frequency exceeds π: then the angle of the fraction is rounded, and
    an entry is within 2⁻⁵⁰ + abs(ω)·2⁻⁵³. Between 2⁵³ and 2⁶³ an entry is within
    2⁻⁵⁰ + abs(x)·2⁻¹¹³.

    >>> sinusoidal_encoding([0, 0.5, -3], 512).shape
    (3, 512)
    """
    config = check.frequency_config(d_model, base, spacing, frequencies)
    positions = check.as_positions("positions", positions)
    dtype = check.as_float_dtype(dtype)
    check.choice("layout", layout, check.LAYOUTS)
    if (covered := _angles.covered_range(positions)) is not None:
        table = _angles.table(len(covered), covered.start, config, layout, dtype)
        return table.take(positions - covered.start, axis=0)
    encoding: NDArray = np.empty((*positions.shape, config.d_model), dtype)
    rows = encoding.reshape(positions.size, config.d_model)
    for chunk, rotations in _angles.rotations_in_chunks(positions, config):
        _angles.store(_angles.ENCODING_OF_0 * rotations, rows[chunk], layout)
    return encoding


@_angles.no_underflow_warnings()
def rotation_matrix(
    by: ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: ArrayLike | None = None,
    layout: Layout = "interleaved",
    dtype: type[F] | np.dtype[F] | str = "float64",
) -> NDArray[F]:
    """The matrix T(Δx) with PE(x + Δx) = PE(x) · T(Δx) for every x, of shape (d_model, d_model).

    In the interleaved layout T is block-diagonal with the 2×2 blocks
    [[cos ω_iΔx, −sin ω_iΔx], [sin ω_iΔx, cos ω_iΔx]]. It is meant for teaching and for tests:
    `rotate` applies it without forming it. The accuracy is that of `sinusoidal_encoding`.

    >>> rotation_matrix(1, 2).round(3)
    array([[ 0.54 , -0.841],
           [ 0.841,  0.54 ]])
    """
    position = check.as_positions("by", by)
    check.one_number("by", position.shape)
    config = check.frequency_config(d_model, base, spacing, frequencies)
    check.choice("layout", layout, check.LAYOUTS)
    dtype = check.as_float_dtype(dtype)
    rotations = _angles.through_float32(_angles.rotations(position, config), dtype)
    matrix = np.zeros((config.d_model, config.d_model), dtype)
    sin_columns, cos_columns = _angles.halves(np.arange(config.d_model), layout)
    matrix[sin_columns, sin_columns] = matrix[cos_columns, cos_columns] = rotations.real
    matrix[sin_columns, cos_columns] = rotations.imag
    matrix[cos_columns, sin_columns] = -rotations.imag
    return matrix


@_angles.no_underflow_warnings()
def rotate(
    x: ArrayLike,
    by: ArrayLike | None = None,
    *,
    positions: ArrayLike | None = None,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: RotaryFrequencies | ArrayLike | None = None,
    attention_factor: SupportsFloat | None = None,
    rotary_dim: SupportsIndex | None = None,
    layout: Layout | None = None,
) -> FloatArray:
    """x · T(Δx), row by row, without forming T: O(d_model) operations a row.

    **A shift**, ``rotate(x, by=Δ)``, is x·T(Δ), which makes PE(x + Δ) of PE(x). ``by`` is a number,
    of shape (seq,), or has all axes of ``x.shape[:-1]``, each of its size or 1. A rank between is
    refused, because (batch, seq) is not (heads, seq), and so are unsigned integers, whose minus
    wraps around.

    **RoPE**, ``rotate(q, positions=p, layout="split")``, is q·T(−p), the sense of RoFormer and of
    Llama, times the attention factor. ``positions`` are of shape (seq,) or (batch, seq), or have
    all axes of ``x.shape[:-1]``; x is (…, seq, width). A number is the position of a single row, x
    of shape (width,); beside several rows it is refused. ``layout`` must be given, since
    checkpoints differ. Beside ``by`` it may be left out: rows of a table are "interleaved". Keys
    that are turned already move on by Δ with ``rotate(k, by=-Δ)``, whose factor stays as it is.

    ``x`` is of shape (…, width), like the result, a new array of the dtype of x. ``frequencies``
    may be the pair that `rotary_frequencies` returns, with its factor. A
    `pe_lib.rope.LayerRotation` is refused, because its layout would be dropped: pass what it has by
    name. ``rotary_dim`` is the number of entries, from the first, that turn: all, or what such a
    pair says. float16 is computed in float32.

    Accuracy, for positions of magnitude up to 2⁵³ and a factor of 1: the error of a pair, divided
    by its norm, is at most 3·2⁻²⁴ for float32. For float64 it is at most 4·2⁻⁵³ for integers, and
    (7 + abs(ω))·2⁻⁵³ for other numbers. ``pe_lib._angles`` proves it.

    >>> row = sinusoidal_encoding(3, 8, dtype=np.float64)
    >>> np.allclose(rotate(row, by=4), sinusoidal_encoding(7, 8, dtype=np.float64))
    True
    """
    x = check.as_floats("x", x, axes=1)
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
    if positions is None:
        check.signed("by", by, check.INSTEAD_OF_A_MINUS)
        places = check.as_positions("by", cast(ArrayLike, by))
        check.by_shape(places.shape, x.shape[:-1])
    else:
        places = check.as_positions("positions", positions)
        places = places.reshape(check.positions_in_x(places.shape, x.shape[:-1]))

    pairs = config.d_model // 2
    rotations = np.empty((*places.shape, pairs), np.result_type(x, np.complex64))
    for chunk, values in _angles.rotations_in_chunks(places, config):
        if positions is not None:
            values = factor * values.conj()  # T(−position) is the inverse of T(position)
        rotations.reshape(-1, pairs)[chunk] = values
    rotated = np.empty(x.shape, x.dtype)
    rotated[..., config.d_model :] = x[..., config.d_model :]
    _rotate_pairs(x[..., : config.d_model], rotations, rotated[..., : config.d_model], layout)
    return rotated


def _rotate_pairs(x: FloatArray, rotations: NDArray, rotated: FloatArray, layout: Layout) -> None:
    """Write x, pair by pair, times the numbers cos − i sin into ``rotated``."""
    if _angles.can_view_as_complex(x.dtype, layout):
        np.multiply(_angles.as_complex(x), rotations, out=rotated.view(rotations.dtype))
        return
    sines, cosines = _angles.halves(x, layout)
    rotated_sines, rotated_cosines = _angles.halves(rotated, layout)
    rotated_sines[...] = sines * rotations.real - cosines * rotations.imag
    rotated_cosines[...] = cosines * rotations.real + sines * rotations.imag


def similarity(
    by: ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Cosine between PE(x) and PE(x + Δ), whatever x: the mean of cos ω_iΔ over the pairs.

    It is K(Δ)/(d_model/2) with K(Δ) = PE(x)·PE(x + Δ) = Σ_i cos ω_iΔ. ``by`` is Δ; the result,
    float64, has its shape. For magnitudes up to 2⁵³ it is within (d_model/2 + 8)·2⁻⁵³, plus
    abs(ω)·2⁻⁵³ of the largest frequency for numbers with a fraction.

    >>> float(similarity(0, 512))
    1.0
    """
    shift = check.as_positions("by", by)
    config = check.frequency_config(d_model, base, spacing, frequencies)
    cosine = np.empty(shift.shape)
    for chunk, rotations in _angles.rotations_in_chunks(shift, config):
        cosine.reshape(-1)[chunk] = rotations.real.mean(axis=-1)
    return cosine


def attention_terms(
    x: ArrayLike, y: ArrayLike, e: ArrayLike, f: ArrayLike, w_q: ArrayLike, w_k: ArrayLike
) -> AttentionTerms:
    """Split the score (x + e)W_q · ((y + f)W_k)ᵀ into its four terms, not scaled by √d_k.

    ``x`` and ``e`` are content and position of the queries, of shape (…, n, d_model); ``y`` and
    ``f`` those of the keys, of shape (…, m, d_model); leading axes may broadcast. ``w_q`` and
    ``w_k`` are projections of shape (d_model, d_k). Each term is of shape (…, n, m), and their sum
    is the score.

    >>> one = np.ones((1, 2))
    >>> terms = attention_terms(one, 3 * one, one, one, np.eye(2), np.eye(2))
    >>> terms.content_content, terms.position_position
    (array([[6.]]), array([[2.]]))
    """
    arguments = {"x": x, "y": y, "e": e, "f": f, "w_q": w_q, "w_k": w_k}
    x, y, e, f, w_q, w_k = (
        check.as_floats(name, values, axes=2) for name, values in arguments.items()
    )
    shapes = (array.shape for array in (x, y, e, f, w_q, w_k))
    check.attention_shapes(*shapes, broadcast_shapes=np.broadcast_shapes)
    x, e = np.broadcast_arrays(x, e)
    y, f = np.broadcast_arrays(y, f)
    content_queries, position_queries = x @ w_q, e @ w_q
    content_keys, position_keys = (y @ w_k).swapaxes(-1, -2), (f @ w_k).swapaxes(-1, -2)
    return AttentionTerms(
        content_content=content_queries @ content_keys,
        content_position=content_queries @ position_keys,
        position_content=position_queries @ content_keys,
        position_position=position_queries @ position_keys,
    )
