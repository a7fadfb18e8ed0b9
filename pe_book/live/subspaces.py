"""A line of words and a line of positions, and one matrix for both."""

from typing import ClassVar

from pe_book.live.figure import LiveFigure, control


class Subspaces(LiveFigure):
    kind = "subspaces"
    symbols: ClassVar = {"U": "words", "V": "positions"}
    angle = control(60)
    c = control(0.5)


def subspaces(angle: float = 60.0, *, question: str = "") -> Subspaces:
    """A line of words and one of positions at an angle: two jobs for one matrix, and the price.

    Its traits are ``angle``, in degrees, and ``c``, the variance of the positions.

    Examples
    --------
    >>> subspaces(8)
    Live figure: subspaces(angle=8)
    """
    return Subspaces(angle=angle, question=question)
