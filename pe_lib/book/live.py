"""Live figures: drawn and moved in the browser, in notebooks and on the site.

Each kind is a small module of plain JavaScript in the folder ``figures``, on top of one kit. In a
notebook anywidget runs it; the built site runs the same text, so nothing needs a kernel. A figure
left as the last value of a cell shows. Where nothing runs, its still does: the same drawing, made
beforehand by ``tools/stills.py``.
"""

import html
import json
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from matplotlib.figure import Figure as Drawing

from pe_lib.book.plots import SVG_FONTS, to_svg

__all__ = [
    "clock",
    "formats",
    "frames",
    "frames2",
    "orbit",
    "rope",
    "similarity",
    "subspaces",
]

FOLDER = Path(__file__).parent / "figures"
STILLS = FOLDER / "stills"
KIT = ("draw", "kit")
KINDS = ("clock", "orbit", "similarity", "subspaces", "rope", "formats", "frames")
MOST_FRAMES_OF_ONE, MOST_FRAMES_OF_TWO = 40, 100

# What a drawing of Matplotlib brings when it stands alone; in a box the style sheet says it.
ALONE = f"max-width:100%;height:auto;stroke-linejoin:round;font-family:{SVG_FONTS}"
WHERE_LIVE = "Live in JupyterLab with anywidget, and on the book's site."
PICTURE = re.compile(r"<svg [^>]*live-picture--wide.*?</svg>", re.DOTALL)
PICTURE_RULES = re.compile(r"/\* -+ The picture.*?\*/(.*?)/\* -+ The box", re.DOTALL)
COLOUR = re.compile(r"var\(--[\w-]+, ([^()]*)\)")


class Figure(anywidget.AnyWidget):
    """A figure of a kind: its question, the state to begin with, and what its drawing needs."""

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    figure = traitlets.Unicode().tag(sync=True)
    question = traitlets.Unicode().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    def __init__(
        self, figure: str, question: str, state: dict[str, Any], data: dict[str, Any] | None = None
    ) -> None:
        super().__init__(
            _esm=module(figure),
            _css=(FOLDER / "kit.css").read_text(),
            figure=figure,
            question=question,
            state=state,
            data=data or {},
        )

    def __repr__(self) -> str:
        if self.figure == "frames":
            labels = " × ".join(control["label"] for control in self.data["controls"])
            return f"Live figure: {labels}, {len(self.data['frames'])} frames"
        given = ", ".join(f"{key}={value}" for key, value in self.state.items())
        return f"Live figure: {self.figure}({given})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The live view, its still, and a line of text."""
        live = super()._repr_mimebundle_(**kwargs)
        bundle, metadata = live if isinstance(live, tuple) else (live or {}, {})
        still = picture(self.figure, self.state, self.data)
        return bundle | {"text/plain": repr(self), "image/svg+xml": still}, metadata


def module(figure: str) -> str:
    """The kit and the module of a kind, as the one text that anywidget takes."""
    texts = [(FOLDER / f"{name}.js").read_text() for name in (*KIT, figure)]
    return "".join(texts) + "export default { render: peLive.render };\n"


def box(figure: str, question: str, state: dict[str, Any], data: dict[str, Any]) -> str:
    """A figure of the site, as HTML: its question, its still, and what the script needs."""
    given = html.escape(json.dumps(state))
    asked = f'<p class="live__question">{html.escape(question)}</p>' if question else ""
    inner = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    held = f'<script type="application/json">{inner}</script>' if data else ""
    still = inside(figure, state, data)
    return (
        f'<div class="live" data-figure="{figure}" data-state="{given}">{asked}{still}{held}</div>'
    )


def picture(figure: str, state: dict[str, Any], data: dict[str, Any]) -> str:
    """The still alone, as one SVG element that brings its style, and says where it is live."""
    if figure == "frames":
        alone = f' style="{ALONE}" role="img"'
        return str(data["frames"][frame_of(state, data)]).replace(' role="img"', alone, 1)
    found = PICTURE.search(inside(figure, state, data))
    assert found is not None
    size = re.search(r'viewBox="0 0 (\d+) (\d+)" width="\d+" height="\d+"', found[0])
    assert size is not None
    width, height = int(size[1]), int(size[2]) + 28
    head = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    style = f"<style>{style_of_stills()}</style>"
    ground = f'<rect width="{width}" height="{height}" style="fill:#fff"></rect>'
    note = (
        f'<text class="muted" x="4" y="{height - 10}">{html.escape(WHERE_LIVE, quote=False)}</text>'
    )
    drawn = found[0].replace(size[0], head).replace("</svg>", note + "</svg>")
    return drawn.replace(">", ">" + style + ground, 1)


