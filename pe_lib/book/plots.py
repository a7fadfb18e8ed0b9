"""The one figure style of the book, and the drawings that more than one page needs.

Colours are those of Okabe and Ito (2008), chosen to differ for the common forms of colour vision.
Figures have an opaque background, so they read on any page; the site inverts their lightness in
dark mode and keeps the hue.
"""

import hashlib
import io
import re
from collections.abc import Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Circle
from numpy.typing import ArrayLike

BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, GREY, INK = "#CC79A7", "#56B4E9", "#767676", "#1F2328"
COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)
SEQUENTIAL, DIVERGING = "cividis", "PuOr"

STYLE = {
    "figure.figsize": (6.4, 3.4),
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E6E8",
    "grid.linewidth": 0.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "font.size": 11.0,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "image.cmap": SEQUENTIAL,
    "image.interpolation": "nearest",
    "svg.hashsalt": "pe_lib",  # the same figure gives the same file, so a test can compare it
}

SVG = "http://www.w3.org/2000/svg"
SVG_METADATA = ("Creator", "Date", "Format", "Type")
SVG_FONTS = "'DejaVu Sans',Verdana,sans-serif"  # Verdana has the measures of DejaVu Sans
SHARED_FONT = re.compile(r" *font-family: 'DejaVu Sans'[^;]*;?")
REFERENCE = re.compile(r"(?<=url\(#)[^)]+|(?<=^#)\S+", re.MULTILINE)
NUMBER = re.compile(r"-?\d+\.\d+")


def use_style() -> None:
    """Draw the figures of this session in the book's style, as SVG in a notebook.

    Examples
    --------
    >>> with mpl.rc_context():
    ...     use_style()
    ...     mpl.rcParams["image.cmap"]
    'cividis'
    """
    mpl.rcParams.update(STYLE)  # type: ignore[arg-type]  # the stub wants literal keys
    try:
        from IPython.core.getipython import get_ipython
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # no notebook here
        return
    if get_ipython() is not None:
        set_matplotlib_formats("svg", metadata={"Date": None})


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
    >>> image = heat_map(ax, [[1, -3], [0, 2]], x_label="dimension", y_label="position")
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

    ``ax`` must hold the picture of the matrix already, as `heat_map` leaves it.

    Examples
    --------
    >>> figure, ax = plt.subplots()
    >>> image = heat_map(ax, [[0.5, -1]], x_label="dimension", y_label="position")
    >>> annotate_cells(ax, [[0.5, -1]])
    >>> [text.get_text() for text in ax.texts]
    ['0.50', '-1.00']
    >>> plt.close(figure)
    """
    matrix = np.asarray(matrix)
    image = ax.images[-1]
    for (row, column), value in np.ndenumerate(matrix):
        red, green, blue, _ = image.cmap(image.norm(value))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        ax.text(
            column,
            row,
            form.format(value),
            ha="center",
            va="center",
            color="white" if dark else INK,
        )


def clock(ax: Axes, angle: float, *, colour: str = BLUE, label: str = "") -> None:
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
    svg.remove(svg[0])  # a style sheet, which would reach out of the figure into the page
    _slim(svg, "f" + hashlib.sha256((label + buffer.getvalue()).encode()).hexdigest()[:5])
    svg.attrib = {
        "xmlns": SVG,
        "viewBox": view_box,
        "width": width,
        "style": f"max-width:100%;height:auto;stroke-linejoin:round;font-family:{SVG_FONTS}",
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
    for child in part:
        _unwrap(child)
    part[:] = [
        inner
        for child in part
        for inner in (child if child.tag == "g" and not child.attrib else [child])
    ]


def small_multiples(count: int, *, columns: int, height: float) -> tuple[Figure, Sequence[Axes]]:
    """A figure of the book's width with ``count`` axes in rows of ``columns``.

    Examples
    --------
    >>> figure, axes = small_multiples(5, columns=3, height=1.5)
    >>> len(axes), figure.get_size_inches().tolist()
    (5, [6.4, 3.0])
    >>> plt.close(figure)
    """
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(6.4, rows * height), squeeze=False)
    flat = list(axes.flat)
    for spare in flat[count:]:
        spare.set_axis_off()
    return figure, flat[:count]
