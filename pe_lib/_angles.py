"""What an angle is computed from, and how: integers, a grid, and the proof of the error bound.

Frequencies come from decimal arithmetic, and sines and cosines of a fixed grid of angles from
integer arithmetic, so nothing is assumed about the platform's own pow, sine and cosine. Only such
constants are cached, never an encoding.

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
exceeds π in magnitude: the error is at most 4.46u + abs(ω)·u (step 5 of the proof). With a
frequency above π the bound is 2⁻⁵⁰ + abs(ω)·u.

**Far positions.** From 2⁵³ to 2⁶³, where positions end, x·low has more digits than a float64, and
the error may grow by abs(x)·2⁻¹¹³.

**Rotation and similarity.** A pair of x that is rotated is off by at most 4u times its norm in
float64, and (7 + abs(ω))·u where the position has a fraction (step 6); by 10u where T comes from a
table. In float32 it is off by at most 3·2⁻²⁴ times its norm, as long as nothing underflows. The
similarity at d_model = 2n is within (n + 8)·u, whatever the order of its sum, plus abs(ω)·u for
fractions (step 7).

*Proof*.

(1) ``rotations`` forms x·f in units of 2⁻⁶⁴ of a turn. It takes x·high exactly, because whole
    turns drop out. x·low, at most 2⁵² units, errs by three roundings: that of low to 53 bits and
    that of the product by at most ¼ unit each, and that to an integer by ½. Together they are less
    than 0.005u in radians. The rest beside the nearest grid angle is an integer of at most 2⁵³, so
    exact as a float64, and below 0.0031 radians. Its conversion to radians (two roundings), the
    series (whose first missing term is 0.0031⁶/720 = 0.011u, and whose own roundings are relative
    to 0.0031), the product with the value on the grid and the sum with what that value lacks err by
    less than 0.05u together. The value on the grid is added last, with a rounding of at most ½u. So
    each part of T(x) is within 0.56u, and T(x) within √2·0.56u < 0.80u.
(2) Turning does not stretch errors: the product of numbers within δ and ε of two points of the
    circle is, before its rounding, within δ + ε + δε of the product of the points.
(3) The rounding moves a product z by at most √5·u·abs(z) (Brent, Percival and Zimmermann, 2007,
    "Error bounds on complex floating-point multiplication"), and by at most 2u·abs(z) where the
    processor fuses products and sums (Jeannerod, Kornerup, Louvet and Muller, 2017).
(4) So PE(start)·T(64a) is within 2·0.80u + √5·u < 3.84u, and its product with T(b) within
    3.84u + 0.80u + √5·u < 6.88u. The terms in u² are far smaller than the 1.12u that remain of 8u.
(5) A fraction φ of a position, at most ½ and exact, turns by the platform's sine and cosine, which
    are trusted to an ulp: √2·u. The angle φω errs by abs(ω)·u, half of it from the rounding of ω,
    half from that of the product. With the whole part, T is within
    0.80u + √2·u + abs(ω)·u + √5·u < 4.46u + abs(ω)·u.
(6) In float64 the product with x adds √5·u to T's 0.80u, 4.46u + abs(ω)·u, or, from a table, 6.88u.
    In float32 both parts of T, at most 1, are rounded by at most 2⁻²⁵, so T by √2·2⁻²⁵, and the
    product by √5·2⁻²⁴: together 2.95·2⁻²⁴, beside which u times 2²⁰, the largest frequency, is
    nothing.
(7) Each cosine is within 6.88u, or 4.46u + abs(ω)·u. A sum of n numbers of at most 1, in any order,
    errs by at most n(n − 1)u, and its quotient by n by at most (n − 1)u + ½u. ∎
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pe_lib._checks import FrequencyConfig, Layout

FloatArray = NDArray[np.floating]
ComplexArray = NDArray[np.complex128]

GRID_SIZE = 1024  # angles 2πk/1024; a power of 2
FIFTY_DIGITS = Context(prec=50, Emin=MIN_EMIN, Emax=MAX_EMAX)
TWO_PI = Decimal("6.2831853071795864769252867665590057683943387987502116419499")
ONE = 2**160  # the number 1 in the fixed-point arithmetic that computes the grid
ENCODING_OF_0 = 1j  # the pair [sin 0, cos 0]
BLOCK = 64  # rows of a table that share the rotation of their first row
ROWS_PER_TASK = BLOCK * BLOCK  # rows of a table that one thread computes at a time
BUFFER = 640  # products that NumPy rounds to float32 at a time; its default overflows the L1 cache
CHUNK = 2**12  # pairs computed at a time, so that temporary arrays stay in the processor's cache


class ExactFrequencies(NamedTuple):
    """The frequencies of the pairs, in two forms.

    ``omega`` is the float64 nearest to each, in radians per position. ``high + low`` is the same
    frequency in units of 2⁻⁶⁴ of a turn per position, ω/2π without its whole turns: ``high`` the
    nearest integer, and ``low`` the rest, at most ½. The two have 128 binary digits, of which
    ``low`` keeps the leading 53.
    """

    omega: NDArray[np.float64]
    high: NDArray[np.int64]
    low: NDArray[np.float64]


class Grid(NamedTuple):
    """The numbers cos 2πk/1024 − i sin 2πk/1024 for k = 0 … 1023, each as a sum of two: ``nearest``
    has the nearest float64 of each part, ``missing`` the difference to the exact value."""

    nearest: NDArray[np.complex128]
    missing: NDArray[np.complex128]


@lru_cache(maxsize=16)
def exact_frequencies(config: FrequencyConfig) -> ExactFrequencies:
    exact = _decimal_frequencies(config)
    with localcontext(FIFTY_DIGITS):
        unit = 2**128 / TWO_PI
        phases = [int((omega * unit).to_integral_value()) for omega in exact]
    rests = [_lowest_64_bits(phase) for phase in phases]
    high = [
        _lowest_64_bits((phase - rest) >> 64) for phase, rest in zip(phases, rests, strict=True)
    ]
    return ExactFrequencies(
        omega=np.array([float(omega) for omega in exact]),
        high=np.array(high),
        low=np.array([rest * 2.0**-64 for rest in rests]),
    )


def _decimal_frequencies(config: FrequencyConfig) -> list[Decimal]:
    """The caller's own frequencies as they are, or ω_i = base^(−i/steps) to some 45 digits."""
    if config.frequencies is not None:
        return [Decimal(omega) for omega in config.frequencies]
    pairs = config.d_model // 2
    steps = pairs if config.spacing == "paper" else max(pairs - 1, 1)
    with localcontext(FIFTY_DIGITS):
        ratio = (-Decimal(config.base).ln() / steps).exp()
        omega = [Decimal(1)]
        for _ in range(1, pairs):
            omega.append(omega[-1] * ratio)
    return omega


