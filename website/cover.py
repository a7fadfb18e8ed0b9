"""Draw the picture of the landing page and the README, and the one that a shared link shows."""

import base64
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Rectangle
from playwright.sync_api import sync_playwright

from pe_book import live, plots
from pe_book.live import still
from pe_lib import numpy as pe
from website.browser import start_browser

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "website" / "assets"
COVER, CARD = ROOT / "book" / "images" / "cover.svg", ASSETS / "social.png"
D_MODEL, SEQ_LEN, POSITION, OFFSET = 128, 64, 23, 6
PAIRS_SHOWN = (0, 6, 12, 18, 24, 30)

FONT = ASSETS / "vendor/source-serif/source-serif-4-latin-{}.woff2"
# The page that becomes the card, in the fonts and with the clocks of the site.
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>
@font-face {{ font-family: serif4; src: url({regular}); }}
@font-face {{ font-family: serif4; font-style: italic; src: url({italic}); }}
@font-face {{ font-family: serif4; font-weight: 600; src: url({bold}); }}
{kit}
body {{ margin: 0; padding: 36px 60px; background: #fff; color: #1f2328;
  font: 33px/1.3 serif4; }}
header {{ display: flex; align-items: center; gap: 26px; }}
h1 {{ font-size: 78px; line-height: 1; margin: 0; letter-spacing: -0.011em; }}
p {{ margin: 10px 0 14px; }}
.live {{ max-width: none; }}
.live__controls, .live__says, .live__formula {{ display: none; }}
.live-picture--wide {{ width: 720px; }}
</style>
<header><img src="{logo}" width="104" alt=""><h1>Positional Encoding</h1></header>
<p>A step turns each clock by an angle of its own, wherever it stood:<br>
<i>PE</i>(<i>x</i> + Δ<i>x</i>) = <i>PE</i>(<i>x</i>) <i>T</i>(Δ<i>x</i>)</p>
<div class="live">{clocks}</div>"""


def main() -> None:
    draw_cover(COVER)
    draw_card(CARD)


def draw_card(path: Path) -> None:
    """What a shared link shows looks as the site does."""
    faces = {
        "regular": "400-normal",
        "italic": "400-italic",
        "bold": "600-normal",
    }
    page = PAGE.format(
        **{name: address(Path(str(FONT).format(face))) for name, face in faces.items()},
        logo=address(ASSETS / "logo.svg"),
        kit=(live.FOLDER / "kit.css").read_text(encoding="utf-8"),
        clocks=still.content_of_box("clock", {"x": 3, "step": 2, "block": "T"}, {}),
    )
    with sync_playwright() as playwright, start_browser(playwright) as browser:
        card = browser.new_page(viewport={"width": 1200, "height": 630})
        card.set_content(page)
        card.evaluate("document.fonts.ready.then(() => null)")
        card.screenshot(path=path)


def address(path: Path) -> str:
    """A file as an address that holds it."""
    kinds = {".svg": "image/svg+xml", ".woff2": "font/woff2"}
    data = base64.b64encode(path.read_bytes()).decode()
    return f"data:{kinds[path.suffix]};base64,{data}"


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
    for position, name in (
        (POSITION, "PE(x)"),
        (POSITION + OFFSET, "PE(x + Δx)"),
    ):
        row = Rectangle((-0.5, position - 0.5), D_MODEL, 1, fill=False, color=plots.INK)
        ax.add_patch(row)
        ax.text(D_MODEL + 0.5, position, name, va="center")


def draw_turn(ax: Axes, pair: int) -> None:
    """The clock of one pair before (dashed) and after the turn by ω_iΔx."""
    omega = pe.frequencies(D_MODEL)[pair]
    plots.clock(ax, omega * POSITION, colour=plots.POSITION)
    ax.lines[0].set_linestyle((0, (2, 1)))
    plots.clock(ax, omega * (POSITION + OFFSET), colour=plots.AFTER_STEP)
    before, after = (90 - np.degrees(omega * x) for x in (POSITION, POSITION + OFFSET))
    ax.add_patch(
        Arc(
            (0, 0),
            1,
            1,
            theta1=after,
            theta2=before,
            color=plots.STEP,
            lw=1.5,
        )
    )
    ax.set_title(f"pair {pair}", loc="center", fontsize=13)


if __name__ == "__main__":
    main()
