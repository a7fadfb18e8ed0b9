"""The one figure style of the book, and the drawings that more than one page needs.

A colour means one thing in every figure: a position, the position a step further, the step itself,
a word, or an error. The hues are those of Okabe and Ito (2008), who chose them to differ for the
common forms of colour vision, darkened so that lines and their labels can be read on white. What
has no role is drawn in ink and greys, and told apart by the form of its line or mark. On a dark
page the site shows each still figure in the dark palette of pe_book/dark.py. The live figures take
the same colours from kit.css.
"""

import hashlib
import io
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Circle, Rectangle
from numpy.typing import ArrayLike

from pe_book.dark import AS_DRAWN, DIVERGING, in_both_schemes, ink_on, recolour

# What a colour means, in still and live figures alike. Each has a contrast of at least 4.5 : 1 on
# white, so that lines and their labels can be read.
POSITION = "#0072B2"  # the position x, its row and its hands; positions beside words
AFTER_STEP = "#00795A"  # the position x + Δx; the second of two positions
STEP = "#C04A00"  # the difference Δx, an offset, a turn and what it makes
WORD = "#8F3F80"  # a word, its embedding, the subspace of words
ERROR = "#7A5C00"  # an error, a fault, a misuse
# What has no role: the subject of a figure in ink, what it is compared with in grey. The lightest
# has a contrast of 3 : 1, which is enough for lines and marks, and carries no text.
INK, GREY, LIGHT_GREY = "#1F2328", "#6B6B6B", "#8C959F"
SHADE = "#E3E6E8"  # areas and bars on which lines and text stand; a bar has an edge in grey
# From violet to orange, lighter with each step, so that it serves on any page; orbit.js has the
# same. The diverging map is named in dark.py.
SEQUENTIAL = "violet-orange"
VIOLET_ORANGE = ("#241050", "#542788", "#91509a", "#cc7560", "#e9a04f", "#fddfa8")
if SEQUENTIAL not in mpl.colormaps:  # a module may be loaded anew
    mpl.colormaps.register(LinearSegmentedColormap.from_list(SEQUENTIAL, VIOLET_ORANGE))

FONTS = Path(__file__).parent / "fonts"
SERIF, SEMIBOLD = "Source Serif 4", "SourceSerif4-Semibold.otf"  # the typeface of the text
# Inches of a drawing and points of its letters: the site shows it as wide as the column, 712 px,
# and on a phone, where that is 358 px, the letters have 11.5 px, or 12 in live.frames.
WIDTH, POINTS = 5.2, 12.1
COLUMN = 712  # px
ENLARGED = COLUMN / (96 * WIDTH)  # every drawing alike, so that their letters are of one size
NARROW = 4.2  # inches: a drawing that is narrower was meant to be small
STYLE = {
    "figure.figsize": (WIDTH, 3.0),
    "figure.hooks": ["pe_book.plots:fill_the_column"],
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.prop_cycle": cycler(color=(INK, GREY, LIGHT_GREY)),
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,  # as the plots of live figures have it
    "axes.grid": True,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "grid.color": SHADE,
    "grid.linewidth": 0.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "font.family": [SERIF, "DejaVu Sans"],  # the second for signs that the first lacks
    "font.size": POINTS,
    "mathtext.fontset": "custom",
    "mathtext.rm": SERIF,
    "mathtext.it": f"{SERIF}:italic",
    "mathtext.bf": f"{SERIF}:bold",
    "mathtext.cal": f"{SERIF}:italic",
    "mathtext.fallback": "stix",
    "xtick.labelsize": POINTS,
    "ytick.labelsize": POINTS,
    "legend.fontsize": POINTS,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "image.cmap": SEQUENTIAL,
    "image.interpolation": "nearest",
    "svg.hashsalt": "pe_lib",  # the same figure gives the same file, so a test can compare it
}

SVG = "http://www.w3.org/2000/svg"
SVG_METADATA = ("Creator", "Date", "Format", "Type")
SVG_FONTS = f"'{SERIF}','Source Serif',Georgia,serif"
# What a drawing needs that stands by itself. In the box of a live figure, kit.css says the same.
STYLE_ALONE = f"max-width:100%;height:auto;stroke-linejoin:round;font-family:{SVG_FONTS}"
SHARED_FONT = re.compile(rf" *font-family: '{SERIF}'[^;]*;?")
REFERENCE = re.compile(r"(?<=url\(#)[^)]+|(?<=^#)\S+", re.MULTILINE)
NUMBER = re.compile(r"-?\d+\.\d+")


