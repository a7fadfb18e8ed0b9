"""Lines and text of every figure stand out from what they stand on, on light pages and dark ones.

A live figure is measured where it stands, in both of its forms, and a still figure as the file that
the page shows. The colours are those that the browser computes (contrast.js).
"""

import io
import itertools
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from pe_book.dark import GROUND, contrast, dark_colour, hex_of
from pe_book.plots import SHADE
from tests.site.browser import DESK, PHONE, visit
from website.built_site import PAGES, SITE

LEAST = {"text": 4.5, "line": 3.0}  # WCAG 2.2, success criteria 1.4.3 and 1.4.11
MEASURE = Path(__file__).with_name("contrast.js")
STILL = re.compile(r'<img [^>]*src="[^"]*_images/([0-9a-f]{64})\.svg"')
LIVE_GRIDS = ("#e3e6e8", "#2b3036")
BEHIND = [*LIVE_GRIDS, SHADE, dark_colour(SHADE)]  # what contrast.js passes over
GROUNDS = {"light": "#ffffff", "dark": GROUND}
SCHEMES: list[Any] = ["light", "dark"]
ROOM: Any = {"width": 1280, "height": 2400}  # what is looked at must be on the screen


def text_of(name: str) -> str:
    return (SITE / name).read_text(encoding="utf-8") if (SITE / name).is_file() else ""


def faults(page: Page, selector: str) -> list[dict[str, Any]]:
    """What the drawings within the selected elements show too faintly; some must be there."""
    found: list[dict[str, Any]] = page.locator(selector).evaluate_all(
        """async (boxes, behind) => {
          const rows = [];
          for (const box of boxes) {
            box.scrollIntoView({ block: "center" });
            rows.push(...(await measured(box, behind)));
          }
          return rows;
        }""",
        BEHIND,
    )
    assert found, "nothing was measured"
    return [one for one in found if one["contrast"] < LEAST[one["kind"]]]


@pytest.mark.parametrize("name", [name for name in PAGES if 'class="live"' in text_of(name)])
def test_live_figures_can_be_seen(browser: Browser, name: str) -> None:
    """In one visit, because a page and its figures follow the scheme of the system."""
    with visit(browser, (SITE / name).as_uri(), **DESK) as page:
        expect(page.locator(".live[data-live]")).to_have_count(page.locator(".live").count())
        page.add_script_tag(path=MEASURE)
        for scheme, device in itertools.product(SCHEMES, (DESK, PHONE)):
            page.emulate_media(color_scheme=scheme)
            expect(page.locator("html")).to_have_attribute("data-theme", scheme)
            page.set_viewport_size(ROOM | {"width": device["viewport"]["width"]})
            assert faults(page, ".live__picture") == [], (scheme, device["viewport"])


@pytest.fixture(scope="module")
def sheet(browser: Browser) -> Iterator[Page]:
    """An empty page on which drawings are laid one at a time."""
    page = browser.new_page(viewport=ROOM)
    yield page
    page.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", [name for name in PAGES if STILL.search(text_of(name))])
def test_still_figures_can_be_seen(sheet: Page, name: str, scheme: str) -> None:
    twin = "-dark" if scheme == "dark" else ""
    for which in sorted(set(STILL.findall(text_of(name)))):
        drawing = (SITE / "_images" / f"{which}{twin}.svg").read_text(encoding="utf-8")
        svg = drawing[drawing.index("<svg") :]
        sheet.set_content(f'<body style="background: {GROUNDS[scheme]}">{svg}</body>')
        sheet.add_script_tag(path=MEASURE)
        assert faults(sheet, "body") == [], which


def pictures(drawing: Path) -> list[NDArray[np.uint8]]:
    """The pixels of each picture in a drawing."""
    codes = re.findall(r'href="data:image/png;base64,([^"]*)"', drawing.read_text("utf-8"))
    return [np.asarray(Image.open(io.BytesIO(b64decode(code))).convert("RGBA")) for code in codes]


@pytest.mark.parametrize("name", [name for name in PAGES if STILL.search(text_of(name))])
def test_the_zero_of_a_heat_map_is_dark_on_a_dark_page(name: str) -> None:
    """A pixel next to white on a light page is one next to the ground on a dark page."""
    for which in sorted(set(STILL.findall(text_of(name)))):
        light, dark = (pictures(SITE / "_images" / f"{which}{twin}.svg") for twin in ("", "-dark"))
        for before, after in zip(light, dark, strict=True):
            near_white = after[np.all(before >= 245, axis=-1)]
            for red, green, blue, _ in np.unique(near_white, axis=0) / 255:
                assert contrast(hex_of(red, green, blue), GROUND) < 1.2, which


def test_the_pictures_of_heat_maps_are_found() -> None:
    """Where none were found, their zero would pass on every page."""
    drawings = {which for name in PAGES for which in STILL.findall(text_of(name))}
    found = [pictures(SITE / "_images" / f"{which}.svg") for which in drawings]
    assert sum(map(len, found)) >= 30


def test_a_faint_line_and_a_faint_text_are_found(sheet: Page) -> None:
    """A measurement that finds nothing would pass everything: here it has something to find."""
    sheet.set_content(
        """<body><svg width="200" height="80" font-size="12">
          <rect width="100" height="80" fill="#112233"/>
          <line x1="10" y1="20" x2="180" y2="20" stroke="#0072b2" stroke-width="2"/>
          <line x1="110" y1="40" x2="180" y2="40" stroke="#0072b2" stroke-width="2"/>
          <line x1="10" y1="50" x2="90" y2="50" stroke="#000" opacity="0.3" stroke-width="2"/>
          <text x="110" y="60" fill="#8c959f">faint</text>
          <text x="10" y="70" fill="#ffffff">clear</text>
        </svg></body>"""
    )
    sheet.add_script_tag(path=MEASURE)
    seen = [(one["what"].split()[0], round(one["contrast"], 1)) for one in faults(sheet, "body")]
    assert seen == [("line", 1.1), ("text", 3.0)]
