"""Sinusoidal positional encoding in NumPy: the reference implementation.

Conventions, the same throughout the book: positions count from 0; pair i = 0 … d_model/2 − 1 turns
at the angular frequency ω_i, in radians per position; the encoding of a position is a **row**, so a
shift multiplies from the right: PE(x + Δx) = PE(x) · T(Δx). Source: Vaswani et al. (2017), § 3.5.

Which function to call
----------------------
- A table for the positions 0, 1, 2, …: `sinusoidal_table`.
- Rows for other positions, such as 7, −3 or 0.5: `sinusoidal_encoding`.
- RoPE: ``rotate(q, -positions)``, with the frequencies of a model from `rotary_frequencies`. If the
  pairs of a checkpoint lie in the other layout: `convert_layout`.
- To study the encoding: `frequencies`, `rotation_matrix`, `similarity` and `attention_terms`.

A wrong argument gives a ``TypeError`` or a ``ValueError`` that names the argument, the value it got
and what is allowed. No function writes into what you pass, and no result is a view of a cache.

Angles are computed in integers
-------------------------------
The angle ω·x of a far position is a large number, and rounding it to float64 makes an error that
grows with x. But whole turns do not matter. So the frequency is stored as f = ω/2π, in turns per
position, in units of 2⁻⁶⁴ of a turn: the nearest integer is ``high``, and the rest, at most ½, is
``low``, a float64. The product x·f is formed in 64-bit integers, in the same units. Such an integer
starts again at 0 after 2⁶⁴ units, which is one turn, so whole turns drop out without a rounding
error. The angle that is left is split in two: the nearest of 1024 grid angles, whose cosine and
sine are stored to more digits than a float64 has, and a small rest, for which three terms of a
series are enough.

T is used to build the table
----------------------------
A pair [s, c] is kept as the complex number s + ic. (Because i is the imaginary unit here, pairs are
numbered by j.) The 2×2 block of T(x) is then the number cos ω_jx − i sin ω_jx, and the pair of
PE(x) is that of PE(0), the number i, multiplied by it. No sine is computed for each entry. Instead,

    PE(start + 64a + b) = PE(start) · T(64a) · T(b),    0 ≤ a, b < 64,

which is one complex product for each pair. T(b) and T(64a) are computed once for each set of
frequencies. T(1) is never multiplied by itself again and again, because its errors would add up.

Accuracy
--------
Let u = 2⁻⁵³. An *ulp* is the distance between neighbouring floating-point numbers. For d_model up
to 16384 and **every integer position of magnitude up to 2⁵³**, every entry is within 2⁻⁵⁰ = 8u of
the exact real number, before it is rounded once to the dtype you ask for. So a float64 entry is
within 2⁻⁵⁰, and a float32 entry within ½ ulp + 2⁻⁵⁰. For entries above ½ this is practically half
an ulp of float32. For entries near 0 the absolute error is bounded, and the relative error is not.
An entry of a half type (16 bits) is the float32 entry, rounded.

**Fractions.** The bound holds for float positions up to 2⁵³ as well, as long as no frequency
exceeds π in magnitude. The fraction of a position, at most ½, turns by the platform's sine and
cosine, which are trusted to an ulp. Its angle adds an error of abs(ω)·u, both functions √2·u and
the product √5·u to the 0.78u of the whole part (step 1 of the proof). With a frequency above π the
bound is 2⁻⁵⁰ + abs(ω)·u.

**Far positions.** From 2⁵³ to 2⁶³, where positions end, x·low has more digits than a float64, and
the error may grow by abs(x)·2⁻¹¹³.

*Proof* of the first bound.

(1) ``_rotations`` forms x·f in units of 2⁻⁶⁴ of a turn. It takes x·high exactly, because whole
    turns drop out, and x·low, at most 2⁵² units, rounded to an integer. That rounding, of ½ unit,
    is less than 0.002u in radians. The rest beside the nearest grid angle is an integer of at most
    2⁵³, so exact as a float64, and below 0.0031 radians. Its conversion, the series (whose first
    missing term is 0.0031⁶/720 = 0.01u) and the product with the value on the grid err by less than
    0.05u. The value on the grid and this product are summed, with a rounding of at most ½u. So each
    part of T(x) is within 0.55u, and T(x) within √2·0.55u < 0.78u.
(2) Turning does not stretch errors: the product of numbers within δ and ε of two points of the
    circle is, before its rounding, within δ + ε + δε of the product of the points.
(3) The rounding moves a product z by at most √5·u·abs(z) (Brent, Percival and Zimmermann, 2007,
    "Error bounds on complex floating-point multiplication"), and by at most 2u·abs(z) where the
    processor fuses products and sums (Jeannerod, Kornerup, Louvet and Muller, 2017).
(4) So PE(start)·T(64a) is within 2·0.78u + √5·u < 3.80u, and its product with T(b) within
    3.80u + 0.78u + √5·u < 6.82u. The terms in u² are far smaller than the 1.18u that remain. ∎
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pe_lib import _checks as check
from pe_lib import _exact
from pe_lib._arrays import as_array
from pe_lib._checks import FrequencyConfig, Layout, Spacing
from pe_lib._rope import RotaryFrequencies, convert_layout, rotary_frequencies

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

ENCODING_OF_0 = 1j  # the pair [sin 0, cos 0]
BLOCK = 64  # rows of a table that share the rotation of their first row
ROWS_PER_TASK = BLOCK * BLOCK  # rows of a table that one thread computes at a time
BUFFER = 640  # products that NumPy rounds to float32 at a time; its default overflows the L1 cache
CHUNK = 2**12  # pairs computed at a time, so that temporary arrays stay in the processor's cache


class AttentionTerms(NamedTuple):
    """The four parts of an attention score, arrays or tensors of shape (…, n, m).

    >>> sum(AttentionTerms(4, 3, 2, 1))
    10
    """

    content_content: Any
    content_position: Any
    position_content: Any
    position_position: Any


def _underflow_is_right() -> np.errstate:
    """A very slow pair has turned by so little that its sine is below the smallest number of the
    dtype. It becomes 0 or subnormal, as rounding has it, and a caller who has told NumPy to warn or
    to raise there shall not hear of it."""
    return np.errstate(under="ignore")


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
    return _exact.frequencies(config).omega.copy()


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
    workers: SupportsIndex = 1,
) -> NDArray[F]:
    """Encodings of the contiguous positions start … start + seq_len − 1, one a row.

    ``d_model``, ``base`` and ``spacing`` are as for `frequencies`. Instead of base and spacing you
    may pass ``frequencies=``, d_model/2 numbers of magnitude up to 2²⁰. ``layout`` is
    ``"interleaved"`` for [sin ω_0x, cos ω_0x, sin ω_1x, …], or ``"split"`` for all the sines
    followed by all the cosines. ``dtype`` is float16, float32 or float64. ``start`` and the last
    position must fit 64 bits. ``workers`` is the number of threads that share a table of more than
    4096 rows; it changes no bit of the table.

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
    workers = check.integer("workers", workers, at_least=1)
    return _table(seq_len, start, config, layout, _as_float_dtype(dtype), workers)


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
    positions = _as_positions("positions", positions)
    dtype = _as_float_dtype(dtype)
    check.choice("layout", layout, check.LAYOUTS)
    if (covered := _covered_range(positions)) is not None:
        table = _table(len(covered), covered.start, config, layout, dtype)
        return table.take(positions - covered.start, axis=0)
    encoding: NDArray = np.empty((*positions.shape, config.d_model), dtype)
    rows = encoding.reshape(positions.size, config.d_model)
    for chunk, rotations in _rotations_in_chunks(positions, config):
        _store(ENCODING_OF_0 * rotations, rows[chunk], layout)
    return encoding


