"""Finding one's way: contents, outline, header and search, by finger, by mouse and by key."""

import re

from playwright.sync_api import Browser, expect
from site_under_test import FORMULA, PAGES, PHONE, SITE, parsed, visit

CHAPTERS = [name for name in PAGES if re.match(r"book/\d\d_", name)]
CHAPTER, GLOSSARY, NOTATION = CHAPTERS[2], "book/glossary.html", "book/notation.html"
WORD = "clockwise"  # of the chapter's text, and of few other pages'
BEFORE, AFTER = (PAGES[PAGES.index(CHAPTER) + step].split("/")[-1] for step in (-1, 1))
MOVED = {
    "": PAGES[0],
    "book/08_tested_code.html": "book/09_tested_code.html",
    "book/09_where_next.html": "book/10_rope.html",
}
FOUND = """(words) => Search._performSearch(...Search._parseQuery(words)).map(([page]) => page)"""
TEXT = "(html) => Search.htmlToText(html)"
BLOCKED = """Object.defineProperty(window, "localStorage", {
  configurable: true, get() { throw new DOMException("blocked", "SecurityError"); } })"""


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


def test_the_search_quotes_the_section_that_holds_a_word_and_opens_it(
    browser: Browser, url: str
) -> None:
    with visit(browser, url + CHAPTER) as page:
        page.keyboard.press("Control+k")
        expect(page.locator("dialog[open] input[type=search]")).to_be_focused()
        page.keyboard.type(WORD)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/search.html?q={WORD}")
        hit = page.locator("#search-results li", has=page.locator(f"a[href*='{CHAPTER}']")).first
        expect(hit.locator(".context")).to_contain_text(WORD)
        expect(hit.locator("a").first).to_have_attribute("href", re.compile("#"))
        section = str(hit.locator("a").first.get_attribute("href")).split("#")[1]
        assert WORD in parsed(SITE / CHAPTER).select(f"article section [id='{section}']")[0].text
        assert ".ipynb" not in page.locator("#search-results").inner_text(), "the names of buttons"
        source = (SITE / CHAPTER).read_text(encoding="utf-8")
        text, without = (page.evaluate(TEXT, html) for html in (source, FORMULA.sub("", source)))
        assert text == without, "a formula is heard as words, but quoted as letters without sense"


def test_the_search_finds_symbols_by_name_and_words_of_both_languages(
    browser: Browser, url: str
) -> None:
    rows = parsed(SITE / NOTATION).select("article table")[0].select("tbody tr")
    names = [row.select("td")[1].get_text(strip=True) for row in rows]
    words = dict.fromkeys([*names, "omega", "lambda", "Delta", "seq_len"], NOTATION)
    words |= dict.fromkeys(("내적", "회전 변환", "wavelength"), GLOSSARY)
    with visit(browser, url + "search.html?q=wavelength") as page:
        page.locator("#search-results li").first.wait_for()
        for word, name in words.items():
            assert name.removesuffix(".html") in page.evaluate(FOUND, word), word


def test_pages_work_where_nothing_may_be_stored(browser: Browser, url: str) -> None:
    with visit(browser, url + CHAPTER) as page:
        page.add_init_script(BLOCKED)
        page.reload()
        page.locator(".theme-switch-button:visible").click()
        expect(page.locator("html")).to_have_attribute("data-mode", "dark")
        page.goto(f"{url}search.html?q=wavelength")
        page.locator("#search-results li").first.wait_for()


def test_an_address_that_is_not_there_leads_to_the_doors(browser: Browser, url: str) -> None:
    with browser.new_page() as page:
        page.goto(url + "no-such-page.html")
        expect(page.locator("article h1")).to_have_text(re.compile("not here"))
        expect(page.locator("article li a")).to_have_count(4)
        page.locator("article input[type=search]").fill("wavelength")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=wavelength")


def test_old_addresses_lead_on(browser: Browser, url: str) -> None:
    with browser.new_page() as page:
        for old, new in MOVED.items():
            page.goto(url + old)
            page.wait_for_url(url + new)


def test_a_page_without_scripts_has_colours_mathematics_stills_and_contents(
    browser: Browser, url: str
) -> None:
    with browser.new_page(java_script_enabled=False, **PHONE) as page:
        page.goto(url + CHAPTER)
        expect(page.locator(".theorem").first).to_have_css("background-color", "rgb(238, 245, 250)")
        expect(page.locator("noscript > p")).to_be_visible()
        expect(page.locator("mjx-math").first).to_be_visible()
        expect(page.locator(".live__picture > svg:visible")).to_have_count(2)
        expect(page.locator(".live__controls:visible")).to_have_count(0)
        expect(page.locator("#pst-primary-sidebar").get_by_text("Glossary")).to_be_visible()
        expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
