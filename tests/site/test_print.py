"""What is printed looks as on a light page, whichever theme is chosen, and fills its paper."""

import re

from playwright.sync_api import Browser, expect

from tests.site.browser import visit
from website.built_site import SITE

DATES = re.compile(rb"/(?:CreationDate|ModDate) \([^)]*\)")
HIGHEST = 100 / 25.4 * 96  # pixels of 100 mm


def printed(browser: Browser, scheme: str) -> bytes:
    """The tour on paper, from a page of this theme, which keeps it."""
    with visit(browser, (SITE / "book/tour.html").as_uri(), color_scheme=scheme) as page:
        paper = page.pdf(format="A4", print_background=True)
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    return DATES.sub(b"", paper)


def test_a_dark_page_is_printed_as_a_light_one(browser: Browser) -> None:
    assert printed(browser, "dark") == printed(browser, "light")


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