def use_style() -> None:
    """Draw the figures of this session in the book's style, as SVG in a notebook.

    Examples
    --------
    >>> with mpl.rc_context():
    ...     use_style()
    ...     mpl.rcParams["image.cmap"]
    'violet-orange'
    """
    _add_fonts()
    mpl.rcParams.update(STYLE)  # type: ignore[arg-type]  # the stub wants literal keys
    try:
        from IPython.core.getipython import get_ipython
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # no notebook here
        return
    if get_ipython() is not None:
        set_matplotlib_formats("svg", metadata={"Date": None})


@cache
def _add_fonts() -> None:
    """Let Matplotlib know the typeface of the text. Its semibold serves as bold, as on the site."""
    manager = font_manager.fontManager
    for file in FONTS.glob("*.otf"):
        manager.addfont(file)
    manager.ttflist[:] = [
        replace(entry, weight=700) if Path(entry.fname) == FONTS / SEMIBOLD else entry
        for entry in manager.ttflist
    ]


def fill_the_column(figure: Figure) -> None:
    """Make a drawing as wide as the column, unless it was meant to be small.

    Examples
    --------
    >>> with mpl.rc_context():
    ...     use_style()
    ...     [float(plt.figure(figsize=(width, 3)).get_figwidth()) for width in (3.2, 4.6)]
    [3.2, 5.2]
    >>> plt.close("all")
    """
    if figure.get_figwidth() >= NARROW:
        figure.set_figwidth(WIDTH)


def heat_map(
    ax: Axes,
    matrix: ArrayLike,
    *,
    x_label: str,
    y_label: str,
    limit: float | None = None,
    colour_label: str | None = None,
) -> AxesImage:
    """Draw a signed matrix, row 0 at the top, with colours symmetric about 0.

    ``limit`` is the value of the strongest colour, by default the largest magnitude there is. With
    a ``colour_label`` a colour bar is drawn beside it.

    Examples
    --------
    >>> figure, ax = plt.subplots()
    >>> labels = {"x_label": "dimension", "y_label": "position"}
    >>> image = heat_map(ax, [[1, -3], [0, 2]], **labels)
    >>> image.get_clim()
    (-3.0, 3.0)
    >>> plt.close(figure)
    """
    matrix = np.asarray(matrix)
    limit = float(np.abs(matrix).max()) if limit is None else limit
    image = ax.imshow(matrix, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
    ax.grid(visible=False)
    ax.set(xlabel=x_label, ylabel=y_label)
    if colour_label is not None:
        ax.figure.colorbar(image, ax=ax, label=colour_label)
    return image


def annotate_cells(ax: Axes, matrix: ArrayLike, form: str = "{:.2f}") -> None:
    """Write each entry of a small matrix into its cell, light on dark and dark on light.

    ``ax`` must hold the picture of the matrix already, as `heat_map` leaves it. The cell of a NaN
    stays empty.

    Examples
    --------
    >>> figure, ax = plt.subplots()
    >>> image = heat_map(ax, [[0.5, -1]], x_label="dimension", y_label="position")
    >>> annotate_cells(ax, [[0.5, -1]])
    >>> [text.get_text() for text in ax.texts]
    ['0.50', '−1.00']
    >>> plt.close(figure)
    """
    matrix = np.asarray(matrix)
    image = ax.images[-1]
    for row, column in np.argwhere(~np.isnan(matrix)):
        value = matrix[row, column]
        red, green, blue, _ = image.cmap(image.norm(value))
        cell = mpl.colors.to_hex((red, green, blue))
        text = ax.text(column, row, _true_minus(form.format(value)), color=ink_on(cell))
        text.set(ha="center", va="center")
        text.set_gid(f"{AS_DRAWN}-{row}-{column}")  # on a dark page it follows its cell


def _true_minus(number: str) -> str:
    return number.replace("-", "−")


def outline(ax: Axes, column: int, row: int, *, width: int = 1) -> None:
    """Frame a cell of a matrix, or ``width`` cells beside each other, on any colour.

    A black line runs in a white one, so that one of the two stands out from every cell.

    Examples
    --------
    >>> figure, ax = plt.subplots()
    >>> outline(ax, 0, 2, width=8)
    >>> [box.get_width() for box in ax.patches]
    [7.92, 7.92]
    >>> plt.close(figure)
    """
    for colour, line in (("white", 5), ("black", 2.5)):
        box = Rectangle((column - 0.46, row - 0.46), width - 0.08, 0.92, fill=False)
        box.set(edgecolor=colour, linewidth=line, gid=f"{AS_DRAWN}-outline-{colour}-{row}-{column}")
        ax.add_patch(box)


def clock(ax: Axes, angle: float, *, colour: str = POSITION, label: str = "") -> None:
    """Draw a [sin, cos] pair as the hand of a clock: 0 points up, growing angles turn clockwise.

    With the sine to the right and the cosine upwards, the hand of position x stands where a clock
    hand would after turning by ω_ix, so T(Δx) turns it clockwise.

    Examples
    --------
    >>> figure, ax = plt.subplots()
    >>> clock(ax, np.pi / 2)  # three o'clock
    >>> tip_x, tip_y = ax.lines[-1].get_xydata()[0]
    >>> round(float(tip_x), 6), round(float(tip_y), 6)
    (1.0, 0.0)
    >>> plt.close(figure)
    """
    ax.add_patch(Circle((0, 0), 1, fill=False, color=GREY, linewidth=1))
    ax.plot([0, np.sin(angle)], [0, np.cos(angle)], color=colour, solid_capstyle="round")
    ax.plot(np.sin(angle), np.cos(angle), "o", color=colour, markersize=6)
    ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", title=label)
    ax.axis("off")


def to_svg(figure: Figure, label: str) -> str:
    """The figure as one inline SVG element with a text alternative. Closes the figure.

    Text stays text, so it is small and sharp. Only what something refers to keeps a name, and one
    of the figure's own, because many figures share a page.

    Examples
    --------
    >>> figure, ax = plt.subplots()
    >>> 'aria-label="An empty plot"' in to_svg(figure, "An empty plot")
    True
    """
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(SVG_METADATA))
    plt.close(figure)
    svg = ElementTree.fromstring(buffer.getvalue())
    width, view_box = svg.attrib["width"], svg.attrib["viewBox"]
    recolour(svg, in_both_schemes)
    svg.remove(svg[0])  # a style sheet, which would reach out of the figure into the page
    _slim(svg, "f" + hashlib.sha256((label + buffer.getvalue()).encode()).hexdigest()[:5])
    svg.attrib = {
        "xmlns": SVG,
        "viewBox": view_box,
        "width": f"{float(width.removesuffix('pt')) * ENLARGED:.1f}pt",
        "style": STYLE_ALONE,
        "role": "img",
        "aria-label": label,
    }
    return ElementTree.tostring(svg, encoding="unicode")


