"""How far an encoding is off: sines and cosines of ω_i·x to far more digits than float64 has."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np

PRECISION = 320  # bits: enough for the angle, its whole turns, and its distance from a zero


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


def error(row: np.ndarray, clocks: dict[str, Any], x: float, pairs: Iterable[int] = ()) -> float:
    """How far the worst entry of a row is from the exact PE(x), in the interleaved layout.

    Only the ``pairs`` asked for are looked at, or else the first, the last and four others. x is
    taken as exact, whether it is an integer or a float64.
    """
    last = clocks["d_model"] // 2 - 1
    some = {0, last, *np.random.default_rng(int(abs(x))).integers(0, last + 1, 4).tolist()}
    worst = 0.0
    with mpmath.workprec(PRECISION):
        for i in pairs or some:
            angle = frequency(i, **clocks) * mpmath.mpf(x)
            for k, exact in enumerate((mpmath.sin(angle), mpmath.cos(angle))):
                worst = max(worst, float(abs(mpmath.mpf(float(row[2 * i + k])) - exact)))
    return worst
