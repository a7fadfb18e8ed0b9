"""How much of a row of a table does one matrix predict from another row, in all dimensions?

The criterion of `hands.py` looks for large hands in six directions. The question here has neither:
if a table of positions is a clock of any number of hands, however small, then one matrix takes each
row to the next, its square takes it two rows on, and so forth. So for each distance some matrix
does, if the table is a clock. It is fitted for each by itself, and tried on pairs of rows that it
was not fitted to.

A table has about as many dimensions as rows, and would be fitted by least squares whatever it
holds. So the fit is a ridge regression, whose penalty is a share of the mean square of the rows,
and the rows that are predicted lie in one piece: neighbours of a row tell too much about it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Places = NDArray[np.int_]

PIECES = 8  # of the table, each predicted by the matrix of the others
PENALTY = 0.3  # of the mean square of a dimension, times the number of rows


def centred(table: Array) -> Array:
    """The rows minus their mean."""
    return np.asarray(table - table.mean(axis=0))


def ridge_matrix(rows: Array, others: Array, penalty: float = PENALTY) -> Array:
    """The matrix M for which row·M comes near the other row, and whose entries are small.

    Ridge regression: it minimises |rows·M − others|² + λ|M|², where λ is ``penalty`` times the mean
    diagonal entry of rowsᵀ·rows. The matrix that is solved has the smaller side of ``rows``: both
    forms give the same M, since rowsᵀ·(rows·rowsᵀ + λ) = (rowsᵀ·rows + λ)·rowsᵀ.
    """
    count, width = rows.shape
    ridge = penalty * float(np.sum(rows**2)) / width
    if count < width:
        return np.asarray(rows.T @ np.linalg.solve(rows @ rows.T + ridge * np.eye(count), others))
    return np.asarray(np.linalg.solve(rows.T @ rows + ridge * np.eye(width), rows.T @ others))


def predicted(
    rows: Array, others: Array, *, penalty: float = PENALTY, pieces: int = PIECES
) -> float:
    """The share of the squares of ``others`` that one matrix predicts from ``rows``, left out.

    Each of the consecutive pieces of the pairs is predicted by the matrix of all the rest. 1 is
    everything; rows that have nothing to do with each other come out at 0 or below.
    """
    piece = np.arange(len(rows)) * pieces // len(rows)
    missed = 0.0
    for number in range(pieces):
        here = piece == number
        matrix = ridge_matrix(rows[~here], others[~here], penalty)
        missed += float(np.sum((others[here] - rows[here] @ matrix) ** 2))
    return 1 - missed / float(np.sum(others**2))


def predicted_by_likeness(rows: Array, others: Array, *, pieces: int = PIECES) -> float:
    """The share of the squares of ``others`` that ``rows`` predict, times one fixed number.

    As `predicted`, but for the matrix: what rows predict because they are like the others.
    """
    piece = np.arange(len(rows)) * pieces // len(rows)
    missed = 0.0
    for number in range(pieces):
        here = piece == number
        factor = np.sum(rows[~here] * others[~here]) / np.sum(rows[~here] ** 2)
        missed += float(np.sum((others[here] - factor * rows[here]) ** 2))
    return 1 - missed / float(np.sum(others**2))


def likeness(table: Array, places: Places, others: Places) -> float:
    """The cosine of the rows at some places with those at others, all of them taken as one vector.

    The rows are centred by the mean of all rows of the table.
    """
    rows = centred(table)
    one, other = rows[places], rows[others]
    return float(np.sum(one * other) / np.sqrt(np.sum(one**2) * np.sum(other**2)))


def predicted_ahead(table: Array, ahead: int = 1, **how: Any) -> float:
    """The share of each row of a table that one matrix predicts from the row so far before it.

    The rows are centred by the mean of all of them, of those that are left out as well.
    """
    rows = centred(table)
    return predicted(rows[:-ahead], rows[ahead:], **how)


def unmoved(table: Array) -> float:
    """The share of the next rows that is explained if each is taken to be the row before it."""
    rows = centred(table)
    return float(1 - np.sum((rows[1:] - rows[:-1]) ** 2) / np.sum(rows[1:] ** 2))


def predicted_along(table: Array, most: int, **how: Any) -> list[float]:
    """`predicted_ahead` for 1, 2, 3 … up to ``most`` rows, by a matrix for each."""
    return [predicted_ahead(table, ahead, **how) for ahead in range(1, most + 1)]


def predicted_by_powers(
    table: Array, aheads: Sequence[int], *, directions: int = 8, pieces: int = PIECES
) -> list[float]:
    """The share of each row so far ahead that the powers of one matrix predict, left out.

    Here the matrix of the next row alone is fitted, by least squares in the strongest directions of
    the rows that are used for it, and its square stands for two rows ahead, and so forth. Neither
    the directions, nor the mean, nor the matrix have seen the rows that are predicted, or a step to
    or from one of them. The share is of the squares about the mean of the others, which are more
    than those of `predicted_ahead`: here a row's distance from its own mean counts too.
    """
    rows = np.asarray(table)
    found = []
    for ahead in aheads:
        missed = whole = 0.0
        for here in np.array_split(np.arange(len(rows) - ahead), pieces):
            told, centre = told_by_powers(rows, here, ahead, directions)
            missed += float(np.sum((rows[here + ahead] - told) ** 2))
            whole += float(np.sum((rows[here + ahead] - centre) ** 2))
        found.append(1 - missed / whole)
    return found


def told_by_powers(
    rows: Array, here: NDArray[np.int_], ahead: int, directions: int
) -> tuple[Array, Array]:
    """What a power of the matrix of the next row says of the rows so far ahead of some.

    The second result is the mean of the rows that were used, the first guess without any matrix.
    """
    hidden = np.zeros(len(rows), bool)
    hidden[here + ahead] = True
    step = np.flatnonzero(~hidden[:-1] & ~hidden[1:])
    used = np.union1d(step, step + 1)
    centre = rows[used].mean(axis=0)
    strongest = np.linalg.svd(rows[used] - centre, full_matrices=False)[2][:directions]
    inside = (rows - centre) @ strongest.T
    matrix = np.linalg.lstsq(inside[step], inside[step + 1], rcond=None)[0]
    told = inside[here] @ np.linalg.matrix_power(matrix, ahead) @ strongest + centre
    return np.asarray(told), np.asarray(centre)


def predicted_by_place(
    table: Array, ahead: int, *, piece: int = 32, every: int = 8, first: int = 0
) -> tuple[NDArray[np.int_], Array]:
    """`predicted_ahead` in pieces of so many rows: the middle of each piece, and its share.

    The pieces begin ``every`` so many rows, from the row ``first`` on.
    """
    if first + piece > len(table):
        raise ValueError(
            f"piece must be at most {len(table) - first}, the rows from {first} on, got {piece}"
        )
    starts = np.arange(first, len(table) - piece + 1, every)
    shares = [predicted_ahead(table[start : start + piece], ahead) for start in starts]
    return starts + piece // 2, np.array(shares)


def reach(shares: Sequence[float], share: float = 0.5) -> int:
    """How many rows ahead at least this share is predicted, without a gap from the next row on."""
    return next((rows for rows, found in enumerate(shares) if found < share), len(shares))


def left_of(shares: Sequence[float]) -> list[float]:
    """Of what is predicted of the next row, the part that still is of the rows after it.

    Noise on each row lowers all shares alike, and cancels here: what is left is what a clock loses
    from row to row. Proved on the page of checks "Where a clock comes from".
    """
    return [share / shares[0] for share in shares]


def shuffled_phases(table: Array, draw: np.random.Generator) -> Array:
    """A table whose directions are each as smooth as those of ``table``, and unrelated.

    Each of its principal directions keeps its power at every frequency, and gets phases drawn
    anew (Schreiber and Schmitz, 2000). What one matrix predicts here, it owes to smoothness alone.
    """
    left, sizes, directions = np.linalg.svd(centred(table), full_matrices=False)
    waves = np.fft.rfft(left * sizes, axis=0)
    turns = np.exp(2j * np.pi * draw.random(waves.shape))
    for real in (0, -1) if len(table) % 2 == 0 else (0,):  # these waves have a sign alone
        turns[real] = draw.choice([-1, 1], size=waves.shape[1])
    return np.asarray(np.fft.irfft(waves * turns, n=len(table), axis=0) @ directions)


def power(table: Array, low: float, high: float) -> float:
    """The share of the squares of a centred table in waves of ``low`` to ``high`` rows."""
    waves = np.abs(np.fft.rfft(centred(table), axis=0)) ** 2
    frequencies = np.fft.rfftfreq(len(table))
    counted = np.where((frequencies > 0) & (frequencies < 0.5), 2, 1)  # both signs of a frequency
    of_each = counted * waves.sum(axis=1)
    inside = (frequencies >= 1 / high - 1e-12) & (frequencies < 1 / low - 1e-12)
    return float(of_each[inside].sum() / of_each[1:].sum())
