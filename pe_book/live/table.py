"""The table of an encoding, which one matrix moves as far as a hand pulls it."""

from typing import ClassVar

from pe_book.live.clock import Clock
from pe_book.live.figure import LiveFigure, control, text


class Table(LiveFigure):
    kind = "table"
    symbols: ClassVar = Clock.symbols
    step = control(0)
    x = control(12)
    transposed = text("00000000", "[01]{8}")


def table(
    step: float = 0, x: int = 12, *, transposed: str = "00000000", question: str = ""
) -> Table:
    """Thirty rows of a table (d = 16, B = 16), the clocks of its pairs, and T(Δx) beside it.

    Its traits are ``step``, the difference Δx; ``x``, the row whose hands the clocks show; and
    ``transposed``, a digit for each of the eight blocks, 1 where it is transposed.

    Examples
    --------
    >>> table(6.4)
    Live figure: table(step=6.4, x=12, transposed=00000000)
    """
    return Table(step=step, x=x, transposed=transposed, question=question)