def _slim(svg: Element, name: str) -> None:
    """Drop what a picture does not need, and begin the names that it does need with ``name``."""
    referred = {found for part in svg.iter() for found in REFERENCE.findall(_joined(part))}
    named = sorted(referred & {part.get("id", "") for part in svg.iter()})
    names = {old: f"{name}-{number}" for number, old in enumerate(named)}
    for part in svg.iter():
        part.tag = part.tag.rpartition("}")[2]
        part.text, part.tail = (part.text or "").strip() or None, None
        part.attrib = {
            key.rpartition("}")[2]: _shorten(key, value, names)
            for key, value in part.attrib.items()
            if key != "id" or value in names
        }
    _unwrap(svg)


def _joined(part: Element) -> str:
    return "\n".join(part.attrib.values())


def _shorten(key: str, value: str, names: dict[str, str]) -> str:
    """An attribute with new names, short numbers, and without the font that all parts share."""
    if key in ("d", "height", "transform", "width", "x", "y"):
        return NUMBER.sub(_round, " ".join(value.split()))
    if key == "id":
        return names[value]
    if value.startswith("data:"):
        return "".join(value.split())
    value = SHARED_FONT.sub("", value)
    return REFERENCE.sub(lambda found: names.get(found[0], found[0]), value)


def _round(number: re.Match[str]) -> str:
    """A coordinate to a tenth of a point, a small number (it may be a scale) to three digits."""
    value = float(number[0])
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _unwrap(part: Element) -> None:
    """Put the content of groups that say nothing in their place."""
    kept: list[Element] = []
    for child in part:
        _unwrap(child)
        if child.tag == "g" and not child.attrib:
            kept.extend(child)
        else:
            kept.append(child)
    part[:] = kept
