"""A page opens quickly: nothing is done twice, and nothing for what nobody sees.

What is done is counted and not timed, so that a busy machine changes nothing. Times are measured by
website/bench.py.
"""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.site.browser import DESK, PHONE, SETTLE, visit
from website.built_site import PAGES, SITE, SIZES_OF_FILES, chapters, parsed

CHAPTERS = chapters()
ROTATION = CHAPTERS[2]
# A page without one Greek letter in its text.
WITHOUT_GREEK = "search.html"
FOLDED = ".fold:not([open]) > :not(summary)"
# Of a chapter whose window becomes that of a phone: some frames, each laid out at most twice. With
# one layout for each box that is too narrow, they were 24.
MOST_LAYOUTS = 14
LAID_OUT = "all => all.filter((part) => part.checkVisibility()).length"
SEARCHES = re.compile("search|language_data")
MOST_LETTERS = 600  # of the script that asks for the search
BELOW_THE_END = """() => document.documentElement.scrollHeight
  - Math.max(...[...document.body.children].map((part) => part.getBoundingClientRect().bottom))
  - scrollY"""
MOST_BYTES_OF_THE_TOUR = 280_000
UNLOADED_FACES = """async () => {
  await document.fonts.ready;
  return [...document.fonts]
    .filter(({ family, status }) => family.includes("Source Serif") && status !== "loaded")
    .map(({ weight, style, unicodeRange }) => [weight, style, unicodeRange]);
}"""


def layouts_of(page: Page) -> int:
    """How often the browser has laid out a page."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(int(one["value"]) for one in metrics if one["name"] == "LayoutCount")


def test_what_is_wider_than_its_box_is_found_without_a_layout_for_each(browser: Browser) -> None:
    with visit(browser, (SITE / ROTATION).as_uri(), **DESK) as page:
        expect(page.locator(".live:not([data-live])")).to_have_count(0)
        before = layouts_of(page)
        page.set_viewport_size(PHONE["viewport"])
        page.evaluate(SETTLE)
        assert layouts_of(page) - before <= MOST_LAYOUTS
        assert page.locator("[data-after]").count() >= 5, "too few to tell"


@pytest.mark.parametrize("name", CHAPTERS[:5:2])
def test_what_is_folded_is_not_laid_out_and_the_page_ends_where_its_text_does(
    name: str, browser: Browser
) -> None:
    with visit(browser, (SITE / name).as_uri(), **PHONE) as page:
        folded = page.locator(f"{FOLDED} *")
        assert folded.count()
        assert folded.evaluate_all(LAID_OUT) == 0
        assert page.evaluate(BELOW_THE_END) <= 1
        page.locator(".fold > summary").evaluate_all("all => all.forEach((one) => one.click())")
        unfolded = page.locator(".fold > section > p")
        assert unfolded.evaluate_all(LAID_OUT) == unfolded.count() > 0


def test_a_link_to_what_is_folded_opens_it(browser: Browser) -> None:
    """As one that is shared, or on the page itself: the fold, and those around it."""
    anchors = [
        (name, element["id"])
        for name in PAGES
        for element in parsed(SITE / name).select(".fold[id], .fold :is(figure, section)[id]")
        if not str(element["id"]).endswith("-content")
    ]
    assert anchors
    for name, anchor in anchors[:: max(1, len(anchors) // 12)]:
        with visit(browser, f"{(SITE / name).as_uri()}#{anchor}") as page:
            check_open(page, str(anchor))
            page.evaluate(
                "document.querySelectorAll('details').forEach((one) => (one.open = false))"
            )
            page.evaluate("location.hash = ''; scrollTo(0, 0)")
            page.evaluate("(anchor) => { location.hash = anchor; }", anchor)
            check_open(page, str(anchor))


def check_open(page: Page, anchor: str) -> None:
    """The folds around what an address names are open, and it is at the top of the screen."""
    page.wait_for_function("scrollY > 0")
    target = page.locator(f"[id='{anchor}']")
    closed = "one => { const fold = one.closest('details:not([open])'); return Boolean(fold); }"
    page.wait_for_function(f"(id) => !({closed})(document.getElementById(id))", arg=anchor)
    top = target.evaluate("one => one.getBoundingClientRect().top")
    assert 0 <= top <= DESK["viewport"]["height"] / 2, anchor


def test_the_faces_in_the_style_sheet_are_unpacked_before_the_text_asks(browser: Browser) -> None:
    """A face that comes later lets the browser set all text of its family again."""
    with visit(browser, (SITE / WITHOUT_GREEK).as_uri()) as page:
        assert page.evaluate(UNLOADED_FACES) == []


def test_what_searches_comes_when_the_field_opens(browser: Browser, url: str) -> None:
    """And not before: the first view of a page has a few lines that ask for it, and no more."""
    with visit(browser, url + ROTATION) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.reload()  # the network of a busy machine may be idle before the scripts have run
        page.wait_for_load_state("networkidle")
        assert asked
        assert not [address for address in asked if SEARCHES.search(address)]
        page.keyboard.press("Control+k")
        page.locator("[role=combobox]").wait_for()
        page.wait_for_function("typeof PAGES === 'object'")
        assert [address for address in asked if "search_index.js" in address]
    assert "search-option" not in (SITE / "_static/site.css").read_text(encoding="utf-8")
    asks = [one.text for one in parsed(SITE / ROTATION).select("script") if "search" in one.text]
    assert len("".join(asks)) < MOST_LETTERS


def test_the_tour_is_light_and_brings_a_phone_nothing_that_it_does_not_show(
    browser: Browser, url: str
) -> None:
    with visit(browser, f"{url}book/tour.html", **PHONE) as page:
        expect(page.locator(".live:not([data-live])")).to_have_count(0)
        page.evaluate(SETTLE)
        sizes = page.evaluate(SIZES_OF_FILES)
        assert sum(size for size, _ in sizes) <= MOST_BYTES_OF_THE_TOUR, sorted(sizes)[-8:]
        assert not [name for _, name in sizes if "companion" in name or "beside" in name]
