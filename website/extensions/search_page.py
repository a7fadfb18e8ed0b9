"""Pages ask for the book's own search, and Sphinx's index stays without the words of pages.

Sphinx's index knows whole pages only. What the book's scripts search is written when the pages are
finished (website/finish/search_index.py). They come with the page of the search
(website/templates/search.html), and with the field that opens on every page (layout.html).
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

ADDRESS = "_static/search_index.js"
# What stands in the pages for the version of the search until its index is written.
VERSION = "version-of-the-search"
# The page of the search shows no code that could be copied.
COPY_CODE = ("_static/clipboard.min.js", "_static/copybutton.js")


def name_version(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    """Let the templates ask for scripts of a version that is not known yet."""
    context["search_version"] = VERSION
    if page == "search":
        scripts = context["script_files"]
        context["script_files"] = [one for one in scripts if one.filename not in COPY_CODE]


def leave_out(app: Sphinx, document: nodes.document, page: str) -> None:
    """Leave the words of a page out of Sphinx's own index, which nobody reads."""
    app.env.metadata[page]["nosearch"] = True


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", leave_out)
    app.connect("html-page-context", name_version)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
