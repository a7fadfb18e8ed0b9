"""`make pdf`: pages in order, with an outline, their proofs unfolded, and a way to them."""

import re
from pathlib import Path

from playwright.sync_api import Browser
from pypdf import PdfReader

from website import pdf
from website.built_site import SITE

FOLDED = "Block-diagonal matrices with blocks of the same sizes"  # in a proof that is folded


def test_pages_are_printed_in_order(browser: Browser, tmp_path: Path) -> None:
    pdf.write(browser, ["book/index.html", "book/rotation.html"], tmp_path / "book.pdf")
    printed = PdfReader(tmp_path / "book.pdf")
    titles = [entry.title for entry in printed.outline if not isinstance(entry, list)]
    assert titles == [
        "Positional Encoding — derived, executed, measured",
        "A step is a rotation: T(Δx)",
    ]
    text = " ".join(page.extract_text() for page in printed.pages)
    assert FOLDED in re.sub(r"\s+", " ", text)


def test_the_landing_page_leads_to_it_once(tmp_path: Path) -> None:
    landing = tmp_path / "index.html"
    landing.write_text((SITE / "book" / "index.html").read_text(encoding="utf-8"), encoding="utf-8")
    for _ in range(2):
        pdf.link(landing)
    assert landing.read_text(encoding="utf-8").count('href="../book.pdf"') == 1
