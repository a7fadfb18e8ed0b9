"""The dot product of two rows against the distance of their positions."""

from typing import ClassVar

from pe_book.live.figure import LiveFigure, control


class Similarity(LiveFigure):
    kind = "similarity"
    symbols: ClassVar = {r"K(\Delta)": "score", r"\Delta": "offset"}
    d_model = control(512)
    base = control(10_000)
    offset = control(5)


def similarity(
    d_model: int = 512, base: float = 10_000, offset: int = 5, *, question: str = ""
) -> Similarity:
    """K(Δ)/(d/2) against the offset, with its limit, the logarithmic law and the first rise.

    Its traits are ``d_model``, ``base`` and ``offset``.

    Examples
    --------
    >>> similarity(256)
    Live figure: similarity(d_model=256, base=10000, offset=5)
    """
    return Similarity(d_model=d_model, base=base, offset=offset, question=question)
