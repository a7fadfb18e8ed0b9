"""What search engines and shared links show of a page, and the address of the site.

The address is taken from the environment (BOOK_URL). Where it is not known, what needs an absolute
address is left out: the canonical link and the shared picture (templates/layout.html).
"""

import os
import re
import textwrap

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

GREEK = re.compile(
    r"\\(alpha|beta|[Gg]amma|[Dd]elta|(?:var)?epsilon|eta|[Tt]heta|kappa|[Ll]ambda|mu|nu|[Xx]i|[Pp]i"
    r"|rho|[Ss]igma|tau|[Pp]hi|chi|[Pp]si|[Oo]mega)(?![a-z])"
)
LONGEST_DESCRIPTION = 200  # what the common search engines show


def set_address(app: Sphinx, config: Config) -> None:
    """Sphinx writes the canonical link of each page from this."""
    if url := os.environ.get("BOOK_URL", ""):
        config.html_baseurl = url.rstrip("/") + "/"


def add_metadata(app: Sphinx, document: nodes.document, page: str) -> None:
    """Describe the page. Let the search find a Greek letter by its name: mathematics is no word to
    it."""
    said = describe(document)
    kinds = (nodes.math, nodes.math_block)
    formulas = " ".join(node.astext() for kind in kinds for node in document.findall(kind))
    document.insert(0, nodes.meta(name="description", content=said))
    document.insert(0, nodes.meta(property="og:description", content=said))
    if names := sorted({name.lower() for name in GREEK.findall(formulas)}):
        document.insert(0, nodes.meta(name="keywords", content=", ".join(names)))


def describe(document: nodes.document) -> str:
    """The page's first paragraph of text without mathematics, cut at a word; else its title."""
    for paragraph in document.findall(nodes.paragraph):
        running = isinstance(paragraph.parent, nodes.section) and len(paragraph.astext()) > 40
        if running and not any(paragraph.findall(nodes.math)):
            return textwrap.shorten(paragraph.astext(), LONGEST_DESCRIPTION, placeholder=" …")
    return "".join(title.astext() for title in list(document.findall(nodes.title))[:1])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", set_address)
    app.connect("doctree-resolved", add_metadata)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
