"""Figures that choose among prepared drawings: for pictures that need Python."""

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure as Drawing

from pe_book.live.figure import KINDS, LiveFigure, Number
from pe_book.plots import STYLE_ALONE, to_svg

MOST_FRAMES_OF_ONE, MOST_FRAMES_OF_TWO = 40, 100


class Frames(LiveFigure):
    kind = "frames"
    frame = Number(0).tag(sync=True, control=True)
    frame2 = Number(0).tag(sync=True, control=True)

    def __repr__(self) -> str:
        labels = " × ".join(one["label"] for one in self.data["controls"])
        return f"Live figure: {labels}, {len(self.data['frames'])} frames"


KINDS[Frames.kind] = Frames


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
) -> Frames:
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
    Frames
        Its trait is ``frame``, the index of the drawing. No value, more than 40, or a start that is
        none of them are a ``ValueError``.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from pe_book import plots
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
    said = [describe(value) for value in values]
    drawings = [drawing_of(draw(value), text) for value, text in zip(values, said, strict=True)]
    controls = [control_of(values, label, show, buttons)]
    data = {"controls": controls, "frames": drawings, "said": said}
    return Frames(frame=start, question=question, data=data)


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
) -> Frames:
    """The same for each pair of two values, at most 100 in all; arguments as for `frames`, twice.

    Its traits are ``frame`` and ``frame2``, the indices of the two values.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from pe_book import plots
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
    first_values, second_values = map(list, values)
    check_frames(len(first_values), MOST_FRAMES_OF_TWO, start[0])
    check_frames(len(second_values), MOST_FRAMES_OF_TWO, start[1])
    check_frames(len(first_values) * len(second_values), MOST_FRAMES_OF_TWO, 0)
    controls = [
        control_of(first_values, labels[0], show[0], buttons[0]),
        control_of(second_values, labels[1], show[1], buttons[1]),
    ]
    pairs = [(first, second) for first in first_values for second in second_values]
    said = [describe(*pair) for pair in pairs]
    drawings = [drawing_of(draw(*pair), text) for pair, text in zip(pairs, said, strict=True)]
    data = {"controls": controls, "frames": drawings, "said": said}
    return Frames(frame=start[0], frame2=start[1], question=question, data=data)


def control_of(
    values: Sequence[Any], label: str, show: Callable[[Any], str], buttons: bool
) -> dict[str, Any]:
    """What the script needs to make the control that chooses among these values."""
    return {"label": label, "shown": [show(value) for value in values], "buttons": buttons}


def drawing_of(drawing: Drawing, description: str) -> str:
    """A drawing as it stands in a box, where the style sheet says what it needs."""
    return to_svg(drawing, description).replace(f' style="{STYLE_ALONE}"', "", 1)


def check_frames(count: int, most: int, start: int) -> None:
    if not 1 <= count <= most:
        raise ValueError(f"values must give from 1 to {most} frames, got {count}")
    if not 0 <= start < count:
        raise ValueError(f"start must be an index from 0 to {count - 1}, got {start}")
