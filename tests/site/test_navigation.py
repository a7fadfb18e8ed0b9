"""Finding one's way: contents, outline, header and search, by finger, by mouse and by key."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect
from site_under_test import PAGES, SITE, Setting, Visit, parsed, visit

CHAPTERS = [name for name in PAGES if re.match(r"book/\d\d_", name)]
CHAPTER, GLOSSARY, NOTATION = CHAPTERS[2], "book/glossary.html", "book/notation.html"
BEFORE, AFTER = (PAGES[PAGES.index(CHAPTER) + step].split("/")[-1] for step in (-1, 1))
FOUND = """(words) => Search._performSearch(...Search._parseQuery(words)).map(([page]) => page)"""
BLOCKED = """Object.defineProperty(window, "localStorage", {
  configurable: true, get() { throw new DOMException("blocked", "SecurityError"); } })"""


@pytest.fixture
def on_a_phone(browser: Browser, url: str) -> Iterator[Visit]:
    with visit(browser, url + CHAPTER, Setting("light", 390), has_touch=True) as seen:
        yield seen
        assert seen.complaints == []


@pytest.fixture
def at_a_desk(browser: Browser, url: str) -> Iterator[Visit]:
    with visit(browser, url + CHAPTER) as seen:
        yield seen
        assert seen.complaints == []


def test_a_phone_opens_the_contents_and_goes_to_a_chapter(on_a_phone: Visit) -> None:
    page = on_a_phone.page
    page.locator("button.primary-toggle:visible").tap()
    page.locator(f"dialog[open] a[href$='{AFTER}']").first.tap()
    page.wait_for_url(f"**/{AFTER}")


def test_a_phone_opens_the_outline_and_goes_to_a_section(on_a_phone: Visit) -> None:
    page = on_a_phone.page
    page.locator("button.secondary-toggle:visible").tap()
    page.locator("dialog[open] a[href='#exercises']").tap()
    page.wait_for_url("**#exercises")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("#exercises > h2")).to_be_in_viewport()


def test_the_contents_fold_at_a_desk(at_a_desk: Visit) -> None:
    contents = at_a_desk.page.locator(".bd-sidebar-primary")
    expect(contents).to_be_in_viewport()
    at_a_desk.page.locator("button.primary-toggle:visible").click()
    expect(contents).not_to_be_in_viewport()


def test_the_header_tells_the_place_and_leads_on(at_a_desk: Visit) -> None:
    page, place = at_a_desk.page, at_a_desk.page.locator(".place")
    expect(place.locator(".place__section")).to_be_empty()
    page.locator("#exercises").evaluate("section => section.scrollIntoView()")
    expect(place.locator(".place__section")).to_contain_text("Exercises")
    place.locator(".place__page").click()
    page.wait_for_function("scrollY === 0")
    for side, name in (("prev", BEFORE), ("next", AFTER)):
        expect(place.locator(f"[rel={side}]")).to_have_attribute("href", re.compile(f"{name}$"))


def ask(page: Page, word: str) -> None:
    """The hit quotes the section that holds the word, and opens it."""
    page.keyboard.type(word)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/search.html?q={word}")
    result = page.locator("#search-results li", has=page.locator(f"a[href*='{CHAPTER}']")).first
    expect(result.locator(".context")).to_contain_text(word)
    _, section = str(result.locator("a").first.get_attribute("href")).split("#")
    assert word in parsed(SITE / CHAPTER).select(f"article [id='{section}']")[0].get_text()
    assert section != parsed(SITE / CHAPTER).select("article > section")[0]["id"]
    quoted = page.locator("#search-results").inner_text()
    assert "\\" not in quoted, "a formula as it is written"
    assert ".ipynb" not in quoted, "the names of buttons"


def rare_word() -> str:
    """A word of the chapter's text that few other chapters have."""
    texts = [(SITE / name).read_text().lower() for name in CHAPTERS]
    prose = " ".join(one.get_text() for one in parsed(SITE / CHAPTER).select("section > p"))
    words = re.findall(r"(?<= )[a-z]{7,10}(?= )", prose)
    return str(min(words, key=lambda word: sum(word in text for text in texts)))