def inside(figure: str, state: dict[str, Any], data: dict[str, Any]) -> str:
    """What stands below the question before anything moves: controls, picture, sentence."""
    if figure == "frames":
        return frames_inside(state, data)
    own = STILLS / f"{still_name(figure, state)}.html"
    plain = STILLS / f"{figure}.html"
    return (own if own.exists() else plain).read_text()


def still_name(figure: str, state: dict[str, Any]) -> str:
    """The name of the still of a state, as in clock-3-2."""
    return "-".join([figure, *(f"{value}" for value in state.values())])


@cache
def style_of_stills() -> str:
    """The rules of the style sheet that draw the picture, with colours in place of variables."""
    found = PICTURE_RULES.search((FOLDER / "kit.css").read_text())
    assert found is not None
    return re.sub(r"\s+", " ", COLOUR.sub(r"\1", found[1])).strip()


# ---- The kinds that compute in the browser -------------------------------------------------------


def computed(figure: str, question: str, state: dict[str, Any]) -> Figure:
    """A figure whose numbers its module computes. What is out of its range begins at its end."""
    for name, value in state.items():
        if not isinstance(value, Real):
            raise TypeError(f"{name} must be a real number, got {value!r}")
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value!r}")
    return Figure(figure, question, {key: plain(value) for key, value in state.items()})


def plain(value: Any) -> int | float:
    """A number of Python's own, as the browser is sent it."""
    return int(value) if isinstance(value, Integral) else float(value)


def clock(x: int = 3, step: int = 2, *, question: str = "") -> Figure:
    """Four clocks (d = 8, B = 16), the row of a position, and the blocks of T(Δx), with numbers.

    Examples
    --------
    >>> clock(5, step=3)
    Live figure: clock(x=5, step=3)
    """
    return computed("clock", question, {"x": x, "step": step})


def orbit(decay: float = 0.0, pitch: float = 0.0, *, question: str = "") -> Figure:
    """A path of points and its matrix of distances: circle, spiral, helix, ellipse.

    Examples
    --------
    >>> orbit(decay=0.05)
    Live figure: orbit(decay=0.05, pitch=0.0)
    """
    return computed("orbit", question, {"decay": decay, "pitch": pitch})


def similarity(
    d_model: int = 512, base: float = 10_000, offset: int = 5, *, question: str = ""
) -> Figure:
    """K(Δ)/(d/2) against the offset, with its limit, the logarithmic law and the first rise.

    Examples
    --------
    >>> similarity(256)
    Live figure: similarity(d_model=256, base=10000, offset=5)
    """
    return computed("similarity", question, {"d_model": d_model, "base": base, "offset": offset})


def subspaces(angle: float = 60.0, *, question: str = "") -> Figure:
    """A line of words and one of positions at an angle: two jobs for one matrix, and the price.

    Examples
    --------
    >>> subspaces(8)
    Live figure: subspaces(angle=8)
    """
    return computed("subspaces", question, {"angle": angle})


def rope(m: int = 5, n: int = 2, *, question: str = "") -> Figure:
    """A query at m and a key at n on dials, and their score against the offset.

    Examples
    --------
    >>> rope(7, 6)
    Live figure: rope(m=7, n=6)
    """
    return computed("rope", question, {"m": m, "n": n})


def formats(position: int = 10_000, *, question: str = "") -> Figure:
    """The row of a position in float64, with float32 angles, with a bfloat16 position; errors.

    Examples
    --------
    >>> formats(257)
    Live figure: formats(position=257)
    """
    return computed("formats", question, {"position": position})


# ---- Frames: for what needs Python ---------------------------------------------------------------


def frames(
    draw: Callable[[Any], Drawing],
    values: Sequence[Any],
    *,
    label: str,
    describe: Callable[[Any], str],
    show: Callable[[Any], str] = str,
    start: int = 0,
    question: str = "",
    buttons: bool = False,
) -> Figure:
    """A figure that chooses among the drawings of at most 40 values.

    Parameters
    ----------
    draw
        Makes the drawing of one value. All should have one size and fixed axis limits.
    values
        What the control runs through.
    label
        The name of the control, for everyone who reads or hears the page.
    describe
        A sentence that says what the drawing of a value shows: its text alternative.
    show
        How a value is written beside the control, or on its button.
    start
        Index of the value to begin with.
    question
        What the reader should answer before moving anything.
    buttons
        A button for each value in place of a range: for choices that have no order.

    Returns
    -------
    Figure
        No value, more than 40, or a start that is none of them are a ``ValueError``.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from pe_lib.book import plots
    >>> def draw(angle):
    ...     figure, ax = plt.subplots()
    ...     plots.clock(ax, angle)
    ...     return figure
    >>> def describe(angle):
    ...     return f"A clock whose hand stands at {angle} radians."
    >>> frames(draw, [0, 1, 2], label="angle", describe=describe)
    Live figure: angle, 3 frames
    """
    values = list(values)
    check_frames(len(values), MOST_FRAMES_OF_ONE, start)
    control = {"label": label, "shown": [show(value) for value in values], "buttons": buttons}
    drawn = [frame(draw(value), describe(value)) for value in values]
    return Figure("frames", question, {"frame": start}, {"controls": [control], "frames": drawn})


