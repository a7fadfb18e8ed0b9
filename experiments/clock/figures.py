"""Figures of the experiment on the clock, for the pages of the book."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from experiments.clock.results import Moment, fastest_control, turned_to
from pe_book import plots


def draw_hands(ax: Axes, moments: Sequence[Moment], left_at: int | None = None) -> None:
    """Positions a turn of each plane along the training: hands large, waves smaller, others dots.

    The line is the fastest control of a hand, and a dotted one stands where the run leaves the
    plateau.
    """
    length = len(moments[0].components)
    bound = fastest_control(length)
    for moment in moments:
        for plane in moment.planes:
            counts = plane in moment.hands or plane in moment.waves
            ax.plot(
                max(moment.step, 25),  # step 0 has no place on a logarithmic axis
                plane.period,
                "o",
                ms=7 if plane in moment.hands else 4 if counts else 1.5,
                color=plots.POSITION if counts else plots.GREY,
            )
    ax.axhline(bound, color=plots.INK, lw=1)
    if left_at is not None:
        ax.axvline(left_at, color=plots.GREY, ls=":", lw=1)
    ax.set(xscale="log", yscale="log", xlabel="step", ylabel="positions a turn")
    ticks = (2, 5, 10, 20, 50)
    ax.set_yticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(1.9, length / 2)


def draw_ring(ax: Axes, moment: Moment, like: Moment) -> None:
    """The rows in the two strongest directions of ``like``, joined in their order.

    The strongest directions of two steps of training are turned onto each other first.
    """
    rows = turned_to(moment.components, like.components)
    reach = 1.1 * abs(like.components[:, :2]).max()
    ax.plot(*rows[:, :2].T, "o-", ms=2.5, lw=0.7, color=plots.POSITION)
    ax.set(
        aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach), title=f"step {moment.step:,}"
    )
    ax.set_xticks([])
    ax.set_yticks([])