def test_the_search_opens_and_quotes_the_article(at_a_desk: Visit) -> None:
    page = at_a_desk.page
    page.locator("button.search-button-field:visible").click()
    expect(page.locator("dialog[open] input[type=search]")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    ask(page, rare_word())


def finds(seen: Visit, url: str, word: str, name: str) -> None:
    seen.page.goto(f"{url}search.html?q={quote(word)}")
    found = seen.page.locator(f'#search-results a[href*="{name.split("/")[1]}"]')
    found.first.wait_for(timeout=5000)


def test_the_search_finds_symbols_by_name_and_words_of_both_languages(
    browser: Browser, url: str
) -> None:
    rows = parsed(SITE / NOTATION).select("article table")[0].select("tbody tr")
    names = [row.select("td")[1].get_text(strip=True) for row in rows]
    assert len(names) > 10
    words = dict.fromkeys([*names, "omega", "lambda", "Delta", "seq_len"], NOTATION)
    words |= dict.fromkeys(("내적", "회전 변환", "wavelength"), GLOSSARY)
    with visit(browser, url + "search.html?q=wavelength") as seen:
        seen.page.locator("#search-results li").first.wait_for(timeout=5000)
        for word, name in words.items():
            assert name.removesuffix(".html") in seen.page.evaluate(FOUND, word), word
        assert seen.complaints == []


def test_search_theme_and_menu_work_where_nothing_may_be_stored(browser: Browser, url: str) -> None:
    with visit(browser, url + CHAPTER, Setting("light", 390), first=BLOCKED) as seen:
        page = seen.page
        modes = []
        for _ in range(3):
            page.locator(".theme-switch-button:visible").click()
            modes.append(page.locator("html").get_attribute("data-mode"))
        assert sorted(map(str, modes)) == ["auto", "dark", "light"]
        page.locator("button.primary-toggle:visible").click()
        expect(page.locator(f"dialog[open] a[href$='{AFTER}']").first).to_be_visible()
        finds(seen, url, "wavelength", GLOSSARY)
        assert seen.complaints == []


def test_an_address_that_is_not_there_leads_to_the_doors(browser: Browser, url: str) -> None:
    with visit(browser, url + "no-such-page.html") as seen:
        page = seen.page
        expect(page.locator("article h1")).to_have_text(re.compile("not here"))
        assert page.locator("article li a").count() == 4
        page.locator("article input[type=search]").fill("wavelength")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=wavelength")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", PAGES[0]),
        ("book/08_tested_code.html", "book/09_tested_code.html"),
        ("book/09_where_next.html", "book/10_rope.html"),
    ],
)
def test_old_addresses_lead_on(browser: Browser, url: str, old: str, new: str) -> None:
    page = browser.new_page()
    page.goto(url + old)
    page.wait_for_url(url + new)
    page.close()


def test_a_page_without_scripts_has_colours_mathematics_and_contents(
    browser: Browser, url: str
) -> None:
    with visit(browser, url + CHAPTER, Setting("dark", 390), java_script_enabled=False) as seen:
        theorem = seen.page.locator(".admonition.theorem").first
        expect(theorem).to_have_css("background-color", "rgb(238, 245, 250)")
        expect(seen.page.locator("noscript > p")).to_be_visible()
        expect(seen.page.locator("mjx-math").first).to_be_visible()
        contents = seen.page.locator("#pst-primary-sidebar")
        expect(contents.get_by_text("Glossary")).to_be_visible()
        expect(seen.page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")


def test_glossary_is_korean_in_a_korean_face_and_linked(browser: Browser, url: str) -> None:
    """Each system's own face, by name: what a bare `serif` gives is poor on some."""
    terms = parsed(SITE / GLOSSARY).select("dl.glossary > dt")
    assert len(terms) > 100
    assert all(term.get("id") for term in terms)
    with visit(browser, url + GLOSSARY) as seen:
        faces = seen.page.locator("dt:lang(ko)").evaluate_all(
            "all => all.map((e) => getComputedStyle(e).fontFamily)"
        )
    assert len(faces) > 50
    for face in ("Apple SD Gothic Neo", "Malgun Gothic", "Noto Sans CJK KR"):
        assert all(face in family for family in faces)
