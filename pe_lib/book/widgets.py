"""Sliders that move without a kernel.

Every frame is drawn when the cell runs, and the slider is linked to the stack of frames in the
browser. So one cell gives a live slider in JupyterLab, on Binder and in the built page.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import ipywidgets as widgets
from ipywidgets.widgets.widget_string import HTMLStyle
from matplotlib.figure import Figure

from pe_lib.book.plots import to_svg

MOST_FRAMES_OF_ONE_SLIDER, MOST_FRAMES_OF_TWO = 40, 100

X = TypeVar("X")
Y = TypeVar("Y")


class FrameSlider(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """One or two sliders above the stack of prepared pictures that they choose from.

    `frame_slider` and `frame_slider_2d` make it. Its display bundle also carries the first picture,
    for pages and printers that cannot show the widget.
    """

    def __init__(self, children: Sequence[widgets.Widget], first_frame: str, title: str) -> None:
        super().__init__(children=tuple(children))
        self.add_class("pe-slider")
        self._first_frame, self._title = first_frame, title

    def __repr__(self) -> str:
        return self._title

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The live widget, and its first picture for pages and printers that cannot show it."""
        bundle = super()._repr_mimebundle_(**kwargs) or {}
        return bundle | {"text/plain": repr(self), "image/svg+xml": self._first_frame}


def frame_slider(
    draw: Callable[[X], Figure],
    values: Sequence[X],
    *,
    label: str,
    describe: Callable[[X], str],
    show: Callable[[X], str] = str,
    start: int = 0,
) -> FrameSlider:
    """A slider over the figures that ``draw`` makes for each of at most 40 values.

    Parameters
    ----------
    draw
        Makes the figure of one value. All figures should have one size and fixed axis limits.
    values
        What the slider runs through.
    label
        The name of the slider, for everyone who reads or hears the page.
    describe
        A sentence that says what the picture of a value shows: its text alternative.
    show
        How a value is written beside the slider.
    start
        Index of the value to begin with.

    Returns
    -------
    FrameSlider
        Left as the last value of a cell, it shows. More than 40 values are a ``ValueError``.

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
    >>> frame_slider(draw, [0, 1, 2], label="angle", describe=describe)
    Slider: angle, 3 frames
    """
    values = list(values)
    _check_frames(len(values), MOST_FRAMES_OF_ONE_SLIDER)
    frames = [to_svg(draw(value), describe(value)) for value in values]
    slider = _slider(label, [show(value) for value in values], start)
    stack = _stack(frames, start)
    widgets.jslink((slider, "index"), (stack, "selected_index"))
    return FrameSlider([slider, stack], frames[start], f"Slider: {label}, {len(values)} frames")


def frame_slider_2d(
    draw: Callable[[X, Y], Figure],
    values: tuple[Sequence[X], Sequence[Y]],
    *,
    labels: tuple[str, str],
    describe: Callable[[X, Y], str],
    show: tuple[Callable[[X], str], Callable[[Y], str]] = (str, str),
    start: tuple[int, int] = (0, 0),
) -> FrameSlider:
    """Two sliders over the figures of each pair of values, at most 100 in all.

    The arguments are those of `frame_slider`, twice.

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
    >>> frame_slider_2d(draw, ([0, 1, 2], [1.0, 0.1]), labels=axes, describe=describe)
    Sliders: position × frequency, 6 frames
    """
    first, second = list(values[0]), list(values[1])
    _check_frames(len(first) * len(second), MOST_FRAMES_OF_TWO)
    frames = [[to_svg(draw(x, y), describe(x, y)) for y in second] for x in first]
    outer_slider = _slider(labels[0], [show[0](x) for x in first], start[0])
    inner_slider = _slider(labels[1], [show[1](y) for y in second], start[1])
    inner_stacks = [_stack(row, start[1]) for row in frames]
    outer_stack = widgets.Stack(inner_stacks, selected_index=start[0])
    widgets.jslink((outer_slider, "index"), (outer_stack, "selected_index"))
    for stack in inner_stacks:
        widgets.jslink((inner_slider, "index"), (stack, "selected_index"))
    title = f"Sliders: {labels[0]} × {labels[1]}, {len(first) * len(second)} frames"
    first_frame = frames[start[0]][start[1]]
    return FrameSlider([outer_slider, inner_slider, outer_stack], first_frame, title)


def _stack(frames: Sequence[str], start: int) -> widgets.Stack:
    """The frames, of which one shows. They share one layout and one style, to keep pages small."""
    layout, style = widgets.Layout(), HTMLStyle()
    pictures = [widgets.HTML(frame, layout=layout, style=style) for frame in frames]
    return widgets.Stack(pictures, selected_index=start)


def _slider(label: str, shown: Sequence[str], start: int) -> widgets.SelectionSlider:
    return widgets.SelectionSlider(
        options=[(text, index) for index, text in enumerate(shown)],
        index=start,
        description=label,
        style={"description_width": "initial"},
        layout={"width": "min(100%, 32em)"},
    )


def _check_frames(count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise ValueError(f"values must give from 1 to {most} frames, got {count}")
