"""Largest absolute error of every float32 table, against position.

The exact values are `pe_lib.numpy`'s float64 entries, within 2⁻⁵⁰ of the truth as its tests show.
"""

import numpy as np

from benchmarks.peers import FROM_ZERO, SPLIT, TABLES, TENSOR2TENSOR
from pe_lib.numpy import sinusoidal_table

WINDOW, D_MODEL = 128, 512
STARTS = [0, 1_000, 10_000, 100_000, 1_000_000, 2**24]
LARGEST_FROM_ZERO = 100_000  # what lies before the window has to be computed too


def error(name: str, start: int) -> float | None:
    if name in FROM_ZERO:
        if start > (1_000 if "Marian" in name else LARGEST_FROM_ZERO):
            return None
        table = np.asarray(TABLES[name](0, start + WINDOW, D_MODEL))[start:]
    else:
        table = np.asarray(TABLES[name](start, WINDOW, D_MODEL))
    exact = sinusoidal_table(
        WINDOW,
        D_MODEL,
        start=start,
        dtype=np.float64,
        layout="split" if name in SPLIT else "interleaved",
        spacing="tensor2tensor" if name in TENSOR2TENSOR else "paper",
    )
    return float(np.abs(table - exact).max())


def errors() -> dict[str, list[float | None]]:
    return {name: [error(name, start) for start in STARTS] for name in TABLES}
