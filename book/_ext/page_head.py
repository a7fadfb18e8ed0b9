"""What search engines and shared links show of a page: description, picture, address.

The address of the site is taken from the environment (BOOK_URL). Where it is not known, what needs
an absolute address is left out: the canonical link and the shared picture.
"""

import html
import os
import re
import textwrap
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

PICTURE = "_static/social.png"
PICTURE_SHOWS = "The encodings of 64 positions as a heat map, and the clocks of one row"
GREEK = re.compile(
    r"\\(alpha|beta|[Gg]amma|[Dd]elta|(?:var)?epsilon|eta|[Tt]heta|kappa|[Ll]ambda|mu|nu|[Xx]i|[Pp]i"
    r"|rho|[Ss]igma|tau|[Pp]hi|chi|[Pp]si|[Oo]mega)(?![a-z])"
)
LONGEST_DESCRIPTION = 200  # what the common search engines show


def set_address(app: Sphinx, config: Config) -> None:
    """Sphinx writes the canonical link of each page from this."""
    if url := os.environ.get("BOOK_URL", ""):
        config.html_baseurl = url.rstrip("/") + "/"


def add_metadata(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Give the page's template its description, and what a shared link shows."""
    site = app.config.html_title
    title = title_of(context.get("title", "")) or site
    description = (describe(document) if document is not None else "") or f"{title}, {site}"
    social = {"description": description, "og:description": description, "og:type": "article"}
    social |= {"og:title": title, "og:site_name": site}
    if base := app.config.html_baseurl:
        social |= {"og:url": context["pageurl"], "og:image": base + PICTURE}
        social |= {"og:image:alt": PICTURE_SHOWS}
        social |= {"twitter:card": "summary_large_image"}
    context["social"] = {name: content for name, content in social.items() if content}


def name_symbols(app: Sphinx, document: nodes.document) -> None:
    """Let the search find a Greek letter by its name: mathematics is no word to it."""
    kinds = (nodes.math, nodes.math_block)
    formulas = " ".join(node.astext() for kind in kinds for node in document.findall(kind))
    if names := sorted({name.lower() for name in GREEK.findall(formulas)}):
        document.insert(0, nodes.meta(name="keywords", content=", ".join(names)))


def title_of(heading: str) -> str:
    """The text of a heading without its markup and its number."""
    return re.sub(r"^[\d.]+\s+", "", html.unescape(re.sub(r"<[^>]*>", "", heading)))


def describe(document: nodes.document) -> str:
    """The page's first paragraph of running text without mathematics, cut at a word."""
    for paragraph in document.findall(nodes.paragraph):
        running = isinstance(paragraph.parent, nodes.section) and len(paragraph.astext()) > 40
        if running and not any(paragraph.findall(nodes.math)):
            return textwrap.shorten(paragraph.astext(), LONGEST_DESCRIPTION, placeholder=" …")
    return ""


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", set_address)
    app.connect("doctree-read", name_symbols)
    app.connect("html-page-context", add_metadata)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
