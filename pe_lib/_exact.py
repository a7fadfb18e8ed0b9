"""The constants below both implementations, exact to more digits than a float64 has: frequencies
by decimal arithmetic, marks on the circle by integers, so nothing is assumed about the platform's
own pow, sine and cosine. Only such constants are cached, never an encoding."""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pe_lib._checks import Spec

MARKS = 1024
FIFTY_DIGITS = Context(prec=50, Emin=MIN_EMIN, Emax=MAX_EMAX)
TWO_PI = Decimal("6.2831853071795864769252867665590057683943387987502116419499")
FRACTION = 2**160  # of the integers that the marks are computed in


@lru_cache(maxsize=16)
def phase(spec: Spec) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """ω, the float64 nearest to each, in radians per position; and ω/2π without its whole turns, as
    a fixed-point number of 128 bits: ``high`` counts 2⁻⁶⁴ of a turn, ``low`` counts 2⁻¹²⁸."""
    omega = _decimal_frequencies(spec)
    with localcontext(FIFTY_DIGITS):
        unit = 2**128 / TWO_PI
        words = [int((w * unit).to_integral_value()) for w in omega]
    low = [_signed(n) for n in words]
    high = [_signed((n - rest) >> 64) for n, rest in zip(words, low, strict=True)]
    return np.array([float(w) for w in omega]), np.array(high), np.array(low)


@lru_cache(maxsize=1)
def marks() -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """cos 2πk/1024 − i sin 2πk/1024 for k = 0 … 1023: the nearest float64 of each part, and what
    that lacks. The first step comes from the exponential series, each mark of the first quarter
    from the one before it by the rotation theorem, and the other quarters by symmetry."""
    parts = np.empty((2, MARKS // 4), np.complex128)  # nearest, missing
    with localcontext(FIFTY_DIGITS):
        angle = int(TWO_PI * FRACTION / MARKS)
    terms = [FRACTION]  # (2π/1024)ⁿ/n!
    for n in range(1, 24):
        terms.append(terms[-1] * angle // (n * FRACTION))
    step_cos, step_sin = (sum(t[0::2]) - sum(t[1::2]) for t in (terms[0::2], terms[1::2]))
    cos, sin = FRACTION, 0
    for k in range(parts.shape[1]):
        (c, lost_c), (s, lost_s) = _in_two(cos), _in_two(sin)
        parts[:, k] = complex(c, -s), complex(lost_c, -lost_s)
        turned = cos * step_cos - sin * step_sin, sin * step_cos + cos * step_sin
        cos, sin = (part // FRACTION for part in turned)
    nearest, missing = np.concatenate([parts, -1j * parts, -parts, 1j * parts], axis=1)
    return nearest, missing


def _signed(word: int) -> int:  # its lowest 64 bits, as an int64 holds them
    return (word + 2**63) % 2**64 - 2**63


def _in_two(exact: int) -> tuple[float, float]:
    """The float64 nearest to exact/FRACTION, and what it lacks."""
    nearest = exact / FRACTION
    return nearest, (exact - int(nearest * FRACTION)) / FRACTION


def _decimal_frequencies(spec: Spec) -> list[Decimal]:
    """The given frequencies as they are, or ω_i = base^(−i/steps) to some 45 digits."""
    if spec.given is not None:
        return [Decimal(omega) for omega in spec.given]
    pairs = spec.d_model // 2
    steps = pairs if spec.spacing == "paper" else max(pairs - 1, 1)
    with localcontext(FIFTY_DIGITS):
        ratio = (-Decimal(spec.base).ln() / steps).exp()
        omega = [Decimal(1)]
        for _ in range(1, pairs):
            omega.append(omega[-1] * ratio)
    return omega
