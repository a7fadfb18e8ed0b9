"""Sinusoidal positional encoding in NumPy: the reference implementation.

Conventions, the same throughout the book: positions count from 0; pair i = 0 … d_model/2 − 1 turns
at the angular frequency ω_i; the encoding of a position is a **row**, so a shift multiplies from
the right,

    PE(x + Δx) = PE(x) · T(Δx).

The source of the encoding is Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

The theorem is the algorithm
----------------------------
A pair [s, c] is kept as the complex number s + ic. The 2×2 block of T(x) is then the number
cos ω_ix − i sin ω_ix, and PE(x) is PE(0) = i turned by it. A table is never computed sine by sine:

    PE(start + 64a + b) = PE(start) · T(64a) · T(b),    0 ≤ a, b < 64,

one complex product an entry, with T(b) and T(64a) computed once for each set of frequencies. T(1)
is never chained: that drifts.

Accuracy
--------
Let u = 2⁻⁵³. For even d_model up to 16384, base ≥ 1, both spacings and **integer positions of
magnitude up to 2³²**, every entry is within 2⁻⁵⁰ = 8u of the exact real number before the one
rounding to the dtype you ask for. So a float64 entry is within 2⁻⁵⁰, a float32 entry within
½ ulp + 2⁻⁵⁰: half an ulp to nine digits for entries above ½, and an absolute promise near the zeros
of sine and cosine, where relative accuracy costs more than it is worth.

*Proof.*

(1) ``_turn`` splits ω/2π so that a position times each part of it is exact, and takes whole turns
    off exactly (``pe_lib._exact``). What is left is one of 1024 stored marks, known to far more
    than 53 bits, and a rest of less than 0.0031, whose errors come to less than 0.05u. Their sum is
    rounded by at most ½u. So each part of T(x) is within 0.55u, and T(x) within √2·0.55u < 0.78u.
    No sine or cosine of the platform is called: nothing is assumed about them.
(2) Turning does not stretch errors: the product of numbers within δ and ε of two points of the
    circle is, before its rounding, within δ + ε + δε of the product of the points.
(3) The rounding moves a product z by at most √5·u·abs(z) (Brent, Percival and Zimmermann, 2007,
    "Error bounds on complex floating-point multiplication"), and by at most 2u·abs(z) where the
    processor fuses products and sums (Jeannerod, Kornerup, Louvet and Muller, 2017).
(4) So PE(start)·T(64a) is within 2·0.78u + √5·u < 3.80u, and its product with T(b) within
    3.80u + 0.78u + √5·u < 6.82u. The terms in u² do not fill the gap to 8u. ∎

`sinusoidal_encoding` stores what ``_turn`` gives, within 0.55u, and takes float positions to the
same 2⁻⁵⁰: their fractions add 1.2u. Where integers lie close together it forms them as the entries
of a table, and (4) holds. Beyond 2³² the products are no longer exact, and the error may grow to
2⁻⁵⁰ + abs(x)·2⁻⁵², that of an angle rounded to float64.

Bad input
---------
A ``TypeError`` or ``ValueError`` names the argument, the value it got and what is allowed: an odd
``d_model``, a ``base`` below 1, a position that is not finite, an integer ``x``, shapes that do not
fit. Nothing is written into what you pass, and nothing returned is a view of a cache.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pe_lib import _checks, _exact
from pe_lib._checks import (
    Clocks,
    check_axes,
    check_broadcast,
    check_clocks,
    check_integer,
    check_layout,
    check_leading_axes,
    check_real,
    check_row_width,
    check_same_rows,
    check_start,
)

__all__ = [
    "AttentionTerms",
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
FloatArray = NDArray[np.floating]
ComplexArray = NDArray[np.complex128]

ENCODING_OF_0 = 1j  # the pair [sin 0, cos 0]
BLOCK = 64  # rows that share one product with PE(start)·T(64a)
SHARE = 16  # positions to a block, on average, from which it pays to rotate them from there
WORTH_A_THREAD = 2**19  # entries; to start a thread takes about as long as a fifth of them
CHUNK = 2**12  # pairs computed at a time, so that what is temporary stays in the cache


class AttentionTerms(NamedTuple):
    """The four parts of an attention score, each of shape (…, n, m).

    Examples
    --------
    >>> one = np.ones((1, 2))
    >>> terms = attention_terms(one, 3 * one, one, one, np.eye(2), np.eye(2))
    >>> terms.content_content, terms.position_position
    (array([[6.]]), array([[2.]]))
    """

    content_content: FloatArray
    content_position: FloatArray
    position_content: FloatArray
    position_position: FloatArray


def frequencies(
    d_model: SupportsIndex, *, base: SupportsFloat = 10_000.0, spacing: Spacing = "paper"
) -> NDArray[np.float64]:
    """Angular frequencies ω_i of the d_model/2 pairs, in radians per position.

    ``spacing="paper"`` gives ω_i = base^(−2i/d_model), whose last value stays short of 1/base.
    ``spacing="tensor2tensor"`` gives ω_i = base^(−i/(d_model/2 − 1)), whose last value is 1/base;
    so do the authors' own code and the libraries that descend from it. At d_model = 2 both are [1].

    Parameters
    ----------
    d_model
        Width of the encoding, a positive even integer.
    base
        The 10000 of the paper, a finite number of at least 1.
    spacing
        ``"paper"`` or ``"tensor2tensor"``.

    Returns
    -------
    float64 array of shape (d_model/2,)
        From 1 downwards, each the nearest to the exact value.

    Examples
    --------
    >>> frequencies(4, base=100)
    array([1. , 0.1])
    >>> frequencies(4, base=100, spacing="tensor2tensor")
    array([1.  , 0.01])
    """
    return _exact.frequencies(check_clocks(d_model, base, spacing)).copy()


def sinusoidal_table(
    seq_len: SupportsIndex,
    d_model: SupportsIndex,
    *,
    start: SupportsIndex = 0,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
    dtype: DTypeLike = np.float32,
    workers: SupportsIndex = 1,
) -> FloatArray:
    """Encodings of the contiguous positions start … start + seq_len − 1.

    Parameters
    ----------
    seq_len
        Number of positions, an integer of at least 0.
    d_model, base, spacing
        As for `frequencies`.
    start
        First position, an integer that fits 64 bits.
    layout
        ``"interleaved"`` for [sin ω_0x, cos ω_0x, sin ω_1x, …], ``"split"`` for all the sines
        followed by all the cosines.
    dtype
        float16, float32 or float64, each rounded once.
    workers
        Threads that share a long table, at least 1. They change no bit of it.

    Returns
    -------
    array of shape (seq_len, d_model)
        New. For positions of magnitude up to 2³² each entry is within 2⁻⁵⁰ of the exact value
        before its rounding to ``dtype``: see "Accuracy" in this module. A longer table starts with
        the shorter one, bit for bit.

    Examples
    --------
    >>> sinusoidal_table(2, 4, base=100, dtype=np.float64).round(3)
    array([[0.   , 1.   , 0.   , 1.   ],
           [0.841, 0.54 , 0.1  , 0.995]])
    """
    seq_len, start = check_integer("seq_len", seq_len, at_least=0), check_start(start)
    clocks = check_clocks(d_model, base, spacing)
    check_layout(layout)
    workers = check_integer("workers", workers, at_least=1)
    table = np.empty((seq_len, clocks.d_model), _as_float_dtype(dtype))
    _fill(table, start, clocks, layout, max(1, min(workers, table.size // WORTH_A_THREAD)))
    return table


def sinusoidal_encoding(
    positions: ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
    dtype: DTypeLike = np.float32,
) -> FloatArray:
    """Encodings of any positions: integers or floats, negative too, in any order and shape.

    Parameters
    ----------
    positions
        Finite real numbers, of any shape.
    d_model, base, spacing, layout, dtype
        As for `sinusoidal_table`.

    Returns
    -------
    array of shape (…, d_model)
        New, with the axes of ``positions`` first. For integers and floats of magnitude up to 2³²
        each entry is within 2⁻⁵⁰ of the exact value before its rounding to ``dtype``, beyond that
        within 2⁻⁵⁰ + abs(x)·2⁻⁵²: see "Accuracy" in this module.

    Examples
    --------
    >>> sinusoidal_encoding([0, 0.5, -3], 512).shape
    (3, 512)
    """
    positions, clocks = _as_positions("positions", positions), check_clocks(d_model, base, spacing)
    check_layout(layout)
    encoding = np.empty((*positions.shape, clocks.d_model), _as_float_dtype(dtype))
    rows = encoding.reshape(positions.size, clocks.d_model)
    for chunk, pairs in _encode(positions.reshape(-1), clocks):
        _store(rows[chunk], pairs, layout)
    return encoding


@np.errstate(under="ignore")
def rotation_matrix(
    offset: SupportsFloat,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
    dtype: DTypeLike = np.float64,
) -> FloatArray:
    """The matrix T(Δx) with PE(x + Δx) = PE(x) · T(Δx) for every x, written out.

    In the interleaved layout T is block-diagonal with the 2×2 blocks
    [[cos ω_iΔx, −sin ω_iΔx], [sin ω_iΔx, cos ω_iΔx]]. It is meant for teaching and for tests:
    `rotate` applies it without forming it.

    Parameters
    ----------
    offset
        Δx, one finite real number.
    d_model, base, spacing, layout, dtype
        As for `sinusoidal_table`, the dtype being float64 unless you ask for another.

    Returns
    -------
    array of shape (d_model, d_model)
        New, its entries as accurate as those of the encoding.

    Examples
    --------
    >>> rotation_matrix(1, 2).round(3)
    array([[ 0.54 , -0.841],
           [ 0.841,  0.54 ]])
    """
    offset, clocks = check_real("offset", offset), check_clocks(d_model, base, spacing)
    check_layout(layout)
    turned = _turn(np.array(offset), clocks)
    matrix = np.zeros((clocks.d_model, clocks.d_model), _as_float_dtype(dtype))
    s, c = _halves(np.arange(clocks.d_model), layout)  # the columns in which each pair stands
    matrix[s, s] = matrix[c, c] = turned.real
    matrix[s, c], matrix[c, s] = turned.imag, -turned.imag
    return matrix


@np.errstate(under="ignore")
def rotate(
    x: ArrayLike,
    offset: ArrayLike,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
    layout: Layout = "interleaved",
) -> FloatArray:
    """x · T(Δx), row by row, without forming T: O(d_model) operations a row.

    T turns a [sin, cos] pair clockwise. Rotary embedding with the sign of RoFormer and Llama, which
    turn the other way, is ``rotate(q, -positions)``.

    Parameters
    ----------
    x
        Real floating-point array of shape (…, d_model), d_model even.
    offset
        Δx: a number, or an array that broadcasts to ``x.shape[:-1]``.
    base, spacing, layout
        As for `sinusoidal_table`.

    Returns
    -------
    array of x's shape and dtype
        New. For offsets of magnitude up to 2³² the error of a pair is at most 3·2⁻²⁴ times its
        length for float32, and 5·2⁻⁵³ times for float64: √5 for the product, the rest for T: see
        "Accuracy" in this module. float16 is computed in float32.

    Examples
    --------
    >>> row = sinusoidal_encoding(3, 8, dtype=np.float64)
    >>> np.allclose(rotate(row, 4), sinusoidal_encoding(7, 8, dtype=np.float64))
    True
    """
    x = _as_floats("x", x, axes=1)
    clocks = check_clocks(x.shape[-1], base, spacing, "the last axis of x")
    check_layout(layout)
    offset = _as_positions("offset", offset)
    check_broadcast("offset", offset.shape, x.shape[:-1], "x.shape[:-1]")

    turned = _turn_all(offset, clocks, np.result_type(x, np.complex64))
    rotated = np.empty(x.shape, x.dtype)
    if _holds_pairs(x.dtype, layout):
        _multiply(_as_complex(x), turned, _as_complex(rotated))
    else:
        (s, c), (new_s, new_c) = _halves(x, layout), _halves(rotated, layout)
        cos, sin = turned.real, -turned.imag
        new_s[...], new_c[...] = s * cos + c * sin, c * cos - s * sin
    return rotated


def similarity(
    offset: ArrayLike,
    d_model: SupportsIndex,
    *,
    base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper",
) -> NDArray[np.float64]:
    """Cosine between PE(x) and PE(x + Δ), whatever x: the mean of cos ω_iΔ over the pairs.

    It is K(Δ)/(d_model/2) with K(Δ) = PE(x)·PE(x + Δ) = Σ_i cos ω_iΔ.

    Parameters
    ----------
    offset
        Δ, finite real numbers of any shape.
    d_model, base, spacing
        As for `frequencies`.

    Returns
    -------
    float64 array of offset's shape
        Zero-dimensional for a number. Within 2⁻⁴⁷ for offsets of magnitude up to 2³².

    Examples
    --------
    >>> float(similarity(0, 512))
    1.0
    """
    offset, clocks = _as_positions("offset", offset), check_clocks(d_model, base, spacing)
    cosine = np.empty(offset.shape)
    for chunk, turned in _turns(offset, clocks):
        cosine.reshape(-1)[chunk] = turned.real.mean(axis=-1)
    return cosine


def attention_terms(
    x: ArrayLike, y: ArrayLike, e: ArrayLike, f: ArrayLike, w_q: ArrayLike, w_k: ArrayLike
) -> AttentionTerms:
    """Split the score (x + e)W_q · ((y + f)W_k)ᵀ into its four terms, not scaled by √d_k.

    Parameters
    ----------
    x, e
        Content and position of the queries, shape (…, n, d_model); leading axes may broadcast.
    y, f
        Content and position of the keys, shape (…, m, d_model); leading axes may broadcast.
    w_q, w_k
        Projections of shape (d_model, d_k).

    Returns
    -------
    AttentionTerms
        Each of shape (…, n, m). Their sum is the score.

    Examples
    --------
    >>> one = np.ones((1, 2))
    >>> [float(term.item()) for term in attention_terms(one, one, one, one, np.eye(2), np.eye(2))]
    [2.0, 2.0, 2.0, 2.0]
    """
    rows = (("x", x), ("y", y), ("e", e), ("f", f), ("w_q", w_q), ("w_k", w_k))
    x, y, e, f, w_q, w_k = (_as_floats(name, values, axes=2) for name, values in rows)
    if w_q.ndim != 2 or w_q.shape != w_k.shape:
        raise ValueError(
            f"w_q and w_k must have one shape (d_model, d_k), got {w_q.shape} and {w_k.shape}"
        )
    for name, array in (("x", x), ("y", y), ("e", e), ("f", f)):
        check_row_width(name, array.shape[-1], w_q.shape[0])
    check_same_rows("e", e.shape, "x", x.shape)
    check_same_rows("f", f.shape, "y", y.shape)
    check_leading_axes({"x": x.shape, "e": e.shape, "y": y.shape, "f": f.shape})
    (x, e), (y, f) = np.broadcast_arrays(x, e), np.broadcast_arrays(y, f)
    queries, keys = (x @ w_q, e @ w_q), (y @ w_k, f @ w_k)
    return AttentionTerms(*(q @ k.swapaxes(-1, -2) for q in queries for k in keys))


@np.errstate(under="ignore")
def _turn(positions: NDArray[np.float64], clocks: Clocks) -> ComplexArray:
    """T(x) as the numbers cos ω_ix − i sin ω_ix, shape (*positions.shape, pairs)."""
    turns, marks = _exact.turns(clocks), _exact.marks()
    whole = np.rint(positions)[..., np.newaxis]
    part = positions[..., np.newaxis] - whole
    high = _fraction(_fraction(whole * turns.coarse) + whole * turns.medium)  # exact up to 2³²
    low = _fraction(whole * turns.fine + part * turns.nearest)
    mark = np.rint((high + low) * _exact.MARKS)
    angle = 2 * np.pi * ((high - mark / _exact.MARKS) + low)  # below 0.0031

    square = angle * angle
    rest = np.empty(angle.shape, np.complex128)  # e^(−i·angle) − 1, by its series
    rest.real = square * (square / 24 - 0.5)
    rest.imag = -angle * (1 - square * (1 / 6 - square / 120))
    index = mark.astype(np.int64) & (_exact.MARKS - 1)  # MARKS is a power of 2
    nearest = marks.nearest[index]
    rest *= nearest
    rest += marks.missing[index]
    rest += nearest
    return rest


def _fraction(turns: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is left of an angle in turns, from −½ to ½, when the whole turns are taken off."""
    return turns - np.rint(turns)


