"""Print the cheat sheet of the built site to book/_assets/cheat_sheet.pdf, one page of A4.

    make book && python tools/cheat_sheet.py && make book

The second build puts the new sheet into the site. The browser is the one that the tests use.
"""

import io
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from pypdf import PdfReader, PdfWriter

ROOT = Path(__file__).resolve().parent.parent
SHEET = ROOT / "book" / "_assets" / "cheat_sheet.pdf"
PAGE = "book/cheat_sheet.html"


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "site"))
    from site_under_test import SITE, serve, start_browser, visit

    with sync_playwright() as playwright, serve(SITE) as url:
        browser = start_browser(playwright)
        with visit(browser, url + PAGE) as seen:
            SHEET.write_bytes(printed(seen.page))
        browser.close()
    print(f"{SHEET.relative_to(ROOT)}: {SHEET.stat().st_size // 1000} kB")


def printed(page: Page) -> bytes:
    """The page as a PDF that says neither when nor at which address it was printed."""
    page.emulate_media(media="print", color_scheme="light")
    page.locator("article a").evaluate_all("all => all.forEach((a) => a.removeAttribute('href'))")
    raw = page.pdf(prefer_css_page_size=True, tagged=True)
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(raw)))
    writer.metadata = {"/Title": "Positional Encoding: cheat sheet"}
    writer.compress_identical_objects()
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