@_underflow_is_right()
def rotation_matrix(
    offset: ArrayLike,
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
    position = _as_positions("offset", offset)
    check.one_number("offset", position.shape)
    config = check.frequency_config(d_model, base, spacing, frequencies)
    check.choice("layout", layout, check.LAYOUTS)
    dtype = _as_float_dtype(dtype)
    rotations = _through_float32(_rotations(position, config), dtype)
    matrix = np.zeros((config.d_model, config.d_model), dtype)
    sin_columns, cos_columns = _halves(np.arange(config.d_model), layout)
    matrix[sin_columns, sin_columns] = matrix[cos_columns, cos_columns] = rotations.real
    matrix[sin_columns, cos_columns] = rotations.imag
    matrix[cos_columns, sin_columns] = -rotations.imag
    return matrix


@_underflow_is_right()
def rotate(
    x: ArrayLike,
    offset: ArrayLike,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: ArrayLike | None = None,
    layout: Layout = "interleaved",
) -> FloatArray:
    """x · T(Δx), row by row, without forming T: O(d_model) operations a row.

    T turns a [sin, cos] pair clockwise. RoPE turns the other way, as in RoFormer and in Llama. To
    get it, call ``rotate(q, -positions)``.

    ``x`` is of shape (…, d_model), like the result, a new array of the dtype of x. ``offset``
    broadcasts to ``x.shape[:-1]``. For integer offsets up to 2⁵³ the error of a pair is at most
    3·2⁻²⁴ times its norm for float32, and 5·2⁻⁵³ times for float64. For other offsets,
    abs(ω)·2⁻⁵³ times the norm is added to this bound. float16 is computed in float32.

    >>> row = sinusoidal_encoding(3, 8, dtype=np.float64)
    >>> np.allclose(rotate(row, 4), sinusoidal_encoding(7, 8, dtype=np.float64))
    True
    """
    x = _as_floats("x", x, axes=1)
    config = check.frequency_config(x.shape[-1], base, spacing, frequencies, "the last axis of x")
    check.choice("layout", layout, check.LAYOUTS)
    offset = _as_positions("offset", offset)
    check.broadcast("offset", offset.shape, x.shape[:-1], "x.shape[:-1]")

    pairs = config.d_model // 2
    rotations = np.empty((*offset.shape, pairs), np.result_type(x, np.complex64))
    for chunk, values in _rotations_in_chunks(offset, config):
        rotations.reshape(-1, pairs)[chunk] = values
    rotated = np.empty(x.shape, x.dtype)
    if _can_view_as_complex(x.dtype, layout):
        np.multiply(_as_complex(x), rotations, out=_as_complex(rotated))
        return rotated
    sines, cosines = _halves(x, layout)
    rotated_sines, rotated_cosines = _halves(rotated, layout)
    rotated_sines[...] = sines * rotations.real - cosines * rotations.imag
    rotated_cosines[...] = cosines * rotations.real + sines * rotations.imag
    return rotated


def similarity(
    offset: ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    frequencies: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Cosine between PE(x) and PE(x + Δ), whatever x: the mean of cos ω_iΔ over the pairs.

    It is K(Δ)/(d_model/2) with K(Δ) = PE(x)·PE(x + Δ) = Σ_i cos ω_iΔ. ``offset`` is Δ; the result,
    float64, has its shape. It is within 2⁻⁴⁷ for integers of magnitude up to 2⁵³, and for other
    numbers unless a frequency exceeds π: then abs(ω)·2⁻⁵³ is added, for the largest ω.

    >>> float(similarity(0, 512))
    1.0
    """
    offset = _as_positions("offset", offset)
    config = check.frequency_config(d_model, base, spacing, frequencies)
    cosine = np.empty(offset.shape)
    for chunk, rotations in _rotations_in_chunks(offset, config):
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
    x, y, e, f, w_q, w_k = (_as_floats(name, values, axes=2) for name, values in arguments.items())
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


# Rotations: T(x) as complex numbers


@_underflow_is_right()
def _rotations(positions: NDArray, config: FrequencyConfig) -> ComplexArray:
    """T(x) as the numbers cos ω_ix − i sin ω_ix, of shape (*positions.shape, pairs)."""
    frequencies, grid = _exact.frequencies(config), _exact.grid()
    positions = positions[..., np.newaxis]
    whole = np.rint(positions.astype(np.float64))
    integers = positions if positions.dtype.kind == "i" else whole.astype(np.int64)

    # The phase x·f in units of 2⁻⁶⁴ of a turn: int64 wraps around at a whole turn.
    low_part = np.rint(whole * frequencies.low).astype(np.int64)
    phase = integers * frequencies.high + low_part

    # The nearest grid angle, 2⁵⁴ units apart from the next, and the rest, in radians.
    nearest = (phase + 2**53) >> 54
    angle = (phase - (nearest << 54)) * (2 * np.pi * 2.0**-64)
    index = nearest & (_exact.GRID_SIZE - 1)  # the remainder, since GRID_SIZE is a power of 2

    # With e^(−i·angle) − 1 by its series: grid + (missing + grid · (e^(−i·angle) − 1)).
    square = angle * angle
    rotations = np.empty(angle.shape, np.complex128)
    rotations.real = square * (square / 24 - 0.5)
    rotations.imag = -angle * (1 - square * (1 / 6 - square / 120))
    on_grid = grid.nearest[index]
    rotations *= on_grid
    rotations += grid.missing[index]
    rotations += on_grid

    fraction = positions - whole
    if fraction.any():
        angle = fraction * frequencies.omega
        rotations *= np.cos(angle) - 1j * np.sin(angle)
    return rotations


def _rotations_in_chunks(
    positions: NDArray, config: FrequencyConfig
) -> Iterator[tuple[slice, ComplexArray]]:
    """`_rotations` of the positions, flattened, a chunk at a time, with the place of each chunk."""
    flat = positions.reshape(-1)
    pairs = config.d_model // 2
    size = max(1, CHUNK // pairs)
    for first in range(0, flat.size, size):
        chunk = slice(first, first + size)
        yield chunk, _rotations(flat[chunk], config)


@lru_cache(maxsize=8)
def _block_of_rotations(step: int, config: FrequencyConfig) -> ComplexArray:
    """T(0), T(step), …, T(63·step)."""
    return _rotations(step * np.arange(BLOCK), config)


# Tables


def _covered_range(positions: NDArray) -> range | None:
    """The integers from the smallest position to the largest, where they are no more than there
    are positions. It is then quicker to compute a table of that range and to look them up."""
    if positions.dtype.kind != "i" or positions.size < BLOCK:
        return None
    covered = range(int(positions.min()), int(positions.max()) + 1)
    return covered if covered.stop - covered.start <= positions.size else None


def _table(
    seq_len: int,
    start: int,
    config: FrequencyConfig,
    layout: Layout,
    dtype: DTypeLike,
    workers: int = 1,
) -> NDArray:
    table = np.empty((seq_len, config.d_model), dtype)

    def fill(first: int) -> None:
        _fill(table[first : first + ROWS_PER_TASK], start + first, config, layout)

    tasks = range(0, seq_len, ROWS_PER_TASK)
    if workers == 1 or len(tasks) <= 1:
        for first in tasks:
            fill(first)
    else:
        with ThreadPoolExecutor(workers) as pool:  # NumPy multiplies without Python's lock
            list(pool.map(fill, tasks))  # list() raises here what was raised in a thread
    return table


def _fill(rows: FloatArray, start: int, config: FrequencyConfig, layout: Layout) -> None:
    """Write PE(start + 64a + b) = PE(start) · T(64a) · T(b) into row 64a + b, for at most 64² rows.
    The last block may be shorter."""
    within_block = _block_of_rotations(1, config)
    between_blocks = _block_of_rotations(BLOCK, config)
    encoding_of_start = ENCODING_OF_0 * _rotations(np.array([start]), config)
    first_rows = encoding_of_start * between_blocks[: _blocks_that_hold(len(rows))]
    if _can_view_as_complex(rows.dtype, layout):
        _store_products(first_rows, within_block, rows)
        return
    for a, first_row in enumerate(first_rows):
        block = rows[BLOCK * a : BLOCK * (a + 1)]
        _store(first_row * within_block[: len(block)], block, layout)


def _blocks_that_hold(rows: int) -> int:
    """The last block may be shorter."""
    return (rows + BLOCK - 1) // BLOCK


@_underflow_is_right()
def _store_products(first_rows: ComplexArray, within_block: ComplexArray, rows: FloatArray) -> None:
    """All whole blocks in one product, which takes less time than a product for each where rows are
    short, and then the last block if it is shorter."""
    whole = len(rows) // BLOCK
    pairs = _as_complex(rows)
    blocks = pairs[: BLOCK * whole].reshape(whole, BLOCK, pairs.shape[-1])
    rest = pairs[BLOCK * whole :]
    usual = np.setbufsize(BUFFER)
    try:
        np.multiply(first_rows[:whole, np.newaxis], within_block, out=blocks, casting="same_kind")
        np.multiply(first_rows[whole:], within_block[: len(rest)], out=rest, casting="same_kind")
    finally:
        np.setbufsize(usual)


@_underflow_is_right()
def _store(pairs: ComplexArray, rows: FloatArray, layout: Layout) -> None:
    pairs = _through_float32(pairs, rows.dtype)
    sines, cosines = _halves(rows, layout)
    sines[...], cosines[...] = pairs.real, pairs.imag


def _through_float32(pairs: NDArray, dtype: np.dtype) -> NDArray:
    """A float16 entry is rounded from the float32 entry, as it is in PyTorch."""
    return pairs.astype(np.complex64) if dtype == np.float16 else pairs


def _halves(array: NDArray, layout: Layout) -> tuple[NDArray, NDArray]:
    """Views of the sine and the cosine entries along the last axis."""
    if layout == "interleaved":
        return array[..., 0::2], array[..., 1::2]
    middle = array.shape[-1] // 2
    return array[..., :middle], array[..., middle:]


def _can_view_as_complex(dtype: np.dtype, layout: Layout) -> bool:
    """Whether a pair [s, c] lies in memory as the complex number s + ic does."""
    return layout == "interleaved" and dtype.isnative and dtype.itemsize > 2


def _as_complex(rows: FloatArray) -> NDArray:
    """Interleaved pairs [s, c] as the complex numbers s + ic: a view, unless rows have gaps."""
    if rows.strides[-1] != rows.itemsize:
        rows = np.ascontiguousarray(rows)
    return rows.view(np.result_type(rows, np.complex64))


# Arguments


def _as_positions(name: str, values: ArrayLike) -> NDArray:
    """Real numbers below 2⁶³ in magnitude: integers as int64, others as float64."""
    array = as_array(name, values)
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    if array.dtype.kind == "u":
        if array.size and (largest := array.max()) >= 2**63:
            raise ValueError(f"{name} must be finite and fit 64 bits, got {largest}")
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        raise TypeError(f"{name} must be real numbers that fit 64 bits, got {check.brief(values)}")
    if check.is_half_type(array):
        raise TypeError(check.half_positions(name, array.dtype))
    with np.errstate(over="ignore"):  # what a float64 cannot hold becomes infinite, and is refused
        numbers = array.astype(np.float64)
    good = (numbers >= -(2.0**63)) & (numbers < 2.0**63)
    if not good.all():
        raise ValueError(f"{name} must be finite and fit 64 bits, got {numbers[~good].flat[0]}")
    return numbers


def _as_float_dtype(dtype: DTypeLike) -> np.dtype:
    allowed = (np.float16, np.float32, np.float64)
    try:
        resolved = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        resolved = None
    if resolved is None or dtype is None or resolved not in allowed:
        raise TypeError(f"dtype must be float16, float32 or float64, got {dtype!r}")
    return resolved


def _as_floats(name: str, values: ArrayLike, *, axes: int) -> FloatArray:
    array = as_array(name, values)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} must be of float16, float32 or float64, got {array.dtype}")
    check.axes(name, array.shape, at_least=axes)
    return array
