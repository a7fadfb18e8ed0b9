"""Say under the title of a page how long it takes to read.

The minutes are measured from the notebook when the book is built (website/page_measures.py), so they
change with the page. What is folded is not counted. The landing page asks for the minutes of others
with ``{{ minutes("rotation") }}`` (data_pages.py).
"""

import re
from pathlib import Path

import nbformat
from sphinx.application import Sphinx
from website.page_measures import measures_of

BOOK = Path(__file__).resolve().parent.parent.parent / "book"
TITLE = re.compile(r"^# .+$", re.MULTILINE)


def minutes(name: str) -> int:
    """How long a page takes, by the name of its notebook without the suffix."""
    return measures_of(nbformat.read(BOOK / f"{name}.ipynb", as_version=4)).minutes


def write_under_title(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the line to the source of a chapter or of the tour, before MyST reads it."""
    name = page.removeprefix("book/")
    if name != "tour" and not (BOOK / "checks" / f"{name}.ipynb").exists():
        return
    notebook = nbformat.reads(source[0], as_version=4)
    line = f"\n\n{{.reading-time}}\n{measures_of(notebook).minutes} minutes, figures included\n"
    opening = notebook.cells[0]
    opening.source = TITLE.sub(lambda title: title[0] + line, opening.source, count=1)
    source[0] = nbformat.writes(notebook)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", write_under_title)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
