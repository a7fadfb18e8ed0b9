"""`make pdf`: pages in order, with an outline, and their proofs unfolded."""

import re
from pathlib import Path

import pdf
from playwright.sync_api import Browser
from pypdf import PdfReader

FOLDED = "Block-diagonal matrices with blocks of the same sizes"  # in a proof that is folded


def test_pages_are_printed_in_order(browser: Browser, tmp_path: Path) -> None:
    pdf.write(browser, ["book/index.html", "book/03_rotation.html"], tmp_path / "book.pdf")
    printed = PdfReader(tmp_path / "book.pdf")
    titles = [entry.title for entry in printed.outline if not isinstance(entry, list)]
    assert titles == ["Positional Encoding", "The rotation matrix T(Δx)"]
    text = " ".join(page.extract_text() for page in printed.pages)
    assert FOLDED in re.sub(r"\s+", " ", text)
