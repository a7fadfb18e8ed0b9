"""Clocks of an encoding, and what T(Δx) does to their hands."""

from typing import ClassVar

from pe_book.live.figure import LiveFigure, choice, control


class Clock(LiveFigure):
    kind = "clock"
    symbols: ClassVar = {
        r"\mathrm{PE}(x+\Delta x)": "after",
        r"\mathrm{PE}(x)": "x",
        r"T(\Delta x)": "matrix",
        r"\Delta x": "step",
        "x": "x",
    }
    x = control(3)
    step = control(2)
    block = choice("T", "transposed")


def clock(x: int = 3, step: int = 2, *, question: str = "") -> Clock:
    """Four clocks (d = 8, B = 16), the row of a position, and the blocks of T(Δx), with numbers.

    Its traits are ``x``, the position; ``step``, the difference Δx; and ``block``, ``"T"`` or
    ``"transposed"``.

    Examples
    --------
    >>> figure = clock(5, step=3)
    >>> figure
    Live figure: clock(x=5, step=3)
    >>> figure.x = 7
    >>> figure.state
    {'block': 'T', 'step': 3, 'x': 7}
    """
    return Clock(x=x, step=step, question=question)
