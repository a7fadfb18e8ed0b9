"""What is printed looks as on a light page, whichever theme is chosen, and fills its paper."""

import io
import re

from playwright.sync_api import Browser, expect
from pypdf import PdfReader

from tests.site.browser import visit
from website.built_site import SITE

# Where a piece of text begins. The browser rounds it now and then otherwise, by a part of a pixel.
PLACES = re.compile(rb"[-\d. ]+ Tm\n")
HIGHEST = 100 / 25.4 * 96  # pixels of 100 mm


def printed(browser: Browser, scheme: str) -> list[tuple[bytes, list[bytes]]]:
    """The tour on paper, from a page of this theme, which keeps it: what each sheet draws.

    That is all operators (text, lines and their colours), and the pictures.
    """
    with visit(browser, (SITE / "book/tour.html").as_uri(), color_scheme=scheme) as page:
        paper = page.pdf(format="A4", print_background=True)
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    found = []
    for sheet in PdfReader(io.BytesIO(paper)).pages:
        content = sheet.get_contents()
        assert content is not None
        pictures = [picture.data for picture in sheet.images]
        found.append((PLACES.sub(b"Tm\n", content.get_data()), pictures))
    return found


def test_a_dark_page_is_printed_as_a_light_one(browser: Browser) -> None:
    dark, light = (printed(browser, scheme) for scheme in ("dark", "light"))
    assert len(dark) == len(light) > 5
    for number, (one, other) in enumerate(zip(dark, light, strict=True), 1):
        assert one == other, f"sheet {number}"


def test_no_long_box_and_no_high_picture_leaves_a_page_half_empty(browser: Browser) -> None:
    with visit(browser, (SITE / "book/rotation.html").as_uri()) as page:
        page.emulate_media(media="print")
        breaks = page.locator("article :is(.admonition, div.highlight)").evaluate_all(
            "all => all.map((box) => getComputedStyle(box).breakInside)"
        )
        assert set(breaks) == {"auto"}
        heights = page.locator("article figure img").evaluate_all(
            "all => all.map((picture) => picture.getBoundingClientRect().height)"
        )
        assert heights
        assert max(heights) <= HIGHEST + 1