def _turns(positions: NDArray[np.float64], clocks: Clocks) -> Iterator[tuple[slice, ComplexArray]]:
    """`_turn` of the positions in order, a chunk at a time."""
    flat = positions.reshape(-1)
    for chunk in _chunks(flat, clocks):
        yield chunk, _turn(flat[chunk], clocks)


def _chunks(positions: NDArray[np.float64], clocks: Clocks) -> Iterator[slice]:
    size = max(1, 2 * CHUNK // clocks.d_model)
    return (slice(first, first + size) for first in range(0, positions.size, size))


def _encode(
    positions: NDArray[np.float64], clocks: Clocks, unit: int = 1
) -> Iterator[tuple[slice, ComplexArray]]:
    """PE(unit·x), as sin + i cos, of the positions x in order, a chunk at a time. Where integers
    share few blocks of 64 it is PE(64·unit·a)·T(unit·b), and the blocks are encoded like this too.
    """
    if (shared := _shared_blocks(positions)) is None or unit > BLOCK:
        for chunk, turned in _turns(unit * positions, clocks):
            yield chunk, ENCODING_OF_0 * turned
        return
    blocks, which = shared
    ahead = np.empty((blocks.size, clocks.d_model // 2), np.complex128)
    for chunk, pairs in _encode(blocks, clocks, BLOCK * unit):
        ahead[chunk] = pairs
    for chunk in _chunks(positions, clocks):
        pairs = ahead.take(which[chunk], axis=0)
        steps = positions[chunk] - BLOCK * blocks[which[chunk]]
        pairs *= _powers(unit, clocks).take(steps.astype(np.intp), axis=0)
        yield chunk, pairs


def _shared_blocks(
    positions: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.intp]] | None:
    """The blocks of 64 that integers lie in, and which of them is each one's; None if too few share
    one, or for fractions."""
    if positions.size < SHARE or not np.array_equal(positions, np.rint(positions)):
        return None
    blocks, which = np.unique(np.floor(positions / BLOCK), return_inverse=True)
    return (blocks, which) if SHARE * blocks.size <= positions.size else None


def _turn_all(positions: NDArray[np.float64], clocks: Clocks, dtype: DTypeLike) -> ComplexArray:
    """`_turn` of the positions, in a complex dtype."""
    turned = np.empty((*positions.shape, clocks.d_model // 2), dtype)
    rows = turned.reshape(positions.size, clocks.d_model // 2)
    for chunk, values in _turns(positions, clocks):
        rows[chunk] = values
    return turned


@lru_cache(maxsize=8)
def _powers(step: int, clocks: Clocks) -> ComplexArray:
    """T(0), T(step), …, T(63·step)."""
    return _turn_all(step * np.arange(float(BLOCK)), clocks, np.complex128)


def _fill(table: FloatArray, start: int, clocks: Clocks, layout: Layout, workers: int) -> None:
    """Every worker takes the next part that is left; one of them is the caller's thread."""
    parts = deque(_parts(table, start, clocks, workers))

    def work() -> None:
        while True:
            try:
                rows, ahead = parts.popleft()
            except IndexError:  # no part is left
                return
            _fill_blocks(rows, ahead, clocks, layout)

    if workers == 1:
        return work()
    with ThreadPoolExecutor(workers - 1) as pool:  # NumPy multiplies without Python's lock
        try:
            others = [pool.submit(work) for _ in range(1, workers)]
        except RuntimeError:  # no thread can be started any more: the interpreter is shutting down
            others = []
        work()
    for other in others:
        other.result()


def _parts(
    table: FloatArray, start: int, clocks: Clocks, workers: int
) -> Iterator[tuple[FloatArray, ComplexArray]]:
    """The rows of a table, 64² at a time and these in equal parts, each with the
    PE(origin)·T(64a) of its blocks."""
    for row in range(0, len(table), BLOCK * BLOCK):
        rows = table[row : row + BLOCK * BLOCK]
        ahead = ENCODING_OF_0 * _turn(np.array([float(start + row)]), clocks)
        if len(rows) > BLOCK:
            ahead = ahead * _powers(BLOCK, clocks)[: -(-len(rows) // BLOCK)]
        size = -(-len(ahead) // workers)
        for a in range(0, len(ahead), size):
            yield rows[a * BLOCK : (a + size) * BLOCK], ahead[a : a + size]


def _fill_blocks(rows: FloatArray, ahead: ComplexArray, clocks: Clocks, layout: Layout) -> None:
    """A block of 64 rows, ahead[a]·T(0) … ahead[a]·T(63), for each a; the last may be shorter."""
    near = _powers(1, clocks)
    whole, left = divmod(len(rows), BLOCK)
    blocks = rows[: whole * BLOCK].reshape(whole, BLOCK, clocks.d_model)
    _store_products(blocks, ahead[:whole], near, layout)
    if left:
        _store_products(rows[np.newaxis, -left:], ahead[-1:], near[:left], layout)


def _store_products(
    rows: FloatArray, ahead: ComplexArray, near: ComplexArray, layout: Layout
) -> None:
    """``rows[a, b] = ahead[a] · near[b]``, straight into the rows where they can hold pairs."""
    if _holds_pairs(rows.dtype, layout):
        _multiply(ahead[:, np.newaxis], near, _as_complex(rows))
        return
    step = max(1, CHUNK // near.shape[-1])
    for block, first in zip(rows, ahead, strict=True):
        for b in range(0, len(near), step):
            _store(block[b : b + step], first * near[b : b + step], layout)


def _multiply(a: NDArray, b: NDArray, out: NDArray) -> None:
    """``out[...] = a * b`` in out's dtype, as many products at a time as fit the L1 cache: a row if
    it does, so that a factor which is the same for all rows need not be copied beside itself."""
    pairs = out.shape[-1]
    with np.errstate(under="ignore"):  # the size of the buffer, a multiple of 16, ends with it
        np.setbufsize(-(-pairs // 16) * 16 if 256 <= pairs <= 768 else 640)
        np.multiply(a, b, out=out, casting="same_kind")


@np.errstate(under="ignore")
def _store(rows: FloatArray, pairs: ComplexArray, layout: Layout) -> None:
    if _holds_pairs(rows.dtype, layout):
        _as_complex(rows)[...] = pairs
        return
    sines, cosines = _halves(rows, layout)
    sines[...], cosines[...] = pairs.real, pairs.imag


def _halves(array: NDArray, layout: Layout) -> tuple[NDArray, NDArray]:
    """Views of the sine and the cosine entries along the last axis."""
    if layout == "interleaved":
        return array[..., 0::2], array[..., 1::2]
    middle = array.shape[-1] // 2
    return array[..., :middle], array[..., middle:]


def _holds_pairs(dtype: np.dtype, layout: Layout) -> bool:
    """Whether two neighbours in memory are what NumPy takes for a complex number."""
    return layout == "interleaved" and dtype.isnative and dtype.itemsize > 2


def _as_complex(rows: FloatArray) -> NDArray:
    """Interleaved pairs [s, c] as the complex numbers s + ic: a view, unless rows have gaps."""
    if rows.strides[-1] != rows.itemsize:
        rows = np.ascontiguousarray(rows)
    return rows.view(np.result_type(rows, np.complex64))


def _as_positions(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Finite real numbers as float64; integers up to 2⁵³ stay exact."""
    array = _as_array(name, values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, got {values!r} of dtype {array.dtype}")
    with np.errstate(over="ignore"):  # what a float64 cannot hold becomes infinite, and is refused
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].flat[0]
        raise ValueError(f"{name} must be finite, got {bad}")
    return array


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
    array = _as_array(name, values)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} must be of float16, float32 or float64, got {array.dtype}")
    check_axes(name, array.shape, at_least=axes)
    return array


def _as_array(name: str, values: ArrayLike) -> NDArray:
    try:
        return np.asarray(values)
    except ValueError:  # NumPy's own message does not name the argument
        raise ValueError(f"{name} must have rows of one length, got {values!r}") from None
