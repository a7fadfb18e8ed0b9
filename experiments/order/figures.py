"""Figures of the experiment on order, for the pages of the book."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from experiments.positions.results import ExitAndLoss, where
from experiments.stored import Run
from pe_book import plots

# Ways by where they act, in the order in which they are drawn.
GROUPS = {
    "in the scores": ("rotary", "untied", "relative-bias", "alibi"),
    "beside or into the words": ("add", "split", "keep-both", "project"),
}
MARKS = {"in the scores": ("o", plots.INK), "beside or into the words": ("s", plots.POSITION)}


def draw_exits(ax: Axes, pairs: Sequence[ExitAndLoss]) -> None:
    """Final loss against the step at which each run left the plateau."""
    draw_losses(ax, pairs, lambda pair: pair.step)
    ax.set(xlabel="step at which the run leaves the plateau", ylabel="loss after the last step")
    ax.legend()


def draw_losses(
    ax: Axes, pairs: Sequence[ExitAndLoss], against: Callable[[ExitAndLoss], float]
) -> None:
    """A mark for each run, one kind for each group of ways."""
    for group, ways in GROUPS.items():
        inside = [pair for pair in pairs if pair.way.startswith(ways)]
        marker, colour = MARKS[group]
        ax.plot(
            [against(pair) for pair in inside],
            [pair.loss for pair in inside],
            marker,
            ms=3.5,
            mfc="none",
            color=colour,
            label=group,
        )


def draw_curves(ax: Axes, runs: Sequence[Run], styles: dict[str, tuple[str, str, str]]) -> None:
    """The median curve of each encoding in ``styles``: its label, colour and line style."""
    for encoding, (label, colour, style) in styles.items():
        of = where(list(runs), encoding=encoding)
        if of:
            curves = np.array([run["curve"] for run in of])
            middle = np.median(curves[:, :, 1], axis=0)
            ax.plot(curves[0, :, 0], middle, style, color=colour, label=label)
    ax.set(xlabel="step", ylabel="validation loss")
