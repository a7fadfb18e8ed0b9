"""Finding one's way: contents, outline, header and search, by finger, by mouse and by key."""

import re

from playwright.sync_api import Browser, expect
from site_under_test import FORMULA, PAGES, PHONE, SITE, parsed, visit

CHAPTERS = [name for name in PAGES if re.match(r"book/\d\d_", name)]
CHAPTER, GLOSSARY, NOTATION = CHAPTERS[2], "book/glossary.html", "book/notation.html"
BEFORE, AFTER = (PAGES[PAGES.index(CHAPTER) + step].split("/")[-1] for step in (-1, 1))
MOVED = {
    "": PAGES[0],
    "book/08_tested_code.html": "book/09_tested_code.html",
    "book/09_where_next.html": "book/10_rope.html",
}
FOUND = """(words) => Search._performSearch(...Search._parseQuery(words)).map(([page]) => page)"""
BLOCKED = """Object.defineProperty(window, "localStorage", {
  configurable: true, get() { throw new DOMException("blocked", "SecurityError"); } })"""
FACES = "all => [...new Set(all.map((e) => getComputedStyle(e).fontFamily))]"


def test_a_phone_opens_the_outline_and_the_contents(browser: Browser, url: str) -> None:
    with visit(browser, url + CHAPTER, PHONE, has_touch=True) as seen:
        page = seen.page
        page.locator("button.secondary-toggle:visible").tap()
        page.locator("dialog[open] a[href='#exercises']").tap()
        expect(page.locator("dialog[open]")).to_have_count(0)
        expect(page.locator("#exercises > h2")).to_be_in_viewport()
        page.locator("button.primary-toggle:visible").tap()
        page.locator(f"dialog[open] a[href$='{AFTER}']").first.tap()
        page.wait_for_url(f"**/{AFTER}")
        assert seen.complaints == []


def test_the_header_tells_the_place_and_leads_on(browser: Browser, url: str) -> None:
    with visit(browser, url + CHAPTER) as seen:
        page, place = seen.page, seen.page.locator(".place")
        expect(place.locator(".place__section")).to_be_empty()
        page.locator("#exercises").evaluate("section => section.scrollIntoView()")
        expect(place.locator(".place__section")).to_contain_text("Exercises")
        place.locator(".place__page").click()
        page.wait_for_function("scrollY === 0")
        for side, name in (("prev", BEFORE), ("next", AFTER)):
            expect(place.locator(f"[rel={side}]")).to_have_attribute("href", re.compile(f"{name}$"))


def rare_word() -> str:
    """A word of the chapter's text that few other chapters have."""
    texts = [(SITE / name).read_text().lower() for name in CHAPTERS]
    prose = " ".join(one.get_text() for one in parsed(SITE / CHAPTER).select("section > p"))
    words = re.findall(r"(?<= )[a-z]{7,10}(?= )", prose)
    return str(min(words, key=lambda word: sum(word in text for text in texts)))


def test_the_search_quotes_the_section_that_holds_a_word_and_opens_it(
    browser: Browser, url: str
) -> None:
    word = rare_word()
    with visit(browser, url + CHAPTER) as seen:
        page = seen.page
        page.keyboard.press("Control+k")
        expect(page.locator("dialog[open] input[type=search]")).to_be_focused()
        page.keyboard.type(word)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/search.html?q={word}")
        hit = page.locator("#search-results li", has=page.locator(f"a[href*='{CHAPTER}']")).first
        expect(hit.locator(".context")).to_contain_text(word)
        expect(hit.locator("a").first).to_have_attribute("href", re.compile("#"))
        section = str(hit.locator("a").first.get_attribute("href")).split("#")[1]
        assert word in parsed(SITE / CHAPTER).select(f"article section [id='{section}']")[0].text
        assert ".ipynb" not in page.locator("#search-results").inner_text(), "the names of buttons"
        source = (SITE / CHAPTER).read_text(encoding="utf-8")
        longest = max(FORMULA.findall(source), key=len)
        formula = page.evaluate(
            "(html) => Search.htmlToText(`<article>${html}</article>`)", longest
        )
        assert len(formula.strip()) > 20, "a formula is letters only where it is not left out"
        assert formula not in page.evaluate("(html) => Search.htmlToText(html)", source)
        assert seen.complaints == []


def test_the_search_finds_symbols_by_name_and_words_of_both_languages(
    browser: Browser, url: str
) -> None:
    rows = parsed(SITE / NOTATION).select("article table")[0].select("tbody tr")
    names = [row.select("td")[1].get_text(strip=True) for row in rows]
    words = dict.fromkeys([*names, "omega", "lambda", "Delta", "seq_len"], NOTATION)
    words |= dict.fromkeys(("내적", "회전 변환", "wavelength"), GLOSSARY)
    with visit(browser, url + "search.html?q=wavelength") as seen:
        seen.page.locator("#search-results li").first.wait_for()
        for word, name in words.items():
            assert name.removesuffix(".html") in seen.page.evaluate(FOUND, word), word


def test_pages_work_where_nothing_may_be_stored(browser: Browser, url: str) -> None:
    with visit(browser, url + CHAPTER, first=BLOCKED) as seen:
        seen.page.locator(".theme-switch-button:visible").click()
        expect(seen.page.locator("html")).to_have_attribute("data-mode", "dark")
        seen.page.goto(f"{url}search.html?q=wavelength")
        seen.page.locator("#search-results li").first.wait_for()
        assert seen.complaints == []


def test_an_address_that_is_not_there_leads_to_the_doors(browser: Browser, url: str) -> None:
    with visit(browser, url + "no-such-page.html") as seen:
        page = seen.page
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
    with visit(browser, url + CHAPTER, PHONE, java_script_enabled=False) as seen:
        page = seen.page
        expect(page.locator(".theorem").first).to_have_css("background-color", "rgb(238, 245, 250)")
        expect(page.locator("noscript > p")).to_be_visible()
        expect(page.locator("mjx-math").first).to_be_visible()
        expect(page.locator(".live__picture > svg:visible")).to_have_count(2)
        expect(page.locator(".live__controls:visible")).to_have_count(0)
        expect(page.locator("#pst-primary-sidebar").get_by_text("Glossary")).to_be_visible()
        expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")


def test_korean_is_set_in_the_korean_face_of_each_system(browser: Browser) -> None:
    """By name: what a bare `serif` gives is poor on some."""
    with visit(browser, (SITE / GLOSSARY).as_uri()) as seen:
        (family,) = seen.page.locator("dt:lang(ko)").evaluate_all(FACES)
    for face in ("Apple SD Gothic Neo", "Malgun Gothic", "Noto Sans CJK KR"):
        assert face in family
