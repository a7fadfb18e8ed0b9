"""The contents of the book: its pages, and which of them are chapters."""

from pathlib import Path

from website import contents

TOC = """
root: book/index
parts:
  - numbered: true
    chapters:
    # - file: book/withdrawn
    - file: book/01
    - file: book/an_end
  - numbered: false
    chapters:
    - file: book/02  # file: book/older
      sections:
      - file: book/checks/01
"""


def test_pages_are_those_that_are_named_and_not_commented_out(tmp_path: Path) -> None:
    toc = tmp_path / "_toc.yml"
    toc.write_text(TOC, encoding="utf-8")
    (tmp_path / "book").mkdir()
    for name in ("01.ipynb", "an_end.md"):
        (tmp_path / "book" / name).touch()
    pages = ["book/index", "book/01", "book/an_end", "book/02", "book/checks/01"]
    assert contents.pages_in(toc) == pages
    assert contents.chapters_in(toc) == ["book/01"]
