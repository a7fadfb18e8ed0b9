"""The whole book as one PDF: each page as the browser prints it, in order, with an outline. The
landing page of the built site then leads to it.

make pdf
"""

import io
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from pypdf import PdfReader, PdfWriter

from website.browser import start_browser
from website.built_site import PAGES, SITE

TARGET = SITE / "book.pdf"
OPEN = "document.querySelectorAll('.fold').forEach((fold) => (fold.open = true))"
FOOTER = """<div style="font-size: 8px; width: 100%; text-align: center">
<span class="title"></span>, <span class="pageNumber"></span> of <span class="totalPages"></span>
</div>"""


def write(browser: Browser, pages: Sequence[str], target: Path) -> None:
    """Print these pages of the site into one file."""
    whole = PdfWriter()
    page = browser.new_page(color_scheme="light")
    for name in pages:
        page.goto((SITE / name).as_uri(), wait_until="networkidle")
        page.evaluate(OPEN)
        printed = page.pdf(
            format="A4",
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER,
            margin={"top": "18mm", "bottom": "18mm", "left": "18mm", "right": "18mm"},
        )
        title = page.locator("h1").first.inner_text().rstrip("#")
        whole.append(PdfReader(io.BytesIO(printed)), outline_item=title)
    page.close()
    whole.compress_identical_objects()
    whole.write(target)


def link(landing: Path) -> None:
    """Lead from the landing page to the file beside its folder."""
    html = landing.read_text("utf-8")
    if TARGET.name not in html:
        said = f'<p><a href="../{TARGET.name}">The whole book as a PDF</a>, to print.</p></article>'
        landing.write_text(html.replace("</article>", said, 1), "utf-8")


if __name__ == "__main__":
    with sync_playwright() as playwright:
        write(start_browser(playwright), PAGES, TARGET)
    link(SITE / "book" / "index.html")
    print(f"The book is printed in {TARGET}")
