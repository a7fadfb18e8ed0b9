"""Live figures: drawn and moved in the browser, in notebooks and on the site."""

from typing import Any

from pe_lib.book.widgets import frame_slider as frames

__all__ = ["clock", "formats", "frames", "orbit", "rope", "similarity", "subspaces"]


class Figure:
    """A figure of the kit: its name, its question, and the state to begin with."""

    def __init__(self, name: str, question: str, **state: Any) -> None:
        self.name, self.question, self.state = name, question, state

    def __repr__(self) -> str:
        given = ", ".join(f"{key}={value}" for key, value in self.state.items())
        return f"Live figure: {self.name}({given})"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        still = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" aria-label="to come"/>'
        return {"text/plain": repr(self), "image/svg+xml": still}


def clock(x: int = 3, step: int = 2, *, question: str = "") -> Figure:
    """A wall of four clocks (d = 8, B = 16): x, Δx, the blocks of T, and PE(x)T beside PE(x+Δx)."""
    return Figure("clock", question, x=x, step=step)


def orbit(decay: float = 0.0, pitch: float = 0.0, *, question: str = "") -> Figure:
    """A path of points and its matrix of distances: circle, spiral (decay), helix (pitch), ellipse."""
    return Figure("orbit", question, decay=decay, pitch=pitch)


def similarity(
    d_model: int = 512, base: float = 10_000, offset: int = 5, *, question: str = ""
) -> Figure:
    """K(Δ)/(d/2) against the offset, with its limit, the logarithmic law and the first rise."""
    return Figure("similarity", question, d_model=d_model, base=base, offset=offset)


def subspaces(angle: float = 60.0, *, question: str = "") -> Figure:
    """A line of words and a line of positions at an angle: two jobs for one matrix, and the price."""
    return Figure("subspaces", question, angle=angle)


def rope(m: int = 5, n: int = 2, *, question: str = "") -> Figure:
    """A query at m and a key at n on dials, and their score against the offset."""
    return Figure("rope", question, m=m, n=n)


def formats(position: int = 10_000, *, question: str = "") -> Figure:
    """The row of a position with float64, float32 and bfloat16 angles, and their errors."""
    return Figure("formats", question, position=position)
