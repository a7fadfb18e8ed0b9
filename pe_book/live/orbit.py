"""A path of points, and the distances between them."""

from pe_book.live.figure import LiveFigure, control


class Orbit(LiveFigure):
    kind = "orbit"
    decay = control(0)
    pitch = control(0)
    stretch = control(1)
    x = control(3)


def orbit(decay: float = 0.0, pitch: float = 0.0, *, question: str = "") -> Orbit:
    """A path of points and its matrix of distances: circle, spiral, helix, ellipse.

    Its traits are ``decay``, ``pitch`` and ``stretch``, which shape the path, and ``x``, where the
    chord begins.

    Examples
    --------
    >>> orbit(decay=0.05)
    Live figure: orbit(decay=0.05, pitch=0.0)
    """
    return Orbit(decay=decay, pitch=pitch, question=question)
