"""Sinusoidal positional encoding in NumPy: the reference implementation.

Conventions, the same throughout the book: positions count from 0; pair i = 0 … d_model/2 − 1 turns
at the angular frequency ω_i, in radians per position; the encoding of a position is a **row**, so a
shift multiplies from the right: PE(x + Δx) = PE(x) · T(Δx). Source: Vaswani et al. (2017), § 3.5.

The angle is an integer
-----------------------
An angle ω·x of a far position, rounded to float64, is wrong by half an ulp of a large number. But
whole turns do not matter. So f = ω/2π, in turns per position, is stored as a fraction of 128 bits,
and x·f is formed in integers that wrap: at 2⁶⁴, one turn, a 64-bit integer starts again at 0, and
whole turns are gone without a rounding error. What is left is the nearest of 1024 marks, stored to
more digits than a float64 has, and a small rest, which needs three terms of a series.

The theorem is the algorithm
----------------------------
A pair [s, c] is kept as the complex number s + ic. The 2×2 block of T(x) is then the number
cos ω_ix − i sin ω_ix, and PE(x) is PE(0) = i turned by it. A table is never computed sine by sine:

    PE(start + 64a + b) = PE(start) · T(64a) · T(b),    0 ≤ a, b < 64,

one complex product an entry, with T(b) and T(64a) computed once for each set of frequencies. T(1)
is never chained: that drifts.

Accuracy
--------
Let u = 2⁻⁵³. For d_model up to 16384 and **every integer position of magnitude up to 2⁵³**, every
entry is within 2⁻⁵⁰ = 8u of the exact real number before the one rounding to the dtype you ask for.
So a float64 entry is within 2⁻⁵⁰, a float32 entry within ½ ulp + 2⁻⁵⁰: half an ulp to seven digits
for entries above ½, and an absolute promise near the zeros of sine and cosine.

*Proof.*

(1) ``_turn`` forms x·f in units of 2⁻⁶⁴ of a turn: x·high exactly, by wrap-around, and x·low, at
    most 2⁵² units, rounded to an integer. That rounding, of ½ unit, is less than 0.002u in radians.
    The rest beside the nearest mark is an integer of at most 2⁵³, so exact as a float64, and below
    0.0031 radians; its conversion, the series (whose first missing term is 0.0031⁶/720 = 0.01u) and
    the product with the mark err by less than 0.05u. Mark and rest are summed, with a rounding of
    at most ½u. So each part of T(x) is within 0.55u, and T(x) within √2·0.55u < 0.78u.
(2) Turning does not stretch errors: the product of numbers within δ and ε of two points of the
    circle is, before its rounding, within δ + ε + δε of the product of the points.
(3) The rounding moves a product z by at most √5·u·abs(z) (Brent, Percival and Zimmermann, 2007,
    "Error bounds on complex floating-point multiplication"), and by at most 2u·abs(z) where the
    processor fuses products and sums (Jeannerod, Kornerup, Louvet and Muller, 2017).
(4) So PE(start)·T(64a) is within 2·0.78u + √5·u < 3.80u, and its product with T(b) within
    3.80u + 0.78u + √5·u < 6.82u. The terms in u² do not fill the gap to 8u. ∎

It holds for float positions up to 2⁵³ and frequencies up to π as well: the part after the point, at
most ½, turns by the platform's sine and cosine, which are trusted to an ulp, and its angle, both
functions and the product add at most πu + √2·u + √5·u to 0.78u. From 2⁵³ to 2⁶³, where positions
end, x·low has more digits than a float64, and the error may grow by abs(x)·2⁻¹¹³.

A ``TypeError`` or ``ValueError`` names the argument, the value it got and what is allowed. Nothing
is written into what you pass, and nothing returned is a view of a cache.
"""

import reprlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pe_lib import _checks as check
from pe_lib import _exact
from pe_lib._checks import Layout, Spacing, Spec

