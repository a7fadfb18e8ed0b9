"""Draw the picture of the landing page and the README, and the cards that shared links show.

    python website/cover.py     draw the cover, and the cards whose inputs have changed

A card is a page of HTML, as a browser shows it. Its file holds a checksum of this page and of what
the page of the book has found. tests/website/test_cards.py compares it.
"""

import base64
import hashlib
import io
import re
from functools import cache
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
import numpy as np
from jinja2 import Environment, StrictUndefined
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Rectangle
from numpy.typing import NDArray
from PIL import Image, ImageColor
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import sync_playwright
from scipy.spatial.distance import cdist

from pe_book import plots
from pe_book.plots import AFTER_STEP, ERROR, GREY, INK, LIGHT_GREY, POSITION, STEP, WORD
from pe_lib import numpy as pe
from website.browser import start_browser
from website.card_drawings import DRAWINGS, SIDE
from website.cards import BOOK, GENERAL, SIZE, Card, cards

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "website" / "assets"
COVER = ROOT / "book" / "images" / "cover.svg"
D_MODEL, SEQ_LEN, PLACE, OFFSET = 128, 64, 23, 6
PAIRS_SHOWN = (0, 6, 12, 18, 24, 30)

FONT = ASSETS / "vendor/source-serif/source-serif-4-latin-{}.woff2"
# A sentence whose letters are 60 px high, and 18 px in a chat on a phone.
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>
@font-face { font-family: serif4; src: url({{ regular }}); }
@font-face { font-family: serif4; font-weight: 600; src: url({{ bold }}); }
body { background: #fff; color: #1f2328; font: 36px/1 serif4; height: 630px; margin: 0; }
main { left: 56px; position: absolute; top: 36px; width: 600px; }
h1 { font-size: 82px; letter-spacing: -0.015em; line-height: 1.05; margin: 0; text-wrap: balance; }
.general h1 { font-size: 116px; }
p { background: #f6f8fa; border: 2px solid #c5ccd3; border-radius: 2em; color: #59636e;
  display: inline-block; margin: 18px 0 0 -4px; padding: 7px 24px 11px; }
footer { align-items: center; bottom: 28px; color: #59636e; display: flex; gap: 16px; left: 56px;
  position: absolute; }
svg { font-family: serif4; left: 662px; overflow: visible; position: absolute; top: 70px; }
</style>
<body{% if general %} class="general"{% endif %}>
<main><h1>{{ card.says }}</h1><p>{{ card.grade }}</p></main>
<footer><img src="{{ logo }}" width="{{ 110 if general else 48 }}" alt="">
{{ "" if general else "Positional Encoding" }}</footer>
<svg width="490" height="490" viewBox="0 0 {{ side }} {{ side }}">{{ drawing }}</svg>"""
TEMPLATE = Environment(undefined=StrictUndefined, autoescape=False).from_string(PAGE)
MUTED = "#59636e"  # as the page above has it
LOGO = ("#d55e00", "#009e73", "#e69f00")
HUES = (INK, MUTED, GREY, LIGHT_GREY, POSITION, AFTER_STEP, STEP, WORD, ERROR, *LOGO)
SHADES, FREQUENT = 8, 60  # of each hue, and of the picture itself
INPUTS = "inputs"  # the name of the checksum in a card's file
# A sentence in bold and its grade: the finding of a chapter, or of a section of the tour.
FINDING = re.compile(r"^\*\*[^*]+\*\*\s\*[^*]+\*", re.MULTILINE)
DESCRIPTION = re.compile(r"\A---\n.*?^---$", re.DOTALL | re.MULTILINE)


def main() -> None:
    draw_cover(COVER)
    stale = [card for card in cards().values() if stored_checksum(card) != checksum(card)]
    with sync_playwright() as playwright, start_browser(playwright) as browser:
        window = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        for card in stale:
            window.set_content(page_of(card))
            window.evaluate("document.fonts.ready.then(() => null)")
            keep(window.screenshot(), card)
            print(f"drawn anew: {card.path.relative_to(ROOT)}")


# ---- Cards


@cache
def page_of(card: Card) -> str:
    """The page that becomes a card, in the typeface and the colours of the site."""
    return TEMPLATE.render(
        regular=address(Path(str(FONT).format("400-normal"))),
        bold=address(Path(str(FONT).format("600-normal"))),
        logo=address(ASSETS / "logo.svg"),
        card=card,
        general=card.name == GENERAL,
        side=SIDE,
        drawing=DRAWINGS[card.name](),
    )


def keep(screenshot: bytes, card: Card) -> None:
    """Store a card in few colours, with the checksum of what it was made from."""
    said = PngInfo()
    said.add_text(INPUTS, checksum(card))
    card.path.parent.mkdir(exist_ok=True)
    with Image.open(io.BytesIO(screenshot)) as picture:
        in_few_colours(picture).save(card.path, optimize=True, pnginfo=said)


def in_few_colours(picture: Image.Image) -> Image.Image:
    """A picture with a palette: shades of the book's colours, and what it has most itself. With a
    palette of its own alone, the logo would have other colours on each card."""
    pixels = np.asarray(picture.convert("RGB"))
    own, place, count = np.unique(
        pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    palette = np.vstack([shades(), own[np.argsort(-count)[:FREQUENT]]])
    nearest = cdist(own.astype(float), palette.astype(float)).argmin(axis=1).astype(np.uint8)
    few = Image.fromarray(nearest[place.reshape(-1)].reshape(pixels.shape[:2]))
    few.putpalette(palette.tobytes())
    return few


def shades() -> NDArray[np.uint8]:
    """The colours of the cards, each mixed with white in equal steps: the edges of letters."""
    hues = np.array([ImageColor.getrgb(hue) for hue in HUES])
    shares = np.arange(1, SHADES + 1)[:, None, None] / SHADES
    return np.rint(255 + (hues - 255) * shares).astype(np.uint8).reshape(-1, 3)


def checksum(card: Card) -> str:
    """What the picture is made from, and what the page has found when it was drawn."""
    return hashlib.sha256((findings(card) + page_of(card)).encode()).hexdigest()


def stored_checksum(card: Card) -> str:
    """The checksum in the file of a card, and nothing where there is no such file."""
    if not card.path.exists():
        return ""
    with Image.open(card.path) as picture:
        return str(picture.info.get(INPUTS, ""))


def findings(card: Card) -> str:
    """The sentences in which a page says what it has found; of a page without, its description."""
    if (path := BOOK / f"{card.name}.ipynb").exists():
        cells = nbformat.read(path, as_version=4).cells
        prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        found = FINDING.findall(prose)
    else:
        found = DESCRIPTION.findall((BOOK / f"{card.name}.md").read_text(encoding="utf-8"))
    return " ".join(" ".join(found).split())


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
        (PLACE, "PE(x)"),
        (PLACE + OFFSET, "PE(x + Δx)"),
    ):
        row = Rectangle((-0.5, position - 0.5), D_MODEL, 1, fill=False, color=plots.INK)
        ax.add_patch(row)
        ax.text(D_MODEL + 0.5, position, name, va="center")


def draw_turn(ax: Axes, pair: int) -> None:
    """The clock of one pair before (dashed) and after the turn by ω_iΔx."""
    omega = pe.frequencies(D_MODEL)[pair]
    plots.clock(ax, omega * PLACE, colour=plots.POSITION)
    ax.lines[0].set_linestyle((0, (2, 1)))
    plots.clock(ax, omega * (PLACE + OFFSET), colour=plots.AFTER_STEP)
    before, after = (90 - np.degrees(omega * x) for x in (PLACE, PLACE + OFFSET))
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
