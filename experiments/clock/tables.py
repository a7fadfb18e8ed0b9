"""How tables of positions are stored in a row of results, and read again. Needs no PyTorch."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

STORED = 10  # strongest directions of the table that are stored along the way


def packed(rows: NDArray[np.floating]) -> str:
    """A table as text: float16 in base64. Its width is stored elsewhere."""
    return base64.b64encode(rows.astype("<f2").tobytes()).decode("ascii")


def unpacked(stored: str, width: int) -> NDArray[np.float64]:
    """The inverse of `packed`, but for rounding: (rows, width)."""
    flat = np.frombuffer(base64.b64decode(stored), dtype="<f2")
    return flat.reshape(-1, width).astype(np.float64)


def summary_of(rows: NDArray[np.float64]) -> dict[str, Any]:
    """What is stored of a table on the way: its rows in its strongest directions.

    `unit` is the largest entry, by which the rows are divided before they are packed, and `energy`
    the sum of the squares of the whole centred table.
    """
    centred = rows - rows.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    components = (left * sizes)[:, :STORED]
    unit = float(np.abs(components).max())
    return {
        "energy": float(np.sum(centred**2)),
        "unit": unit,
        "components": packed(components / unit),
    }
