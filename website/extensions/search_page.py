"""The search page loads the book's own script, and Sphinx's index stays without the words of pages.

Sphinx's index knows whole pages only. What the book's script searches is written when the pages are
finished (website/finish/search_index.py).
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

ADDRESS = "_static/search_index.js"


def load_script(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    """What the search page runs beyond Sphinx. It loads the index once there is a query."""
    if page == "search":
        settings = {"loading_method": "defer", "data-index": ADDRESS}
        app.add_js_file("search.js", priority=410, **settings)


def leave_out(app: Sphinx, document: nodes.document, page: str) -> None:
    """Leave the words of a page out of Sphinx's own index, which nobody reads."""
    app.env.metadata[page]["nosearch"] = True


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", leave_out)
    app.connect("html-page-context", load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
