"""Four hands of a learned table of positions, and what one matrix foretells of them."""

from pe_book.live.figure import LiveFigure, control


class Crank(LiveFigure):
    kind = "crank"
    x = control(140)
    steps = control(1)


def crank(x: float = 140, steps: int = 1, *, question: str = "") -> Crank:
    """The hands of MiniLM's table at a position from 1 to 506, with all their places.

    In the second half a ghost of each hand shows what the matrix that was fitted on the first half
    makes of the row ``steps`` positions before. The browser computes hands and ghosts from the ten
    strongest coordinates of each row (``data/crank.js``). Its traits are ``x`` and ``steps``.

    Examples
    --------
    >>> crank(380)
    Live figure: crank(x=380, steps=1)
    """
    return Crank(x=x, steps=steps, question=question)
