"""Eleven encodings of positions, and the five conditions of conditions.ipynb as numbers."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from pe_lib import numpy as pe

Positions = NDArray[np.int64]
Array = NDArray[np.floating]
Rule = Callable[[Positions, int], Array]

LONGEST, BITS, D_MODEL = 2048, 11, 64  # 2048 positions have 11 binary digits
MEASURES = ("size", "drift", "jump", "gap", "bf16", "uneven")  # in the order of conditions.ipynb


def bits(numbers: Positions, width: int = BITS) -> Array:
    """Row k holds the binary digits of ``numbers[k]``, the lowest first.

    Examples
    --------
    >>> bits(np.arange(4), 2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    return ((numbers[:, None] >> np.arange(width)) & 1).astype(np.float64)


def gray(numbers: Positions, width: int = BITS) -> Array:
    """The reflected binary code: the digits of k xor ⌊k/2⌋ (Gray, 1953).

    Examples
    --------
    >>> gray(np.arange(4), 2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """
    return bits(numbers ^ (numbers >> 1), width)


def sine_of_period_100(numbers: Positions) -> Array:
    """sin(2πk/100), from an angle between −π/2 and π/2, so that equal sines are equal numbers.

    Examples
    --------
    >>> len(set(sine_of_period_100(np.arange(1000)).tolist()))
    51
    """
    folded = np.abs((numbers - 25) % 100 - 50) - 25
    return np.asarray(np.sin(2 * np.pi * folded / 100))


# A rule takes the positions and the length of the sequence; most make no use of the length.
ENCODINGS: dict[str, Rule] = {
    "index": lambda x, seq_len: x[:, None] * 1.0,
    "normalised": lambda x, seq_len: x[:, None] / (seq_len - 1),
    "binary": lambda x, seq_len: bits(x),
    "Gray": lambda x, seq_len: gray(x),
    "one-hot": lambda x, seq_len: np.eye(LONGEST)[x],
    "sin x": lambda x, seq_len: np.sin(x)[:, None],
    "sin 2πx/100": lambda x, seq_len: sine_of_period_100(x)[:, None],
    "sin x/10000": lambda x, seq_len: np.sin(x / 10_000)[:, None],
    "[sin x, cos x]": lambda x, seq_len: np.stack([np.sin(x), np.cos(x)], axis=1),
    "slow pair": lambda x, seq_len: np.stack([np.sin(0.003 * x), np.cos(0.003 * x)], axis=1),
    "sinusoid": lambda x, seq_len: pe.sinusoidal_encoding(x, D_MODEL, dtype=np.float64),
}


def table(name: str, seq_len: int) -> Array:
    """The rows of the positions 0 … seq_len − 1, one below the other.

    Examples
    --------
    >>> table("normalised", 3).tolist()
    [[0.0], [0.5], [1.0]]
    """
    return ENCODINGS[name](np.arange(seq_len), seq_len)


class Measures(NamedTuple):
    """What an encoding is judged by, as conditions.ipynb defines it. Distances are divided by the
    largest distance of two rows, and their squares by its square."""

    size: float  # the largest root mean square of a row
    drift: float  # the largest change of an entry when the text is cut to fewer words
    jump: float  # the largest distance of two neighbours
    gap: float  # the smallest distance of two rows
    ties: int  # the rows that are lost because bfloat16 makes them equal to others
    unevenness: float  # by how much the squared distances at one offset differ, at most

    def met(self, largest_jump: float = 0.5) -> tuple[bool, ...]:
        """Whether each measure is met. Rows are distinct if both the gap and the ties are."""
        return (
            self.size <= 1,
            self.drift == 0,
            self.jump <= largest_jump,
            self.gap > 1e-12,
            self.ties == 0,
            self.unevenness <= 1e-9,
        )


def measure(rule: Rule, seq_len: int) -> Measures:
    """The measures of the positions 0 … seq_len − 1, with drifts from three shorter lengths.

    Examples
    --------
    >>> measure(ENCODINGS["index"], 5)
    Measures(size=4.0, drift=0.0, jump=0.25, gap=0.25, ties=0, unevenness=0.0)
    """
    rows = rule(np.arange(seq_len), seq_len)
    squares = square_distances(rows)
    diameter = np.sqrt(squares.max())
    offsets = [np.diagonal(squares, offset) for offset in range(1, seq_len)]
    shorter = [rule(np.arange(n), n) for n in (4, 10, seq_len // 2) if n <= seq_len]
    return Measures(
        size=float(np.sqrt((rows**2).mean(axis=1).max())),
        drift=float(max(np.abs(rows[: len(s)] - s).max() for s in shorter)),
        jump=float(np.sqrt(offsets[0].max()) / diameter),
        gap=float(np.sqrt(min(s.min() for s in offsets)) / diameter),
        ties=bfloat16_ties(rows),
        unevenness=float(max(np.ptp(s) for s in offsets) / diameter**2),
    )


def square_distances(rows: Array) -> Array:
    """‖row − row‖² for all pairs; for whole numbers by exact products.

    Examples
    --------
    >>> square_distances(np.array([[0.0], [3.0]])).tolist()
    [[0.0, 9.0], [9.0, 0.0]]
    """
    if np.array_equal(rows, np.round(rows)):
        squares = (rows**2).sum(axis=1)
        return np.asarray(squares[:, None] + squares - 2 * rows @ rows.T)
    return np.asarray(squareform(pdist(rows, "sqeuclidean")))


def bfloat16_ties(rows: Array) -> int:
    """How many rows are lost to equality by rounding to bfloat16. The zeros −0 and 0 are equal.

    Examples
    --------
    >>> bfloat16_ties(np.array([[256.0], [257.0], [258.0]]))
    1
    >>> bfloat16_ties(np.array([[0.0], [-0.0]]))
    1
    """
    patterns = (rows.astype(np.float32) + np.float32(0)).view(np.uint32)
    # bfloat16 is the upper half of a float32: to the nearest, a tie to the even one.
    rounded = (patterns + 0x7FFF + ((patterns >> 16) & 1)) >> 16
    return len(rows) - len({row.tobytes() for row in rounded})


def float16_ties(rows: Array) -> int:
    """How many rows are lost to equality by rounding to float16. The zeros −0 and 0 are equal.

    Examples
    --------
    >>> float16_ties(np.array([[1.0], [1.0001], [2.0]]))
    1
    >>> float16_ties(np.array([[0.0], [-1e-9]]))
    1
    """
    rounded = rows.astype(np.float16) + np.float16(0)  # −0 + 0 is 0, also bit for bit
    return len(rows) - len({row.tobytes() for row in rounded})


def scorecard(seq_len: int, rules: Mapping[str, Rule] = ENCODINGS, full: bool = False) -> str:
    """A line for each rule: each measure by which it fails a condition, and a dot for the others.

    With ``full`` all the numbers, and a star on those that fail.

    Examples
    --------
    >>> print(scorecard(64, {"index": ENCODINGS["index"]}))
                     size  drift   jump    gap   bf16 uneven
    index              63      .      .      .      .      .
    """
    lines = [" " * 14 + "".join(f"{head:>7}" for head in MEASURES)]
    for name, rule in rules.items():
        measures = measure(rule, seq_len)
        entries = [
            entry(value, met, full) for value, met in zip(measures, measures.met(), strict=True)
        ]
        lines.append(f"{name:<14}" + "".join(f"{text:>7}" for text in entries))
    return "\n".join(lines)


def entry(value: float, met: bool, full: bool) -> str:
    """What the scorecard writes for one condition of one encoding."""
    if not met:
        return written(value) + ("*" if full else "")
    return written(value) if full else "."


def written(value: float) -> str:
    """One or two digits; what is only rounding is written 0."""
    if value < 1e-12:
        return "0"
    if value < 0.01:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def closest_pair(values: Array) -> tuple[int, int, float]:
    """The two places whose numbers are closest, and their distance, by sorting.

    Examples
    --------
    >>> closest_pair(np.array([0.0, 9.0, 4.0, 8.0]))
    (1, 3, 1.0)
    """
    order = np.argsort(values)
    gaps = np.diff(values[order])
    where = int(gaps.argmin())
    a, b = sorted((int(order[where]), int(order[where + 1])))
    return a, b, float(gaps[where])


def readout(seen: Array, asked: Array, ridge: float = 0.0, cutoff: float | None = None) -> Array:
    """The positions that a linear readout, fitted on the rows ``seen``, reads from those ``asked``.

    It has a weight for each column and a constant, and fits x/len(seen) by least squares. A
    ``ridge`` adds that multiple of the squared weights to what is made small. The constant is one
    of them, so that it shrinks as well. Without a ridge, `lstsq` takes the smallest of the best
    weights; ``cutoff`` is its rcond, the share of the largest singular value below which a
    direction counts as absent.

    Examples
    --------
    >>> rows = table("index", 200)
    >>> readout(rows[:100], rows)[[50, 150]].round(6)
    array([ 50., 150.])
    """
    inputs, questions = (np.hstack([rows, np.ones((len(rows), 1))]) for rows in (seen, asked))
    wanted = np.arange(len(seen)) / len(seen)
    if ridge:
        penalty = np.sqrt(ridge) * np.eye(inputs.shape[1])
        inputs, wanted = np.vstack([inputs, penalty]), np.append(wanted, np.zeros(len(penalty)))
    weights = np.linalg.lstsq(inputs, wanted, rcond=cutoff)[0]
    return np.asarray(len(seen) * questions @ weights)
