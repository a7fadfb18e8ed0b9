"""A dark twin of every still figure, shown in its place on a dark page.

The drawings of the notebooks are made for a white ground. When the site is written, each gets a
twin in the dark palette (pe_book/dark.py), and each page shows the one that fits its scheme. A
browser loads only the one that it shows.
"""

import re
from pathlib import Path

from pe_book.dark import dark_drawing
from sphinx.application import Sphinx

from html_fixes import WRITTEN_PAGES

STILL = re.compile(r'<img [^>]*src="[^"]*_images/([0-9a-f]{64})\.svg"[^>]*/?>')
CLASSES = re.compile(r' class="([^"]*)"')


def show_twins(app: Sphinx, exception: Exception | None) -> None:
    """Write the twins, then name each beside its figure."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    for drawing in folder.glob("_images/*.svg"):
        if re.fullmatch(r"[0-9a-f]{64}", drawing.stem):
            twin = drawing.with_name(f"{drawing.stem}-dark.svg")
            twin.write_text(dark_drawing(drawing.read_text(encoding="utf-8")), encoding="utf-8")
    for path in WRITTEN_PAGES:
        page = path.read_text(encoding="utf-8")
        if "_images/" in page:
            path.write_text(STILL.sub(light_and_dark, page), encoding="utf-8")


def light_and_dark(found: re.Match[str]) -> str:
    """The figure for light pages and its twin for dark ones, next to each other.

    Both are lazy, because a browser never fetches a lazy picture that does not show. They stand in
    a span of their own, because the theme hides each caption beside a picture that it hides.
    """
    tag, name = found[0], found[1]
    if " loading=" not in tag:
        tag = tag.replace("<img ", '<img loading="lazy" ', 1)
    light = with_class(tag, "only-light")
    dark = with_class(tag, "only-dark").replace(f"{name}.svg", f"{name}-dark.svg")
    return f"<span>{light}{dark}</span>"


def with_class(tag: str, name: str) -> str:
    if CLASSES.search(tag):
        return CLASSES.sub(rf' class="\1 {name}"', tag, count=1)
    return tag.replace("<img ", f'<img class="{name}" ', 1)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", show_twins, priority=920)  # after html_fixes, which sizes them
    return {"parallel_read_safe": True, "parallel_write_safe": True}
