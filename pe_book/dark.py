"""The dark palette of the still figures: every colour of a drawing, moved to a dark ground.

Greys change their lightness: white becomes the ground of the page, and ink becomes light. A colour
that has a role becomes the lighter colour that live figures give it. Any other keeps its hue and is
made lighter until it stands out from the ground as far as text must. Pictures inside a drawing
(heat maps) and what is written on them stay as they are: their colours are data.
"""

import colorsys
import re
from collections.abc import Callable
from functools import cache
from xml.etree import ElementTree

GROUND = "#121212"
COLOURS_OF_ROLES = {  # the roles of plots.py, as kit.css draws them on a dark page
    "#0072B2": "#6cb8ea",
    "#00795A": "#4fc9a4",
    "#C04A00": "#ff9a5c",
    "#8F3F80": "#d9a0d6",
    "#7A5C00": "#c9a25e",
}
INK_BY_DEFAULT = "#000000"  # of what has no colour of its own; it is darkened with the rest
SVG = "http://www.w3.org/2000/svg"
AS_DRAWN = "as-drawn"  # how the name of a part begins that stands on a picture
HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
COLOUR = re.compile(rf"(fill|stroke): ?({HEX.pattern})")
CONTRAST_OF_TEXT = 4.5  # WCAG 2.2, success criterion 1.4.3
MOST_SPREAD_OF_A_GREY = 0.12  # from the weakest to the strongest of red, green and blue


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` by WCAG 2.2, from 0 (black) to 1 (white)."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours by WCAG 2.2, from 1 to 21.

    >>> round(contrast("#ffffff", "#000000"))
    21
    """
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def hex_of(red: float, green: float, blue: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in (red, green, blue))


@cache
def dark_colour(colour: str) -> str:
    """The colour that stands for this one on the dark ground.

    >>> dark_colour("#ffffff"), dark_colour("#1F2328")
    ('#121212', '#dedede')
    >>> contrast(dark_colour("#0072B2"), GROUND) >= CONTRAST_OF_TEXT
    True
    """
    if of_role := COLOURS_OF_ROLES.get(colour.upper()):
        return of_role
    hue, lightness, saturation = colorsys.rgb_to_hls(*rgb(colour))
    if max(rgb(colour)) - min(rgb(colour)) < MOST_SPREAD_OF_A_GREY:
        ground, *_ = rgb(GROUND)
        turned = ground + (1 - lightness) * (1 - ground)  # white gives the ground, and black white
        return hex_of(turned, turned, turned)
    lighter = colour.lower()
    while contrast(lighter, GROUND) < CONTRAST_OF_TEXT:
        lightness += 0.01
        lighter = hex_of(*colorsys.hls_to_rgb(hue, lightness, saturation))
    return lighter


def dark_drawing(svg: str) -> str:
    """A whole drawing of Matplotlib on the dark ground."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)
    root.set("style", f"fill: {INK_BY_DEFAULT}; {root.get('style', '')}")
    for part in root.iter():
        if part.get("id", "").startswith(AS_DRAWN):  # it inherits no darkened colour
            part.set("style", f"fill: {INK_BY_DEFAULT}; {part.get('style', '')}")
    recolour(root, lambda style: HEX.sub(lambda found: dark_colour(found[0]), style))
    return ElementTree.tostring(root, encoding="unicode")


def recolour(part: ElementTree.Element, change: Callable[[str], str]) -> None:
    """Change the styles of a part and of all that it holds, but for pictures and what is written on
    them."""
    if part.get("id", "").startswith(AS_DRAWN) or part.tag == f"{{{SVG}}}image":
        return
    for name in ("style", "fill", "stroke"):
        if name in part.attrib:
            part.set(name, change(part.attrib[name]))
    for child in part:
        recolour(child, change)


def in_both_schemes(style: str) -> str:
    """A style whose colours follow the page's colour scheme, with the light ones as a fallback.

    >>> in_both_schemes("fill: #ffffff; opacity: 0.5")
    'fill: #ffffff;fill: light-dark(#ffffff, #121212); opacity: 0.5'
    """
    return COLOUR.sub(
        lambda it: f"{it[0]};{it[1]}: light-dark({it[2]}, {dark_colour(it[2])})", style
    )
