"""Exact sines and cosines of ω_i·x to far more digits than float64, by two independent ways."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np

PRECISION = 320  # bits: enough for the angle, its whole turns, and its distance from a zero
FRACTION = 256  # bits of the integer phase


@lru_cache(maxsize=64)
def frequency(
    i: int, d_model: int, base: float = 10_000.0, spacing: str = "paper", frequencies: Any = None
) -> Any:
    """ω_i by its definition, an mpmath number."""
    if frequencies is not None:
        return mpmath.mpf(frequencies[i])
    pairs = d_model // 2
    steps = pairs if spacing == "paper" else max(pairs - 1, 1)
    with mpmath.workprec(PRECISION):
        return mpmath.power(mpmath.mpf(base), -mpmath.mpf(i) / steps)


def sine_and_cosine(omega: Any, x: float) -> tuple[Any, Any]:
    """By mpmath from the angle itself; x is taken as the float64 or integer that it is."""
    with mpmath.workprec(PRECISION):
        angle = omega * mpmath.mpf(x)
        return mpmath.sin(angle), mpmath.cos(angle)


def sine_and_cosine_by_phase(omega: Any, x: int) -> tuple[Any, Any]:
    """From ω/2π as an integer multiple of 2⁻²⁵⁶: whole turns drop out of an integer product."""
    with mpmath.workprec(PRECISION):
        turns_per_position = int(mpmath.nint(omega / (2 * mpmath.pi) * 2**FRACTION))
        phase = mpmath.mpf(turns_per_position * x % 2**FRACTION) / 2**FRACTION
        return mpmath.sinpi(2 * phase), mpmath.cospi(2 * phase)


def near_zeros(omega: Any, limit: int) -> Iterator[int]:
    """Positions up to ``limit`` where ω·x comes nearest to a multiple of π/2.

    They are the denominators of the convergents of ω/(π/2): no smaller position does better.
    """
    with mpmath.workprec(PRECISION):
        ratio = omega / (mpmath.pi / 2)
        before, denominator = 0, 1
        while denominator <= limit:
            yield denominator
            ratio = 1 / (ratio - mpmath.floor(ratio))
            before, denominator = denominator, int(mpmath.floor(ratio)) * denominator + before


def error(row: np.ndarray, clocks: dict[str, Any], x: float) -> float:
    """How far the worst of some entries of PE(x), in the interleaved layout, is off: of the first
    and the last pair and four others. The exact values of odd integers come by the phase."""
    last = clocks["d_model"] // 2 - 1
    others = np.random.default_rng(int(abs(x))).integers(0, last + 1, 4)
    by_phase = isinstance(x, int) and x % 2 == 1
    return max(
        error_of_pair(row, clocks, x, i, by_phase=by_phase) for i in {0, last, *others.tolist()}
    )


def error_of_pair(
    row: np.ndarray, clocks: dict[str, Any], x: Any, i: int, *, by_phase: bool
) -> float:
    omega = frequency(i, **clocks)
    exact = sine_and_cosine_by_phase(omega, x) if by_phase else sine_and_cosine(omega, x)
    with mpmath.workprec(PRECISION):
        return max(float(abs(mpmath.mpf(float(row[2 * i + k])) - exact[k])) for k in (0, 1))
