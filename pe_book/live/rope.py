"""A query and a key that RoPE turns, and their score."""

from typing import ClassVar

from pe_book.live.figure import LiveFigure, choice, control


class Rope(LiveFigure):
    kind = "rope"
    symbols: ClassVar = {"m-n": "offset", "m": "m", "n": "n"}
    m = control(5)
    n = control(2)
    direction = choice("clockwise", "anticlockwise")
    pairs = choice("neighbours", "halves", "mixed")


def rope(m: int = 5, n: int = 2, *, question: str = "") -> Rope:
    """A query at m and a key at n on dials, and their score against the offset.

    Its traits are ``m`` and ``n``; ``direction``, ``"clockwise"`` or ``"anticlockwise"``; and
    ``pairs``, ``"neighbours"``, ``"halves"`` or ``"mixed"``.

    Examples
    --------
    >>> rope(7, 6)
    Live figure: rope(m=7, n=6)
    """
    return Rope(m=m, n=n, question=question)
