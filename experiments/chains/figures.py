"""Figures of the experiment on texts that move, for the pages of the book."""

from matplotlib.axes import Axes

from experiments.chains.results import moments, of_kind
from experiments.stored import Run
from pe_book import plots

HALVES = {"first": "o", "second": "s"}


def draw_halves(ax: Axes, runs: list[Run], names: dict[tuple[str, int], str]) -> None:
    """How much of the next row is predicted at the end, by kind and half. A mark is a seed.

    ``names`` says what each kind is called, with the number of words by which it moves at most.
    Grey marks are the tables as they were drawn.
    """
    for at, (kind, most) in enumerate(names):
        for run in of_kind(runs, kind, most=most):
            begin, *_, end = moments(run)
            for shift, (half, mark) in zip((-0.15, 0.15), HALVES.items(), strict=True):
                for moment, colour in ((begin, plots.LIGHT_GREY), (end, plots.POSITION)):
                    share = getattr(moment, half).next_row
                    place = at + shift + 0.02 * (run["seed"] - 2)
                    ax.plot(place, share, mark, ms=4, mfc="none", color=colour)
    for half, mark in HALVES.items():
        ax.plot([], [], mark, ms=4, mfc="none", color=plots.POSITION, label=f"{half} half")
    ax.plot([], [], "o", ms=4, mfc="none", color=plots.LIGHT_GREY, label="as drawn")
    ax.axhline(0, color=plots.GREY, lw=0.5)
    ax.set_xticks(range(len(names)), list(names.values()))
    ax.set(ylabel="share of the next row", xlim=(-0.5, len(names) - 0.5), ylim=(-0.3, 1))