__all__ = [
    "AttentionTerms", "attention_terms", "frequencies", "rotate", "rotation_matrix", "similarity",
    "sinusoidal_encoding", "sinusoidal_table",
]  # fmt: skip

if TYPE_CHECKING:  # the default of a type variable came with Python 3.13
    from typing_extensions import TypeVar

    F = TypeVar("F", bound=np.floating, default=np.floating)
else:
    F = np.floating
FloatArray = NDArray[np.floating]
ComplexArray = NDArray[np.complex128]
Part = tuple[FloatArray, ComplexArray, ComplexArray]

ENCODING_OF_0 = 1j  # the pair [sin 0, cos 0]
BLOCK = 64  # rows that share one product with PE(start)·T(64a)
WORTH_A_THREAD = 2**19  # entries; to start a thread takes about as long as a fifth of them
CHUNK = 2**12  # pairs computed at a time, so that what is temporary stays in the cache


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
    ``d_model`` is positive and even, ``base``, the 10000 of the paper, at least 1. Each is the
    float64 nearest to the exact value.

    >>> frequencies(4, base=100)
    array([1. , 0.1])
    """
    return _exact.phase(check.spec(d_model, base, spacing))[0].copy()


def sinusoidal_table(
    seq_len: SupportsIndex, d_model: SupportsIndex, *, start: SupportsIndex = 0,
    base: SupportsFloat = 10_000.0, spacing: Spacing = "paper",
    frequencies: ArrayLike | None = None, layout: Layout = "interleaved",
    dtype: type[F] | np.dtype[F] | str = "float32", workers: SupportsIndex = 1,
) -> NDArray[F]:  # fmt: skip
    """Encodings of the contiguous positions start … start + seq_len − 1, one a row.

    ``d_model``, ``base`` and ``spacing`` are as for `frequencies`; ``frequencies=`` takes d_model/2
    numbers of magnitude up to 2²⁰ in their place. ``layout`` is ``"interleaved"`` for [sin ω_0x,
    cos ω_0x, sin ω_1x, …], or ``"split"`` for all the sines followed by all the cosines. ``dtype``
    is float16, float32 or float64. ``start`` and the last position must fit 64 bits. ``workers``
    are threads that share a long table; they change no bit of it.

    The result is new, of shape (seq_len, d_model). For positions of magnitude up to 2⁵³ each entry
    is within 2⁻⁵⁰ of the exact value before its one rounding to ``dtype``: see "Accuracy" in this
    module. A longer table starts with the shorter one, bit for bit.

    >>> sinusoidal_table(1, 4, start=1, base=100, dtype=np.float64).round(3)
    array([[0.841, 0.54 , 0.1  , 0.995]])
    """
    seq_len = check.integer("seq_len", seq_len, at_least=0)
    start, spec = check.start(start, seq_len), check.spec(d_model, base, spacing, frequencies)
    check.choice("layout", layout, check.LAYOUTS)
    workers = check.integer("workers", workers, at_least=1)
    return _table(seq_len, start, spec, layout, _as_float_dtype(dtype), workers)


def sinusoidal_encoding(
    positions: ArrayLike, d_model: SupportsIndex, *, base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper", frequencies: ArrayLike | None = None,
    layout: Layout = "interleaved", dtype: type[F] | np.dtype[F] | str = "float32",
) -> NDArray[F]:  # fmt: skip
    """Encodings of any positions: integers or floats, negative too, in any order and shape.

    The result, a new array of shape (…, d_model), has the axes of ``positions`` first. For integers
    and floats of magnitude up to 2⁵³ it is as accurate as a `sinusoidal_table`, whose other
    arguments it takes; beyond that, up to 2⁶³, within 2⁻⁵⁰ + abs(x)·2⁻¹¹³.

    >>> sinusoidal_encoding([0, 0.5, -3], 512).shape
    (3, 512)
    """
    spec = check.spec(d_model, base, spacing, frequencies)
    positions, dtype = _as_positions("positions", positions), _as_float_dtype(dtype)
    check.choice("layout", layout, check.LAYOUTS)
    if (dense := _dense_range(positions)) is not None:
        first, seq_len = dense
        return _table(seq_len, first, spec, layout, dtype).take(positions - first, axis=0)
    encoding: NDArray = np.empty((*positions.shape, spec.d_model), dtype)
    rows = encoding.reshape(positions.size, spec.d_model)
    for chunk, turned in _turns(positions, spec):
        _store(rows[chunk], ENCODING_OF_0 * turned, layout)
    return encoding


@np.errstate(under="ignore")
def rotation_matrix(
    offset: ArrayLike, d_model: SupportsIndex, *, base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper", frequencies: ArrayLike | None = None,
    layout: Layout = "interleaved", dtype: type[F] | np.dtype[F] | str = "float64",
) -> NDArray[F]:  # fmt: skip
    """The matrix T(Δx) with PE(x + Δx) = PE(x) · T(Δx) for every x, of shape (d_model, d_model).

    In the interleaved layout T is block-diagonal with the 2×2 blocks
    [[cos ω_iΔx, −sin ω_iΔx], [sin ω_iΔx, cos ω_iΔx]]. It is meant for teaching and for tests:
    `rotate` applies it without forming it. The accuracy is that of `sinusoidal_table`.

    >>> rotation_matrix(1, 2).round(3)
    array([[ 0.54 , -0.841],
           [ 0.841,  0.54 ]])
    """
    position = _as_positions("offset", offset)
    check.broadcast("offset", position.shape, (), "one number")
    spec = check.spec(d_model, base, spacing, frequencies)
    check.choice("layout", layout, check.LAYOUTS)
    turned = _turn(position, spec)
    matrix = np.zeros((spec.d_model, spec.d_model), _as_float_dtype(dtype))
    s, c = _halves(np.arange(spec.d_model), layout)  # the columns in which each pair stands
    matrix[s, s] = matrix[c, c] = turned.real
    matrix[s, c], matrix[c, s] = turned.imag, -turned.imag
    return matrix


@np.errstate(under="ignore")
def rotate(
    x: ArrayLike, offset: ArrayLike, *, base: SupportsFloat = 10_000.0, spacing: Spacing = "paper",
    frequencies: ArrayLike | None = None, layout: Layout = "interleaved",
) -> FloatArray:  # fmt: skip
    """x · T(Δx), row by row, without forming T: O(d_model) operations a row.

    T turns a [sin, cos] pair clockwise. Rotary embedding with the sign of RoFormer and Llama, which
    turn the other way, is ``rotate(q, -positions)``.

    ``x`` is of shape (…, d_model), like the result, new and of its dtype; ``offset`` broadcasts to
    ``x.shape[:-1]``. For integer offsets up to 2⁵³ the error of a pair is at most 3·2⁻²⁴ times its
    length for float32, 5·2⁻⁵³ times for float64; float16 is computed in float32.

    >>> row = sinusoidal_encoding(3, 8, dtype=np.float64)
    >>> np.allclose(rotate(row, 4), sinusoidal_encoding(7, 8, dtype=np.float64))
    True
    """
    x = _as_floats("x", x, axes=1)
    spec = check.spec(x.shape[-1], base, spacing, frequencies, "the last axis of x")
    check.choice("layout", layout, check.LAYOUTS)
    offset = _as_positions("offset", offset)
    check.broadcast("offset", offset.shape, x.shape[:-1], "x.shape[:-1]")

    pairs = spec.d_model // 2
    turned = np.empty((*offset.shape, pairs), np.result_type(x, np.complex64))
    for chunk, values in _turns(offset, spec):
        turned.reshape(-1, pairs)[chunk] = values
    rotated = np.empty(x.shape, x.dtype)
    if _holds_pairs(x.dtype, layout):
        _multiply(_as_complex(x), turned, _as_complex(rotated))
    else:
        (s, c), (new_s, new_c) = _halves(x, layout), _halves(rotated, layout)
        cos, sin = turned.real, -turned.imag
        new_s[...], new_c[...] = s * cos + c * sin, c * cos - s * sin
    return rotated


def similarity(
    offset: ArrayLike, d_model: SupportsIndex, *, base: SupportsFloat = 10_000.0,
    spacing: Spacing = "paper", frequencies: ArrayLike | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """Cosine between PE(x) and PE(x + Δ), whatever x: the mean of cos ω_iΔ over the pairs.

    It is K(Δ)/(d_model/2) with K(Δ) = PE(x)·PE(x + Δ) = Σ_i cos ω_iΔ. ``offset`` is Δ; the result,
    float64, has its shape and is within 2⁻⁴⁷ for magnitudes up to 2⁵³.

    >>> float(similarity(0, 512))
    1.0
    """
    offset = _as_positions("offset", offset)
    spec = check.spec(d_model, base, spacing, frequencies)
    cosine = np.empty(offset.shape)
    for chunk, turned in _turns(offset, spec):
        cosine.reshape(-1)[chunk] = turned.real.mean(axis=-1)
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
    rows = (("x", x), ("y", y), ("e", e), ("f", f), ("w_q", w_q), ("w_k", w_k))
    x, y, e, f, w_q, w_k = (_as_floats(name, values, axes=2) for name, values in rows)
    check.terms(x.shape, y.shape, e.shape, f.shape, w_q.shape, w_k.shape)
    (x, e), (y, f) = np.broadcast_arrays(x, e), np.broadcast_arrays(y, f)
    queries, keys = (x @ w_q, e @ w_q), (y @ w_k, f @ w_k)
    return AttentionTerms(*(q @ k.swapaxes(-1, -2) for q in queries for k in keys))


@np.errstate(under="ignore")
def _turn(positions: NDArray, spec: Spec) -> ComplexArray:
    """T(x) as the numbers cos ω_ix − i sin ω_ix, shape (*positions.shape, pairs)."""
    (omega, high, low), (near, missing) = _exact.phase(spec), _exact.marks()
    positions = positions[..., np.newaxis]
    whole = np.rint(positions.astype(np.float64))
    integer = positions if positions.dtype.kind == "i" else whole.astype(np.int64)
    phase = integer * high + np.rint(whole * (low * 2.0**-64)).astype(np.int64)  # wraps at one turn
    mark = (phase + 2**53) >> 54
    angle = (phase - (mark << 54)) * (2 * np.pi * 2.0**-64)

    square = angle * angle
    rest = np.empty(angle.shape, np.complex128)  # e^(−i·angle) − 1, by its series
    rest.real = square * (square / 24 - 0.5)
    rest.imag = -angle * (1 - square * (1 / 6 - square / 120))
    mark &= _exact.MARKS - 1  # MARKS is a power of 2
    nearest = near[mark]
    rest *= nearest
    rest += missing[mark]
    rest += nearest
    if (part := positions - whole).any():
        rest *= np.cos(part * omega) - 1j * np.sin(part * omega)
    return rest


def _turns(positions: NDArray, spec: Spec) -> Iterator[tuple[slice, ComplexArray]]:
    """`_turn` of the positions in order, a chunk at a time."""
    flat, size = positions.reshape(-1), max(1, 2 * CHUNK // spec.d_model)
    for first in range(0, flat.size, size):
        chunk = slice(first, first + size)
        yield chunk, _turn(flat[chunk], spec)


def _dense_range(positions: NDArray) -> tuple[int, int] | None:
    """First and number of the integers that the positions lie among, if these are no more than they
    are: then a table of them is soon made, and looked up."""
    if positions.dtype.kind != "i" or positions.size < BLOCK:
        return None
    first, last = int(positions.min()), int(positions.max())
    return (first, last - first + 1) if last - first < positions.size else None


@lru_cache(maxsize=8)
def _powers(step: int, spec: Spec) -> ComplexArray:
    """T(0), T(step), …, T(63·step)."""
    return _turn(step * np.arange(BLOCK), spec)


def _table(
    seq_len: int, start: int, spec: Spec, layout: Layout, dtype: DTypeLike, workers: int = 1
) -> NDArray:
    table = np.empty((seq_len, spec.d_model), dtype)
    workers = max(1, min(workers, table.size // WORTH_A_THREAD))
    parts = list(_parts(table, start, spec, workers))

    def work(first: int) -> None:
        for part in parts[first::workers]:
            _store_products(*part, layout)

    if workers == 1:
        work(0)
    else:
        with ThreadPoolExecutor(workers - 1) as pool:  # NumPy multiplies without Python's lock
            others = pool.map(work, range(1, workers))
            work(0)  # the caller's own thread is one of them
            list(others)
    return table


def _parts(table: NDArray, start: int, spec: Spec, workers: int) -> Iterator[Part]:
    """The rows of a table in blocks of 64, 64 blocks at a time and these in equal parts, each with
    PE(origin)·T(64a) of its blocks a, and T(b). The last block may be shorter."""
    near = _powers(1, spec)
    for row in range(0, len(table), BLOCK * BLOCK):
        rows = table[row : row + BLOCK * BLOCK]
        ahead = ENCODING_OF_0 * _turn(np.array([start + row]), spec)
        if len(rows) > BLOCK:
            ahead = ahead * _powers(BLOCK, spec)[: -(-len(rows) // BLOCK)]
        whole, left = divmod(len(rows), BLOCK)
        blocks = rows[: whole * BLOCK].reshape(whole, BLOCK, spec.d_model)
        size = -(-len(ahead) // workers)
        for a in range(0, whole, size):
            yield blocks[a : a + size], ahead[:whole][a : a + size], near
        if left:
            yield rows[np.newaxis, -left:], ahead[-1:], near[:left]


def _store_products(rows: NDArray, ahead: NDArray, near: NDArray, layout: Layout) -> None:
    """``rows[a, b] = ahead[a] · near[b]``, straight into the rows where they can hold pairs."""
    if _holds_pairs(rows.dtype, layout):
        return _multiply(ahead[:, np.newaxis], near, _as_complex(rows))
    for block, first in zip(rows, ahead, strict=True):
        _store(block, first * near, layout)


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


def _holds_pairs(dtype: np.dtype, layout: Layout) -> bool:  # as a complex number does
    return layout == "interleaved" and dtype.isnative and dtype.itemsize > 2


def _as_complex(rows: FloatArray) -> NDArray:
    """Interleaved pairs [s, c] as the complex numbers s + ic: a view, unless rows have gaps."""
    if rows.strides[-1] != rows.itemsize:
        rows = np.ascontiguousarray(rows)
    return rows.view(np.result_type(rows, np.complex64))


def _as_positions(name: str, values: ArrayLike) -> NDArray:
    """Real numbers below 2⁶³ in magnitude: integers as int64, others as float64."""
    array = _as_array(name, values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers that fit 64 bits, got {reprlib.repr(values)}")
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    with np.errstate(over="ignore"):  # what a float64 cannot hold becomes infinite, and is refused
        numbers = array.astype(np.float64)
    if not (good := (numbers >= -(2.0**63)) & (numbers < 2.0**63)).all():
        raise ValueError(f"{name} must be finite and fit 64 bits, got {numbers[~good].flat[0]}")
    return numbers if array.dtype.kind == "f" else array.astype(np.int64)


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
    check.axes(name, array.shape, at_least=axes)
    return array


def _as_array(name: str, values: ArrayLike) -> NDArray:
    try:
        return np.asarray(values)
    except ValueError:  # NumPy's own message does not name the argument
        raise ValueError(
            f"{name} must have rows of one length, got {reprlib.repr(values)}"
        ) from None
