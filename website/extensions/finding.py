"""The opening of a page: its finding with its grade, and one grey line of what it takes to read.

A notebook opens in plain Markdown, which reads the same in JupyterLab and on GitHub:

    # Title

    **One sentence, the finding.** *proved · one trained model*

    *Needs:* matrices and the softmax. [한국어 요약](korean.md#ko-rope)

On the site the first paragraph is set as the finding, and its emphasised marks as the grade. The
second becomes a grey line that begins with the minutes of the page, which are measured when the
book is built (website/page_measures.py). A page without a finding has the minutes alone.
"""

import re

import nbformat
from sphinx.application import Sphinx

from website.contents import chapters_in
from website.page_measures import BOOK, measures_of

OPENING = re.compile(
    r"(?P<title># .+)\n\n"
    r"\*\*(?P<finding>.+?)\*\*\s\*(?P<grade>[^*]+)\*\n\n"
    r"\*Needs:\*\s(?P<needs>.+?)(?=\n\n|\Z)",
    re.DOTALL,
)
TITLE = re.compile(r"^# .+$", re.MULTILINE)
NUMBER = r"\d+|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty"
MARK = re.compile(
    rf"proved|computed|(?:{NUMBER}) seeds, small models|read in the code"
    rf"|one trained model|(?:{NUMBER}) trained models"
)


def open_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Mark up the opening of a notebook, before MyST reads it."""
    if not (BOOK.parent / f"{page}.ipynb").exists():
        return
    notebook = nbformat.reads(source[0], as_version=4)
    is_read_whole = page in ("book/tour", *chapters_in())
    minutes = f"{measures_of(notebook).minutes} minutes, figures included" if is_read_whole else ""
    opening = notebook.cells[0]
    opening.source = marked_up(opening.source, minutes)
    source[0] = nbformat.writes(notebook)


def marked_up(text: str, minutes: str) -> str:
    """The opening with classes for the site, and with the minutes where they are given."""
    if found := OPENING.match(text):
        grade = " ".join(found["grade"].split())
        finding = f'{{.finding}}\n**{found["finding"]}** <span class="grade">{grade}</span>'
        needs = f"*Needs:* {found['needs']}"
        line = " · ".join(filter(None, (minutes, needs)))
        return f"{found['title']}\n\n{finding}\n\n{{.reading-line}}\n{line}{text[found.end() :]}"
    if minutes:
        return TITLE.sub(lambda title: f"{title[0]}\n\n{{.reading-line}}\n{minutes}\n", text, 1)
    return text


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", open_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
