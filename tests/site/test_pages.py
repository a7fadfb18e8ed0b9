"""Every page as a reader gets it, in light and dark, on a desk and on a phone."""

import itertools
import re
from collections.abc import Iterator

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser
from site_under_test import ALL_PAGES, PAGES, SETTINGS, SITE, Visit, visit

MOST_BYTES, MOST_BYTES_WITH_SLIDERS = 600_000, 1_100_000
RAW = re.compile(r"\\[a-zA-Z]{2,}|\\[()\[\]]|\$\$|:::|\{[a-z:]+\}`|^```", re.MULTILINE)
TEXT_OUTSIDE_CODE = """() => {
  const article = (document.querySelector("article") ?? document.body).cloneNode(true);
  article.querySelectorAll("pre, code, script, mjx-container").forEach((part) => part.remove());
  return article.textContent;
}"""
# Everything that is folded, opened as a reader opens it.
UNFOLD = """() => {
  const folds = ".toggle-hidden > .toggle-button, details:not([open]) > summary";
  document.querySelectorAll(folds).forEach((fold) => fold.click());
}"""
# The formulas of which a part is cut off, unless their box scrolls and the keyboard reaches it.
CUT_OFF = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let passed = 0; passed < 3; passed++) await frame();
  const clips = (box) => getComputedStyle(box).overflowX !== "visible";
  const scrolls = (box) =>
    getComputedStyle(box).overflowX === "auto" && box.scrollWidth > box.clientWidth &&
    box.tabIndex === 0;
  return [...document.querySelectorAll("mjx-container")].filter((formula) => {
    const drawn = formula.firstElementChild.getBoundingClientRect();
    for (let box = formula; formula.checkVisibility() && box; box = box.parentElement) {
      if (scrolls(box)) return false;
      if (clips(box) && drawn.right > box.getBoundingClientRect().right + 1) return true;
    }
  }).map((formula) => formula.textContent);
}"""
# The formulas whose comma, or whatever else touches them, stands on another line.
PARTED = """() => [...document.querySelectorAll(".kept")]
  .filter((kept) => kept.getClientRects().length > 1).map((kept) => kept.textContent)"""


# Each worker of a parallel run takes whole groups, and so opens a page once.
LOOKS = [
    pytest.param((name, setting), id=look, marks=pytest.mark.xdist_group(look))
    for name, setting in itertools.product(ALL_PAGES, SETTINGS)
    for look in [f"{name}-{setting.scheme}-{setting.width}"]
]


@pytest.fixture(scope="module", params=LOOKS)
def seen(browser: Browser, url: str, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """Each page in each setting, opened once for all that is asked of it."""
    name, setting = request.param
    with visit(browser, url + name, setting) as opened:
        yield opened


every_page = pytest.mark.parametrize("name", PAGES)


@every_page
def test_page_exists(name: str) -> None:
    page = BeautifulSoup((SITE / name).read_text(), "html.parser")
    assert page.select_one("article h1"), f"{name} has no heading"
    assert page.select_one("article p")


@every_page
def test_no_formula_is_cut_off_or_parted_from_its_comma(
    browser: Browser, url: str, name: str
) -> None:
    with visit(browser, url + name) as opened:
        page = opened.page
        page.evaluate(UNFOLD)
        for width in (1280, 390, 360, 320):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(CUT_OFF) == [], f"{width} pixels wide"
            assert page.evaluate(PARTED) == [], f"{width} pixels wide"
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_nothing_comes_from_other_hosts(seen: Visit) -> None:
    assert seen.foreign == []


def test_nothing_is_wider_than_the_page(seen: Visit) -> None:
    room = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert room[0] <= room[1]


def test_mathematics_is_typeset(seen: Visit) -> None:
    page = seen.page
    formulas = page.locator(".math").count()
    assert page.locator(".math:has(mjx-container mjx-assistive-mml math)").count() == formulas
    assert page.locator("mjx-merror").count() == 0
    assert page.locator('mjx-container[display="true"]:not([tabindex="0"])').count() == 0
    assert RAW.findall(page.evaluate(TEXT_OUTSIDE_CODE)) == []


def test_pictures_have_text_alternatives(seen: Visit) -> None:
    said = seen.page.locator("article img").evaluate_all("all => all.map((e) => e.alt)")
    frames = "all => all.map((e) => e.getAttribute('aria-label') ?? '')"
    said += seen.page.locator("article svg[role=img]").evaluate_all(frames)
    assert [text for text in said if len(text) < 10] == []


def test_figures_turn_dark(seen: Visit) -> None:
    """In the dark a figure's white becomes the page's own colour, with no box around it."""
    dark = seen.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    pictures = seen.page.locator("article :is(img, .pe-slider svg)")
    looks = pictures.evaluate_all(
        "all => all.map(getComputedStyle).map((e) => [e.filter, e.backgroundColor].join())"
    )
    expected = "invert(0.93) hue-rotate(180deg)" if dark else "none"
    assert set(looks) <= {f"{expected},rgba(0, 0, 0, 0)"}
    paper = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(18, 18, 18)" if dark else "rgb(255, 255, 255)")


def test_axe_finds_no_violation(seen: Visit) -> None:
    assert seen.axe() == []


def test_first_view_is_light(seen: Visit) -> None:
    seen.page.wait_for_load_state("networkidle")
    most = MOST_BYTES_WITH_SLIDERS if seen.page.locator(".live-figure").count() else MOST_BYTES
    largest = sorted(seen.sizes.items(), key=lambda item: -item[1])[:8]
    assert sum(seen.sizes.values()) <= most, f"the largest: {largest}"


def test_the_console_stays_silent(seen: Visit) -> None:
    """Asked last, once everything has run."""
    assert seen.complaints == []


@every_page
def test_page_introduces_itself(name: str) -> None:
    """Search engines and shared links get a title, a description and an icon."""
    head = BeautifulSoup((SITE / name).read_text(), "html.parser").head
    assert head is not None
    for selector, attribute in {
        "meta[name=description]": "content",
        'meta[property="og:title"]': "content",
        'meta[property="og:description"]': "content",
        "link[rel=icon]": "href",
    }.items():
        (element,) = head.select(selector)
        assert len(str(element[attribute])) >= 5


def test_descriptions_differ() -> None:
    pages = [BeautifulSoup((SITE / name).read_text(), "html.parser") for name in PAGES]
    descriptions = [str(page.select("meta[name=description]")[0]["content"]) for page in pages]
    assert len(set(descriptions)) == len(PAGES)


def test_the_door_leads_to_the_book(browser: Browser, url: str) -> None:
    page = browser.new_page()
    page.goto(url)
    page.wait_for_url(url + PAGES[0])
    page.close()