def frames2(
    draw: Callable[[Any, Any], Drawing],
    values: tuple[Sequence[Any], Sequence[Any]],
    *,
    labels: tuple[str, str],
    describe: Callable[[Any, Any], str],
    show: tuple[Callable[[Any], str], Callable[[Any], str]] = (str, str),
    start: tuple[int, int] = (0, 0),
    question: str = "",
    buttons: tuple[bool, bool] = (False, False),
) -> Figure:
    """The same for each pair of two values, at most 100 in all; arguments as for `frames`, twice.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from pe_lib.book import plots
    >>> def draw(position, frequency):
    ...     figure, ax = plt.subplots()
    ...     plots.clock(ax, position * frequency)
    ...     return figure
    >>> def describe(position, frequency):
    ...     return f"A clock whose hand stands at {position * frequency} radians."
    >>> axes = ("position", "frequency")
    >>> frames2(draw, ([0, 1, 2], [1.0, 0.1]), labels=axes, describe=describe)
    Live figure: position × frequency, 6 frames
    """
    lists = [list(one) for one in values]
    for one, first in zip(lists, start, strict=True):
        check_frames(len(one), MOST_FRAMES_OF_TWO, first)
    check_frames(len(lists[0]) * len(lists[1]), MOST_FRAMES_OF_TWO, 0)
    controls = [
        {"label": label, "shown": [one_shown(value) for value in one], "buttons": pressed}
        for label, one, one_shown, pressed in zip(labels, lists, show, buttons, strict=True)
    ]
    drawn = [frame(draw(a, b), describe(a, b)) for a in lists[0] for b in lists[1]]
    state = {"frame": start[0], "frame2": start[1]}
    return Figure("frames", question, state, {"controls": controls, "frames": drawn})


def frame(drawing: Drawing, said: str) -> str:
    """A drawing as it stands in a box."""
    return to_svg(drawing, said).replace(f' style="{ALONE}"', "", 1)


def check_frames(count: int, most: int, start: int) -> None:
    if not 1 <= count <= most:
        raise ValueError(f"values must give from 1 to {most} frames, got {count}")
    if not 0 <= start < count:
        raise ValueError(f"start must be an index from 0 to {count - 1}, got {start}")


def frame_of(state: dict[str, Any], data: dict[str, Any]) -> int:
    """Which of the frames a state shows."""
    counts = [len(control["shown"]) for control in data["controls"]]
    first, *second = state.values()
    return int(first * counts[1] + second[0]) if second else int(first)


def frames_inside(state: dict[str, Any], data: dict[str, Any]) -> str:
    """The text that the kit writes for a figure of frames; a test holds it to that."""
    controls = [
        frame_control(key, place, control)
        for (key, place), control in zip(state.items(), data["controls"], strict=True)
    ]
    return (
        f'<div class="live__controls">{"".join(controls)}\n'
        '<div class="live__row live__presets"></div></div>\n'
        f'<div class="live__picture">{data["frames"][frame_of(state, data)]}</div>\n'
        '<p class="live__says" aria-live="polite"></p>'
    )


def frame_control(key: str, place: int, control: dict[str, Any]) -> str:
    name, shown = html.escape(control["label"]), [html.escape(one) for one in control["shown"]]
    if control["buttons"]:
        buttons = "".join(
            f'<button type="button" data-set="{key}" data-value="{value}"'
            f' aria-pressed="{"true" if value == place else "false"}">{words}</button>'
            for value, words in enumerate(shown)
        )
        return (
            f'<div class="live__control live__choice" role="group" aria-label="{name}">\n'
            f'<span class="live__name">{name}</span><span class="live__row">{buttons}</span></div>'
        )
    return (
        f'<div class="live__control"><span class="live__name" aria-hidden="true">{name}</span>\n'
        f'<span class="live__value" aria-hidden="true">{shown[place]}</span>'
        f'<input type="range" data-key="{key}" min="0" max="{len(shown) - 1}" step="1"'
        f' value="{place}" aria-label="{name}" aria-valuetext="{shown[place]}"></div>'
    )