def _lowest_64_bits(number: int) -> int:
    """As an int64 holds them."""
    return (number + 2**63) % 2**64 - 2**63


@lru_cache(maxsize=1)
def grid() -> Grid:
    """The first quarter of the circle is computed point by point, each from the one before it by
    the rotation theorem. The other quarters follow by symmetry."""
    step_cos, step_sin = _first_grid_step()
    nearest = np.empty(GRID_SIZE // 4, np.complex128)
    missing = np.empty_like(nearest)
    cos, sin = ONE, 0
    for k in range(GRID_SIZE // 4):
        cos_nearest, cos_missing = _as_two_floats(cos)
        sin_nearest, sin_missing = _as_two_floats(sin)
        nearest[k] = complex(cos_nearest, -sin_nearest)
        missing[k] = complex(cos_missing, -sin_missing)
        cos, sin = (
            (cos * step_cos - sin * step_sin) // ONE,
            (sin * step_cos + cos * step_sin) // ONE,
        )
    return Grid(_all_quarters(nearest), _all_quarters(missing))


@lru_cache(maxsize=1)
def grid_of_reals() -> NDArray[np.float64]:
    """The same as four rows of real numbers: cosines, sines, and what each of them lacks."""
    nearest, missing = grid()
    return np.stack((nearest.real, -nearest.imag, missing.real, -missing.imag))


def _first_grid_step() -> tuple[int, int]:
    """cos and sin of 2π/1024 in fixed point, by the exponential series."""
    with localcontext(FIFTY_DIGITS):
        angle = int(TWO_PI * ONE / GRID_SIZE)
    terms = [ONE]  # angleⁿ/n!
    for n in range(1, 24):
        terms.append(terms[-1] * angle // (n * ONE))
    cos = sum(terms[0::4]) - sum(terms[2::4])
    sin = sum(terms[1::4]) - sum(terms[3::4])
    return cos, sin


def _as_two_floats(exact: int) -> tuple[float, float]:
    """The float64 nearest to a fixed-point number, and the difference to it."""
    nearest = exact / ONE
    return nearest, (exact - int(nearest * ONE)) / ONE


def _all_quarters(first: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """A quarter turn multiplies cos − i sin by −i."""
    return np.concatenate([first, -1j * first, -first, 1j * first])


def no_underflow_warnings() -> np.errstate:
    """Suppress underflow warnings: rounding to 0 is correct here, where a very slow pair has turned
    by less than the smallest number of the dtype."""
    return np.errstate(under="ignore")


# Rotations: T(x) as complex numbers


@no_underflow_warnings()
def rotations(positions: NDArray, config: FrequencyConfig) -> ComplexArray:
    """T(x) as the numbers cos ω_ix − i sin ω_ix, of shape (*positions.shape, pairs)."""
    frequencies, on_grid = exact_frequencies(config), grid()
    positions = positions[..., np.newaxis]
    whole = np.rint(positions.astype(np.float64))
    integers = positions if positions.dtype.kind == "i" else whole.astype(np.int64)

    # The phase x·f in units of 2⁻⁶⁴ of a turn: int64 wraps around at a whole turn.
    low_part = np.rint(whole * frequencies.low).astype(np.int64)
    phase = integers * frequencies.high + low_part

    # The nearest grid angle, 2⁵⁴ units apart from the next, and the rest, in radians.
    nearest = (phase + 2**53) >> 54
    angle = (phase - (nearest << 54)) * (2 * np.pi * 2.0**-64)
    index = nearest & (GRID_SIZE - 1)  # the remainder, since GRID_SIZE is a power of 2

    # With e^(−i·angle) − 1 by its series: grid + (missing + grid · (e^(−i·angle) − 1)).
    square = angle * angle
    rotations = np.empty(angle.shape, np.complex128)
    rotations.real = square * (square / 24 - 0.5)
    rotations.imag = -angle * (1 - square * (1 / 6 - square / 120))
    nearest_values = on_grid.nearest[index]
    rotations *= nearest_values
    rotations += on_grid.missing[index]
    rotations += nearest_values

    fraction = positions - whole
    if fraction.any():
        angle = fraction * frequencies.omega
        rotations *= np.cos(angle) - 1j * np.sin(angle)
    return rotations


def rotations_in_chunks(
    positions: NDArray, config: FrequencyConfig
) -> Iterator[tuple[slice, ComplexArray]]:
    """`rotations` of the positions, flattened, a chunk at a time, with the place of each chunk."""
    flat = positions.reshape(-1)
    pairs = config.d_model // 2
    size = max(1, CHUNK // pairs)
    for first in range(0, flat.size, size):
        chunk = slice(first, first + size)
        yield chunk, rotations(flat[chunk], config)


@lru_cache(maxsize=8)
def block_of_rotations(step: int, config: FrequencyConfig) -> ComplexArray:
    """T(0), T(step), …, T(63·step)."""
    return rotations(step * np.arange(BLOCK), config)


# Tables


def covered_range(positions: NDArray) -> range | None:
    """The integers from the smallest position to the largest, where they are no more than there
    are positions. It is then quicker to compute a table of that range and to look them up."""
    if positions.dtype.kind != "i" or positions.size < BLOCK:
        return None
    covered = range(int(positions.min()), int(positions.max()) + 1)
    return covered if covered.stop - covered.start <= positions.size else None


def table(
    seq_len: int,
    start: int,
    config: FrequencyConfig,
    layout: Layout,
    dtype: DTypeLike,
    threads: int = 1,
) -> NDArray:
    """PE(start) … in ``threads`` threads, of which each computes 4096 rows at a time. Their number
    changes no bit."""
    table = np.empty((seq_len, config.d_model), dtype)

    def fill(first: int) -> None:
        _fill(table[first : first + ROWS_PER_TASK], start + first, config, layout)

    tasks = range(0, seq_len, ROWS_PER_TASK)
    if threads == 1 or len(tasks) <= 1:
        for first in tasks:
            fill(first)
    else:
        with ThreadPoolExecutor(threads) as pool:  # NumPy multiplies without Python's lock
            list(pool.map(fill, tasks))  # list() raises here what was raised in a thread
    return table


def _fill(rows: FloatArray, start: int, config: FrequencyConfig, layout: Layout) -> None:
    """Write PE(start + 64a + b) = PE(start) · T(64a) · T(b) into row 64a + b, for at most 64² rows.
    The last block may be shorter."""
    within_block = block_of_rotations(1, config)
    between_blocks = block_of_rotations(BLOCK, config)
    encoding_of_start = ENCODING_OF_0 * rotations(np.array([start]), config)
    first_rows = encoding_of_start * between_blocks[: blocks_that_hold(len(rows))]
    if can_view_as_complex(rows.dtype, layout):
        _store_products(first_rows, within_block, rows)
        return
    for a, first_row in enumerate(first_rows):
        block = rows[BLOCK * a : BLOCK * (a + 1)]
        store(first_row * within_block[: len(block)], block, layout)


def blocks_that_hold(rows: int) -> int:
    """The last block may be shorter."""
    return (rows + BLOCK - 1) // BLOCK


@no_underflow_warnings()
def _store_products(first_rows: ComplexArray, within_block: ComplexArray, rows: FloatArray) -> None:
    """All whole blocks in one product, which takes less time than a product for each where rows are
    short, and then the last block if it is shorter."""
    whole = len(rows) // BLOCK
    pairs = as_complex(rows)
    blocks = pairs[: BLOCK * whole].reshape(whole, BLOCK, pairs.shape[-1])
    rest = pairs[BLOCK * whole :]
    usual = np.setbufsize(BUFFER)
    try:
        np.multiply(first_rows[:whole, np.newaxis], within_block, out=blocks, casting="same_kind")
        np.multiply(first_rows[whole:], within_block[: len(rest)], out=rest, casting="same_kind")
    finally:
        np.setbufsize(usual)


@no_underflow_warnings()
def store(pairs: ComplexArray, rows: FloatArray, layout: Layout) -> None:
    pairs = through_float32(pairs, rows.dtype)
    sines, cosines = halves(rows, layout)
    sines[...], cosines[...] = pairs.real, pairs.imag


def through_float32(pairs: NDArray, dtype: np.dtype) -> NDArray:
    """A float16 entry is rounded from the float32 entry, as it is in PyTorch."""
    return pairs.astype(np.complex64) if dtype == np.float16 else pairs


def halves(array: NDArray, layout: Layout) -> tuple[NDArray, NDArray]:
    """Views of the sine and the cosine entries along the last axis."""
    if layout == "interleaved":
        return array[..., 0::2], array[..., 1::2]
    middle = array.shape[-1] // 2
    return array[..., :middle], array[..., middle:]


def can_view_as_complex(dtype: np.dtype, layout: Layout) -> bool:
    """Whether a pair [s, c] lies in memory as the complex number s + ic does."""
    return layout == "interleaved" and dtype.isnative and dtype.itemsize > 2


def as_complex(rows: FloatArray) -> NDArray:
    """Interleaved pairs [s, c] as the complex numbers s + ic: a view, unless rows have gaps."""
    if rows.strides[-1] != rows.itemsize:
        rows = np.ascontiguousarray(rows)
    return rows.view(np.result_type(rows, np.complex64))
