"""Exact sines and cosines of ω_i·x to far more digits than float64, by two independent ways."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

PRECISION = 320  # bits: enough for the angle, its whole turns, and its distance from a zero
FRACTION = 256  # bits of the integer phase


@lru_cache(maxsize=64)
def frequency(i: int, d_model: int, base: float, spacing: str) -> Any:
    """ω_i by its definition, an mpmath number."""
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


def largest_excess(
    entries: NDArray[np.floating], exact: list[Any], ulps: float
) -> tuple[float, int]:
    """How far the worst entry is off, beyond ``ulps`` of its own ulp, and which one it is."""
    with mpmath.workprec(PRECISION):
        excess = [
            float(abs(mpmath.mpf(float(entry)) - true) - ulps * float(np.spacing(abs(entry))))
            for entry, true in zip(entries, exact, strict=True)
        ]
    worst = int(np.argmax(excess))
    return excess[worst], worst
