"""Finding one's way: contents, outline and header, by finger, by mouse and by key."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.site.browser import PHONE, visit
from website.built_site import PAGES, SITE, chapters, parsed

CHAPTERS = chapters()
CHAPTER = CHAPTERS[2]
BEFORE, AFTER = (PAGES[PAGES.index(CHAPTER) + step].split("/")[-1] for step in (-1, 1))
BLOCKED = """for (const storage of ["localStorage", "sessionStorage"])
  Object.defineProperty(window, storage, {
    configurable: true, get() { throw new DOMException("blocked", "SecurityError"); } });"""


def test_a_phone_opens_the_outline_and_the_contents(browser: Browser, url: str) -> None:
    with visit(browser, url + CHAPTER, **PHONE, has_touch=True) as page:
        page.locator("button.secondary-toggle:visible").tap()
        page.locator("dialog[open] a[href='#exercises']").tap()
        expect(page.locator("dialog[open]")).to_have_count(0)
        expect(page.locator("#exercises > h2")).to_be_in_viewport()
        page.locator("button.primary-toggle:visible").tap()
        page.locator(f"dialog[open] a[href$='{AFTER}']").first.tap()
        page.wait_for_url(f"**/{AFTER}")


def test_the_header_tells_the_place_and_leads_on(browser: Browser, url: str) -> None:
    with visit(browser, url + CHAPTER) as page:
        place = page.locator(".place")
        expect(place.locator(".place__section")).to_be_empty()
        page.locator("#exercises").evaluate("section => section.scrollIntoView()")
        expect(place.locator(".place__section")).to_contain_text("Exercises")
        place.locator(".place__page").click()
        page.wait_for_function("scrollY === 0")
        for side, name in (("prev", BEFORE), ("next", AFTER)):
            expect(place.locator(f"[rel={side}]")).to_have_attribute("href", re.compile(f"{name}$"))


def test_pages_work_where_nothing_may_be_stored(browser: Browser, url: str) -> None:
    with visit(browser, url + CHAPTER) as page:
        page.add_init_script(BLOCKED)
        page.reload()
        page.locator(".theme-switch-button:visible").click()
        expect(page.locator("html")).to_have_attribute("data-mode", "dark")
        page.goto(f"{url}search.html?q=wavelength")
        page.locator("#search-results li").first.wait_for()


@pytest.mark.parametrize("address", ["no-such-page.html", "book/checks/no-such-page.html"])
def test_an_address_that_is_not_there_leads_to_the_doors(
    address: str, browser: Browser, url: str
) -> None:
    """In whichever folder it lies; the page brings its own style along."""
    with browser.new_page() as page:
        page.goto(url + address)
        expect(page.locator("base")).to_have_attribute("href", "/")
        expect(page.locator("article h1")).to_have_text(re.compile("not here"))
        expect(page.locator("main")).to_have_css("max-width", "736px")
        doors = page.locator("article li a")
        expect(doors).to_have_count(4)
        for door in doors.evaluate_all("all => all.map((door) => door.href)"):
            assert (SITE / str(door).removeprefix(url)).is_file(), door
        page.locator("article input[type=search]").fill("wavelength")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=wavelength")


def test_only_pages_that_compute_in_the_browser_tell_that_this_needs_scripts() -> None:
    for name in PAGES:
        page = parsed(SITE / name)
        needs_scripts = page.select(".live, .inspector")
        assert bool(page.select("noscript > p")) == bool(needs_scripts), name


def test_the_address_of_the_site_leads_to_the_landing_page(browser: Browser, url: str) -> None:
    with browser.new_page() as page:
        page.goto(f"{url}#read-run-cite")
        page.wait_for_url(f"{url}{PAGES[0]}#read-run-cite")


def test_a_page_without_scripts_has_colours_mathematics_stills_and_contents(
    browser: Browser, url: str
) -> None:
    with browser.new_page(java_script_enabled=False, **PHONE) as page:
        page.goto(url + CHAPTER)
        expect(page.locator(".theorem").first).to_have_css("background-color", "rgb(238, 245, 250)")
        expect(page.locator("noscript > p")).to_be_visible()
        expect(page.locator("mjx-math").first).to_be_visible()
        figures = page.locator(".live").count()
        assert figures >= 2
        expect(page.locator(".live__picture > svg:visible")).to_have_count(figures)
        expect(page.locator(".live__controls:visible")).to_have_count(0)
        expect(page.locator("#pst-primary-sidebar").get_by_text("Glossary")).to_be_visible()
        expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
