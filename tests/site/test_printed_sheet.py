"""The printed cheat sheet: one page of A4, of today's text, and light."""

import importlib
import io
import re
import sys
from collections import Counter
from typing import Any

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser
from pypdf import PdfReader
from site_under_test import ROOT, SITE, visit

sys.path.insert(0, str(ROOT / "tools"))
sheet = importlib.import_module("cheat_sheet")
A4_LANDSCAPE = (297, 210)  # mm


@pytest.fixture(scope="module")
def fresh(browser: Browser, url: str) -> PdfReader:
    """The page of the built site, printed now."""
    with visit(browser, url + sheet.PAGE) as seen:
        return PdfReader(io.BytesIO(sheet.printed(seen.page)))


@pytest.fixture(scope="module")
def stored() -> PdfReader:
    return PdfReader(sheet.SHEET)


def text_of(reader: PdfReader) -> str:
    return re.sub(r"\s+", "", "".join(page.extract_text() for page in reader.pages))


def test_it_is_one_page_of_a4(stored: PdfReader, fresh: PdfReader) -> None:
    for reader in (stored, fresh):
        (page,) = reader.pages
        size = [float(side) * 25.4 / 72 for side in (page.mediabox.width, page.mediabox.height)]
        assert size == pytest.approx(A4_LANDSCAPE, abs=0.5)


def test_it_is_of_today(stored: PdfReader, fresh: PdfReader) -> None:
    """Run `python tools/cheat_sheet.py` where this fails."""
    assert Counter(text_of(stored)) == Counter(text_of(fresh))


def test_it_says_what_the_page_says(stored: PdfReader) -> None:
    page = BeautifulSoup((SITE / sheet.PAGE).read_text(), "html.parser")
    printed = text_of(stored)
    for cell in page.select("#cheat-sheet td:not(:has(.math)), #cheat-sheet :is(th, strong, pre)"):
        assert re.sub(r"\s+", "", cell.get_text()) in printed


def test_mathematics_is_set_and_nothing_leads_to_the_printer(stored: PdfReader) -> None:
    (page,) = stored.pages
    resources: Any = page["/Resources"]
    kinds = [font.get_object()["/Subtype"] for font in resources["/Font"].values()]
    assert kinds.count("/Type3") >= 3  # so Chromium embeds the fonts of MathJax
    assert "\\" not in page.extract_text()
    assert "/URI" not in sheet.SHEET.read_bytes().decode("latin-1")
    assert set(stored.metadata or {}) <= {"/Title"}


def test_the_page_links_to_it_and_it_is_light() -> None:
    page = BeautifulSoup((SITE / sheet.PAGE).read_text(), "html.parser")
    (link,) = page.select('article a[href$="cheat_sheet.pdf"]')
    served = (SITE / sheet.PAGE).parent / str(link["href"])
    assert served.read_bytes() == sheet.SHEET.read_bytes()
    assert (SITE / "_static" / "cheat_sheet.pdf").read_bytes() == sheet.SHEET.read_bytes()
    assert sheet.SHEET.stat().st_size < 300_000
