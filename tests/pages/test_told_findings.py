"""The front page and *What is settled* state no number that their pages do not show.

They are Markdown and run nothing. So each entry is held to the pages that it links to and to the
pages of checks beside them: to what their cells show, and to their prose, which another test holds
to the cells. Which numbers count as results says `page_text.stated_in`: most entries have none.
"""

import re
from pathlib import Path

import nbformat
import page_text
import pytest

BOOK = Path(__file__).resolve().parent.parent.parent / "book"
SETTLED = (BOOK / "settled.md").read_text(encoding="utf-8")
INDEX = (BOOK / "index.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(((?:checks/)?\w+)\.ipynb")


def entries() -> list[str]:
    """Rows of the tables and answers of *What is settled*, and findings of the front page."""
    rows = re.findall(r"^\| (?!statement|---).+$", SETTLED, re.M)
    answers = re.findall(r"^\[.+\n(?::.+\n(?:  .+\n)*)", SETTLED, re.M)
    findings = re.findall(r"^- .+\n\n  \[.+\)$", INDEX, re.M)
    assert min(len(rows), len(answers), len(findings)) > 8
    return rows + answers + findings


def shown_for(entry: str) -> str:
    """What the cells and the prose behind an entry say."""
    names = set(LINK.findall(entry))
    files = {BOOK / f"{name}.ipynb" for name in names}
    files |= {BOOK / "checks" / f"{name}.ipynb" for name in names}
    assert all((BOOK / f"{name}.ipynb").exists() for name in names), names
    read = [nbformat.read(file, as_version=4) for file in files if file.exists()]
    return "\n".join(
        text(notebook) for notebook in read for text in (page_text.shown_by, page_text.markdown_of)
    )


WITH_RESULTS = [entry for entry in entries() if list(page_text.stated_in(entry))]


def test_some_entries_have_results() -> None:
    assert len(WITH_RESULTS) > 5


@pytest.mark.parametrize("entry", WITH_RESULTS, ids=lambda entry: entry[:40])
def test_every_result_is_on_the_pages_behind_it(entry: str) -> None:
    assert page_text.unshown(entry, shown_for(entry)) == []
