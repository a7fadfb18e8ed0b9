"""A dark twin of every still figure, shown in its place on a dark page.

The drawings of the notebooks are made for a white ground. When the site is written, each gets a
twin in the dark palette (pe_book/dark.py), and each page shows the one that fits its scheme. A
browser loads only the one that it shows.
"""

import re
from pathlib import Path

from pe_book.dark import dark_drawing
from website.finish.site import Site

STILL = re.compile(r'<img [^>]*src="[^"]*_images/([0-9a-f]{64})\.svg"[^>]*/?>')
CLASSES = re.compile(r' class="([^"]*)"')


def show_twins(site: Site) -> None:
    """Write the twin of each figure that the pages show, and name it beside its figure."""
    for path, page in site.pages.items():
        for name in {still[1] for still in STILL.finditer(page)}:
            write_twin(site.folder / "_images", name)
        site.pages[path] = STILL.sub(light_and_dark, page)


def write_twin(folder: Path, name: str) -> None:
    """Write the dark twin of a drawing. Its name is the hash of it, so a twin need not change."""
    twin = folder / f"{name}-dark.svg"
    if not twin.exists():
        drawing = (folder / f"{name}.svg").read_text(encoding="utf-8")
        twin.write_text(dark_drawing(drawing), encoding="utf-8")


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
