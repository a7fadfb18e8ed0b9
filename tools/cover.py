"""Draw the picture of the landing page and the README, and the one that a shared link shows."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Rectangle

from pe_lib import numpy as pe
from pe_lib.book import plots

BOOK = Path(__file__).resolve().parent.parent / "book"
COVER, CARD = BOOK / "images" / "cover.svg", BOOK / "_assets" / "social.png"
D_MODEL, SEQ_LEN, POSITION, OFFSET = 128, 64, 23, 6
PAIRS_SHOWN = (0, 6, 12, 18, 24, 30)


def main() -> None:
    draw_cover(COVER)
    card = draw()
    card.set_size_inches(12, 6.3)
    card.suptitle("Positional Encoding", x=0.03, ha="left", fontsize=30, fontweight="bold")
    card.savefig(CARD, dpi=100, metadata={"Software": None})


def draw_cover(path: Path) -> None:
    plots.use_style()
    with mpl.rc_context({"svg.fonttype": "path", "font.size": 13}):
        draw().savefig(path, metadata={"Date": None})


def draw() -> Figure:
    """The table with two of its rows, and the clocks that lead from one to the other."""
    figure = plt.figure(figsize=(8, 4.5))
    grid = figure.add_gridspec(2, len(PAIRS_SHOWN), height_ratios=(2.1, 1))
    draw_table(figure.add_subplot(grid[0, :]))
    for column, pair in enumerate(PAIRS_SHOWN):
        draw_turn(figure.add_subplot(grid[1, column]), pair)
    return figure


def draw_table(ax: Axes) -> None:
    table = pe.sinusoidal_table(SEQ_LEN, D_MODEL)
    plots.heat_map(ax, table, x_label="dimension", y_label="position")
    ax.xaxis.set_label_position("top")
    ax.xaxis.tick_top()
    for position, name in ((POSITION, "PE(x)"), (POSITION + OFFSET, "PE(x + Δx)")):
        row = Rectangle((-0.5, position - 0.5), D_MODEL, 1, fill=False, color=plots.INK)
        ax.add_patch(row)
        ax.text(D_MODEL + 0.5, position, name, va="center")


def draw_turn(ax: Axes, pair: int) -> None:
    """The clock of one pair before (dashed) and after the turn by ω_iΔx."""
    omega = pe.frequencies(D_MODEL)[pair]
    plots.clock(ax, omega * POSITION, colour=plots.SKY)
    ax.lines[0].set_linestyle((0, (2, 1)))
    plots.clock(ax, omega * (POSITION + OFFSET), colour=plots.BLUE)
    before, after = (90 - np.degrees(omega * x) for x in (POSITION, POSITION + OFFSET))
    ax.add_patch(Arc((0, 0), 1, 1, theta1=after, theta2=before, color=plots.VERMILION, lw=1.5))
    ax.set_title(f"pair {pair}", loc="center", fontsize=13)


if __name__ == "__main__":
    main()
