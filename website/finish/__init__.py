"""What is done to the pages that Sphinx has written: one list of steps, run in its order.

A step takes the site and changes the texts of its pages, or writes files beside them. The pages are
read once before the first step and written once after the last. A build that has written some of
the pages only, because the others have not changed, finishes these alone.
"""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from website.finish import (
    dark_figures,
    formulas,
    html_fixes,
    search_index,
    sitemap,
    style_sheet,
)
from website.finish.site import Site

STEPS: tuple[Callable[[Site], None], ...] = (
    html_fixes.fix_pages,  # before the formulas, without which a page is parsed quicker
    dark_figures.show_twins,  # after the pictures have got their sizes
    formulas.insert,
    search_index.write,  # reads the finished text
    style_sheet.join,  # looks at every class of the finished pages
    sitemap.write,
)

_written: set[Path] = set()  # the pages that this build has written


def note_page(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    """Remember that this build writes a page."""
    assert isinstance(app.builder, StandaloneHTMLBuilder)
    _written.add(Path(app.builder.get_outfilename(page)))


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Run every step on the pages that this build has written."""
    if app.builder.format != "html":
        return
    try:
        if exception is None:
            finish_pages(app)
            _written.clear()
    finally:
        for path in _written:  # what is not finished is written again by the next build
            path.unlink(missing_ok=True)


def finish_pages(app: Sphinx) -> None:
    gc.freeze()  # the book's documents, through which it would search for leftovers of each page
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(_written)}
    site = Site(app, Path(app.outdir), pages)
    for step in STEPS:
        step(site)
    for path, text in site.pages.items():
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", lambda app: _written.clear())
    app.connect("html-page-context", note_page)
    app.connect("build-finished", finish, priority=900)  # after Sphinx has copied its files
    return {"parallel_read_safe": True, "parallel_write_safe": False}
