"""Figures of the experiment on the clock, for the pages of the book."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from numpy.typing import NDArray

from experiments.clock.hands import DIRECTIONS, explained_pairs, in_strongest_directions
from experiments.clock.prediction import left_of
from experiments.clock.results import Moment, fastest_control, turned_to
from pe_book import plots

Places = NDArray[Any]  # numbers of places: which row is to predict which

# How a plane is drawn, by what it counts as.
MARKS: dict[str, dict[str, Any]] = {
    "hand": {"ms": 7, "color": plots.POSITION},
    "wave": {"ms": 5, "mfc": "none", "color": plots.POSITION},
    "another plane": {"ms": 1.5, "color": plots.GREY},
}
BOUNDS = {"hand": "-", "wave": "--"}


def draw_hands(ax: Axes, moments: Sequence[Moment], left_at: int | None = None) -> None:
    """Positions a turn of each plane along the training, by what the plane counts as.

    The lines are the fastest controls of a hand and of a wave, and a dotted one stands where the
    run leaves the plateau.
    """
    length = len(moments[0].components)
    for kind, mark in MARKS.items():
        ax.plot([], [], "o", label=kind, **mark)
    for moment in moments:
        for plane in moment.planes:
            counts = (plane in moment.hands, plane in moment.waves, True)
            kind = next(kind for kind, is_it in zip(MARKS, counts, strict=True) if is_it)
            step = max(moment.step, 25)  # step 0 has no place on a logarithmic axis
            ax.plot(step, plane.period, "o", **MARKS[kind])
    for name, style in BOUNDS.items():
        bound = fastest_control(length, name)
        ax.axhline(bound, color=plots.INK, ls=style, lw=1, label=f"fastest control of a {name}")
    if left_at is not None:
        ax.axvline(left_at, color=plots.GREY, ls=":", lw=1, label="leaves the plateau")
    ax.set(xscale="log", yscale="log", xlabel="step", ylabel="positions a turn")
    ticks = (2, 5, 10, 20, 50)
    ax.set_yticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(1.9, length / 2)


def draw_pairs(
    ax: Axes, runs: Sequence[Sequence[Moment]], pairs: dict[str, tuple[Places, Places]]
) -> None:
    """How much of its rows one matrix explains along the training, for each way to pair places.

    A line is a run. The matrix takes the row of the first place of a pair to that of the second.
    """
    looks = ((plots.GREY, ":"), (plots.POSITION, "-"), (plots.INK, "--"))
    for (name, (here, there)), (colour, style) in zip(pairs.items(), looks, strict=True):
        ax.plot([], [], style, color=colour, label=name)
        for moments in runs:
            rows = [moment.components[:, :DIRECTIONS] for moment in moments]
            steps = [max(moment.step, 25) for moment in moments]
            shares = [explained_pairs(each[here], each[there]) for each in rows]
            ax.semilogx(steps, shares, style, color=colour, lw=1)
    ax.set(xlabel="step of training", ylim=(0, 1))


def draw_predicted(ax: Axes, shares: dict[str, Sequence[Sequence[float]]]) -> None:
    """How much of a row one matrix predicts from the row so many rows before it, left out.

    ``shares`` has the curves of each kind of table, from the next row on. A line is a table.
    """
    looks = (
        (plots.INK, "-"),
        (plots.INK, ":"),
        (plots.POSITION, "-"),
        (plots.POSITION, "--"),
        (plots.POSITION, ":"),
    )
    for (name, curves), (colour, style) in zip(shares.items(), looks, strict=True):
        ax.plot([], [], style, color=colour, label=name)
        for curve in curves:
            ax.plot(range(1, len(curve) + 1), curve, style, color=colour, lw=1)
    ax.axhline(0, color=plots.GREY, lw=0.5)
    ax.set(xlabel="rows ahead", ylabel="R², left out", ylim=(-0.5, 1))
    ax.set_xticks([1, 4, 8, 12, 16])


def draw_keeping_time(ax: Axes, curves: Sequence[Sequence[float]]) -> None:
    """Of what one matrix predicts of the next row, the part that it still does further ahead.

    A line is a table, and the dots stand at four rows ahead.
    """
    for curve in curves:
        part = left_of(curve)
        ax.plot(range(1, len(part) + 1), part, color=plots.POSITION, lw=1.3)
        ax.plot(4, part[3], "o", ms=4, color=plots.POSITION)
    ax.axhline(0, color=plots.GREY, lw=0.5)
    ax.set(xlabel="rows ahead", ylim=(-0.3, 1.05), xticks=[1, 4, 8, 12, 16])


def draw_predicted_by_place(
    ax: Axes, tables: dict[str, tuple[Places, NDArray[Any]]], ahead: int
) -> None:
    """How much of a row one matrix predicts from a row before it, by the place in the table.

    ``tables`` has the places and the shares of six tables, in the order of their lines.
    """
    looks = (
        (plots.INK, "-"),
        (plots.INK, "--"),
        (plots.INK, ":"),
        (plots.POSITION, "-"),
        (plots.POSITION, "--"),
        (plots.GREY, "-"),
    )
    for (name, (places, shares)), (colour, style) in zip(tables.items(), looks, strict=True):
        ax.plot(places, shares, style, color=colour, label=name)
    ax.axhline(0, color=plots.GREY, lw=0.5)
    ax.set(xlabel="place", ylabel=f"R², {ahead} rows ahead", ylim=(-0.5, 1))


def draw_order(
    ax: Axes, runs: Sequence[Sequence[Moment]], exits: Sequence[int | None], at: int
) -> None:
    """How much of the next rows one matrix explains along the training, and the row itself.

    A line is a run; the dots are all runs at the step ``at``. Where each leaves the plateau stands
    a dashed line.
    """
    for moments in runs:
        steps = [max(moment.step, 25) for moment in moments]
        ax.semilogx(steps, [moment.matrix for moment in moments], color=plots.POSITION, lw=1)
        ax.semilogx(steps, [moment.identity for moment in moments], ":", color=plots.GREY, lw=1)
        here = next(moment for moment in moments if moment.step == at)
        ax.plot(max(at, 25), here.matrix, "o", ms=4, color=plots.POSITION)
    for left_at in filter(None, exits):
        ax.axvline(left_at, color=plots.STEP, ls="--", lw=1)
    ax.plot([], [], color=plots.POSITION, label="one matrix")
    ax.plot([], [], ":", color=plots.GREY, label="the row itself")
    ax.plot([], [], "--", color=plots.STEP, label="loss leaves its plateau")
    ax.set(xlabel="step of training", ylabel="R² of the next row", ylim=(-0.1, 1))


def draw_ring(ax: Axes, moment: Moment, like: Moment) -> None:
    """The rows in the two strongest directions of ``like``, joined in their order.

    The strongest directions of two steps of training are turned onto each other first. Each table
    fills the drawing: it is small at the start, and its shape is what counts.
    """
    rows = turned_to(moment.components, like.components)[:, :2]
    middle = (rows.min(axis=0) + rows.max(axis=0)) / 2
    reach = 1.1 * abs(rows - middle).max()
    (left, right), (low, high) = ((at - reach, at + reach) for at in middle)
    ax.plot(*rows.T, "o-", ms=2.5, lw=0.7, color=plots.POSITION)
    ax.set(aspect="equal", xlim=(left, right), ylim=(low, high), title=f"step {moment.step:,}")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines["bottom"].set_visible(False)


def draw_two_directions(ax: Axes, rows: NDArray[Any]) -> None:
    """The rows of a table, joined in their order, in the two directions in which they vary most."""
    joined = in_strongest_directions(rows, 2)
    ax.plot(*joined.T, "o-", ms=2.5, lw=0.7, color=plots.POSITION)
    ax.set_aspect("equal")
    ax.axis("off")
