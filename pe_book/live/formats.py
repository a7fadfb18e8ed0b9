"""The row of one position in several number formats."""

from pe_book.live.figure import LiveFigure, control


class Formats(LiveFigure):
    kind = "formats"
    position = control(10_000)


def formats(position: int = 10_000, *, question: str = "") -> Formats:
    """The row of a position in float64, with float32 angles, with a bfloat16 position; errors.

    Its trait is ``position``.

    Examples
    --------
    >>> formats(257)
    Live figure: formats(position=257)
    """
    return Formats(position=position, question=question)
