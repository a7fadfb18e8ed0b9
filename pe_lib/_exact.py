"""Angles without their rounding errors: the constants below both implementations.

An angle ω·x of a far position, rounded to float64, is wrong by half an ulp of a large number. But
whole turns do not matter, and they can be taken off exactly: write the frequency in turns per
position, f = ω/2π, as a sum of parts so short that a position times a part has no rounding error
(Cody and Waite, 1980, "Software Manual for the Elementary Functions", do so with π/2). What is left
of a turn is the nearest of 1024 marks on the circle and a small rest. The marks are stored here, to
more digits than a float64 has; the rest needs three terms of a series.

Frequencies and marks are computed in decimal arithmetic, so no accuracy of the platform's own pow,
sine and cosine is assumed. Only such constants are cached, never an encoding.
"""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pe_lib._checks import Clocks

MARKS = 1024
TWO_PI = Decimal("6.2831853071795864769252867665590057683943387987502116419499")
FIFTY_DIGITS = Context(prec=50, Emin=MIN_EMIN, Emax=MAX_EMAX)


class Turns(NamedTuple):
    """f = ω/2π in turns per position: f = coarse + medium + fine, float64 of shape (pairs,).

    ``coarse`` is a multiple of 2⁻²³ and below 0.16, ``medium`` a multiple of 2⁻⁴⁴ and at most 2⁻²⁴:
    their products with an integer of up to 2³² have no more than 53 bits, and are exact. ``fine``
    is at most 2⁻⁴⁵, so the error of its product, at most 2⁻⁶⁶, does not count. ``nearest`` is f
    rounded to float64.
    """

    coarse: NDArray[np.float64]
    medium: NDArray[np.float64]
    fine: NDArray[np.float64]
    nearest: NDArray[np.float64]


class Marks(NamedTuple):
    """cos 2πk/1024 − i sin 2πk/1024 for k = 0 … 1023, complex128 of shape (1024,).

    Each part of ``nearest`` is the float64 nearest to it, each of ``missing`` what that lacks.
    """

    nearest: NDArray[np.complex128]
    missing: NDArray[np.complex128]


@lru_cache(maxsize=16)
def frequencies(clocks: Clocks) -> NDArray[np.float64]:
    """ω_i, each the float64 nearest to the exact value."""
    return np.array([float(omega) for omega in _decimal_frequencies(clocks)])


@lru_cache(maxsize=16)
def turns(clocks: Clocks) -> Turns:
    """ω_i/2π in the parts that `Turns` describes."""
    with localcontext(FIFTY_DIGITS):
        exact = [omega / TWO_PI for omega in _decimal_frequencies(clocks)]
        nearest, missing = np.array([_in_two(f) for f in exact]).T.copy()
    coarse = np.rint(nearest * 2.0**23) / 2.0**23
    medium = np.rint((nearest - coarse) * 2.0**44) / 2.0**44
    return Turns(coarse, medium, (nearest - coarse - medium) + missing, nearest)


@lru_cache(maxsize=1)
def marks() -> Marks:
    """The points of the circle that `Marks` describes.

    The first step comes from the exponential series, each mark of the first quarter from the one
    before it by the rotation theorem, and the other quarters by symmetry.
    """
    parts = np.empty((2, MARKS // 4), np.complex128)  # nearest, missing
    with localcontext(FIFTY_DIGITS):
        terms = [Decimal(1)]  # (2π/1024)ⁿ/n!
        for n in range(1, 24):
            terms.append(terms[-1] * TWO_PI / MARKS / n)
        step_cos = sum((-1) ** n * term for n, term in enumerate(terms[0::2]))
        step_sin = sum((-1) ** n * term for n, term in enumerate(terms[1::2]))
        cos, sin = Decimal(1), Decimal(0)
        for k in range(parts.shape[1]):
            (c, lost_c), (s, lost_s) = _in_two(cos), _in_two(sin)
            parts[:, k] = complex(c, -s), complex(lost_c, -lost_s)
            cos, sin = cos * step_cos - sin * step_sin, sin * step_cos + cos * step_sin
    return Marks(*np.concatenate([parts, -1j * parts, -parts, 1j * parts], axis=1))


def _in_two(exact: Decimal) -> tuple[float, float]:
    """The nearest float64, and what it lacks."""
    return float(exact), float(exact - Decimal(float(exact)))


def _decimal_frequencies(clocks: Clocks) -> list[Decimal]:
    """ω_i = base^(−i/steps) to some 45 digits, each a ratio below the one before it."""
    pairs = clocks.d_model // 2
    steps = pairs if clocks.spacing == "paper" else max(pairs - 1, 1)
    with localcontext(FIFTY_DIGITS):
        ratio = (-Decimal(clocks.base).ln() / steps).exp()
        omega = [Decimal(1)]
        for _ in range(1, pairs):
            omega.append(omega[-1] * ratio)
    return omega
