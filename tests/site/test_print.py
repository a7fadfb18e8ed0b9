"""What is printed looks as on a light page, whichever theme is chosen, and fills its paper."""

import io
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, expect
from pypdf import PdfReader
from pypdf.generic import ContentStream

from tests.site.browser import visit
from website.built_site import SITE

# How many operands of an operator, the last ones, say where a thing is drawn. The browser rounds
# them now and then otherwise, by a part of a pixel.
PLACES = {"Tm": 2, "cm": 2, "Td": 2, "re": 4, "m": 2, "l": 2, "c": 6}
PIXEL = 300 / 96  # the browser writes 300 units to an inch
HIGHEST = 100 / 25.4 * 96  # pixels of 100 mm


class Sheet(NamedTuple):
    """What a sheet draws: all operators (text, lines and their colours), with their operands but
    for those that are places; these; and the pictures."""

    operators: list[tuple[str, str]]
    places: list[float]
    pictures: list[bytes]


def printed(browser: Browser, scheme: str) -> list[Sheet]:
    """The tour on paper, from a page of this theme, which keeps it."""
    with visit(browser, (SITE / "book/tour.html").as_uri(), color_scheme=scheme) as page:
        paper = page.pdf(format="A4", print_background=True)
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    reader = PdfReader(io.BytesIO(paper))
    found = []
    for page_of_paper in reader.pages:
        sheet = Sheet([], [], [picture.data for picture in page_of_paper.images])
        for operands, name in ContentStream(page_of_paper.get_contents(), reader).operations:
            operator = name.decode()
            kept = len(operands) - PLACES.get(operator, 0)
            sheet.operators.append((operator, str(operands[:kept])))
            sheet.places.extend(map(float, operands[kept:]))
        assert sheet.operators
        found.append(sheet)
    return found


def test_a_dark_page_is_printed_as_a_light_one(browser: Browser) -> None:
    dark, light = (printed(browser, scheme) for scheme in ("dark", "light"))
    assert len(dark) == len(light) > 5
    for number, (one, other) in enumerate(zip(dark, light, strict=True), 1):
        assert one.operators == other.operators, f"sheet {number}"
        assert one.places == pytest.approx(other.places, abs=PIXEL), f"sheet {number}"
        assert one.pictures == other.pictures, f"sheet {number}"


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
