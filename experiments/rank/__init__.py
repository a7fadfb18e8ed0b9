"""Does the rank of the positions decide whether adding works? See `run`."""

from experiments.common import read_series
from experiments.rank.run import (
    RANKS,
    RESULTS,
    STEPS,
    WAYS,
    WORDS,
    price,
    read_off,
    table,
)
from experiments.stored import Run

__all__ = [
    "RANKS",
    "RESULTS",
    "STEPS",
    "WAYS",
    "WORDS",
    "price",
    "read_off",
    "stored",
    "table",
]


def stored(series: str = "rank") -> Run:
    """A stored series, "rank" or "controls": how it was made, and its "runs"."""
    return read_series(RESULTS, series)
