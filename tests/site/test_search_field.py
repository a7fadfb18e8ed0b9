"""The field of the search: hits while one types, by key, by mouse, by finger and by ear."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.site.browser import DESK, PHONE, SETTLE, visit
from website.built_site import SITE

OPEN, IN_A_FOLDER = "book/cheat_sheet.html", "book/checks/index.html"
MODEL = "book/rope_in_your_model.html"
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
FAULTS = """async () => {
  const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations } = await axe.run("#pst-search-dialog", { runOnly: rules });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}"""
BOX = "(one) => JSON.stringify(one.getBoundingClientRect())"
ACTIVE = "aria-activedescendant"


@contextmanager
def opened(browser: Browser, address: str, **setting: Any) -> Iterator[tuple[Page, Locator]]:
    """A page whose field of the search has been opened by its keys, and that field."""
    with visit(browser, address, **setting) as page:
        page.keyboard.press("Control+k")
        field = page.get_by_role("combobox", name="Search this book")
        expect(field).to_be_focused()
        yield page, field


def options_of(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Places in the book").get_by_role("option")


@pytest.mark.parametrize("site", ["a server", "a disk"])
def test_hits_appear_while_typing(site: str, browser: Browser, url: str) -> None:
    """Each with its page, its section and a sentence with marked words; in every folder."""
    root = url if site == "a server" else f"{SITE.as_uri()}/"
    for name in (OPEN, IN_A_FOLDER):
        with opened(browser, root + name) as (page, field):
            expect(field).to_have_attribute("aria-expanded", "false")
            field.press_sequentially("rotate_ha")  # not yet a word
            options = options_of(page)
            expect(options.first).to_have_attribute("href", re.compile(re.escape(MODEL)))
            assert 5 <= options.count() <= 8
            expect(field).to_have_attribute("aria-expanded", "true")
            expect(page.get_by_role("status")).to_contain_text("places in the book")
            first = options.first
            expect(first).to_have_accessible_name(re.compile("^RoPE in your model"))
            expect(first).to_have_accessible_description(re.compile(r"rotate_half.*[.?!)”]$"))
            expect(first.locator(".context .highlighted").first).to_have_text("rotate_half")


def test_keys_choose_and_enter_opens(browser: Browser, url: str) -> None:
    with opened(browser, url + OPEN) as (page, field):
        field.press_sequentially("vision 2d rope")
        options = options_of(page)
        expect(options.first).to_contain_text("Images and video")
        for key, number in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0)):
            field.press(key)
            expect(options.nth(number)).to_have_attribute("aria-selected", "true")
            expect(page.locator("[aria-selected=true]")).to_have_count(1)
            expect(field).to_have_attribute(ACTIVE, str(options.nth(number).get_attribute("id")))
        field.press("ArrowUp")  # back into the field, and from there to the last
        assert field.get_attribute(ACTIVE) is None
        field.press("ArrowUp")
        expect(options.last).to_have_attribute("aria-selected", "true")
        expect(options.last).to_be_in_viewport(ratio=1)
        field.press("ArrowDown")
        field.press("ArrowDown")
        expect(field).to_be_focused()
        field.press("Enter")
        page.wait_for_url(f"**/{MODEL}#images-and-video")
        expect(page.locator("#images-and-video h2")).to_be_in_viewport()
        expect(page.locator("article .highlighted").first).to_be_attached()


def test_another_letter_takes_the_choice_back(browser: Browser, url: str) -> None:
    with opened(browser, url + OPEN) as (page, field):
        field.press_sequentially("rotat")
        expect(options_of(page).first).to_be_visible()
        field.press("ArrowDown")
        field.press_sequentially("ion")
        expect(page.locator("[aria-selected=true]")).to_have_count(0)
        assert field.get_attribute(ACTIVE) is None


def test_enter_without_a_choice_leads_to_the_page_of_the_search(browser: Browser, url: str) -> None:
    with opened(browser, url + OPEN) as (page, field):
        field.press_sequentially("wavelength")
        expect(options_of(page).first).to_be_visible()
        field.press("Enter")
        page.wait_for_url("**/search.html?q=wavelength")
        expect(page.locator("#search-results li").first).to_be_visible()


def test_escape_closes_the_field_and_leaves_the_page(browser: Browser, url: str) -> None:
    with opened(browser, url + OPEN) as (page, field):
        field.press_sequentially("wavelength")
        expect(options_of(page).first).to_be_visible()
        field.press("ArrowDown")
        field.press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(0)
        expect(options_of(page)).to_have_count(0)
        assert page.url == url + OPEN
        page.keyboard.press("Control+k")
        expect(field).to_be_focused()


def test_a_query_without_hits_says_so(browser: Browser, url: str) -> None:
    with opened(browser, url + OPEN) as (page, field):
        field.press_sequentially("rope")
        expect(options_of(page).first).to_be_visible()
        field.fill("xyzzy")
        expect(page.get_by_role("status")).to_contain_text("Nothing was found")
        expect(options_of(page)).to_have_count(0)
        expect(field).to_have_attribute("aria-expanded", "false")
        field.fill("how do")  # asks for nothing yet
        expect(page.get_by_role("status")).to_be_empty()


def test_a_misspelt_word_is_corrected_while_typing(browser: Browser, url: str) -> None:
    with opened(browser, url + OPEN) as (page, field):
        field.press_sequentially("rotate_hlaf")
        expect(page.get_by_role("status")).to_contain_text("Results for rotate_half.")
        expect(options_of(page).first).to_have_attribute("href", re.compile(re.escape(MODEL)))


def test_korean_is_found_while_a_syllable_is_typed(browser: Browser, url: str) -> None:
    with opened(browser, url + OPEN) as (page, field):
        for typed in ("회전", "회전 ㅎ", "회전 행", "회전 행려", "회전 행렬"):
            field.fill(typed)
            expect(options_of(page).first).to_have_attribute("href", re.compile("rotation"))


def test_a_hit_on_the_open_page_closes_the_field_and_leads_there(
    browser: Browser, url: str
) -> None:
    with opened(browser, url + MODEL) as (page, field):
        field.press_sequentially("vision 2d rope")
        options_of(page).first.click()
        expect(page.locator("dialog[open]")).to_have_count(0)
        expect(page.locator("#images-and-video h2")).to_be_in_viewport()
        assert page.evaluate("localStorage.getItem('sphinx_highlight_terms')") is None


def test_a_finger_chooses_on_a_phone(browser: Browser, url: str) -> None:
    with visit(browser, url + OPEN, **PHONE, has_touch=True) as page:
        page.locator(".search-button__button:visible").first.tap()
        page.keyboard.type("rotary")
        options = options_of(page)
        expect(options.first).to_be_visible()
        for option in options.all():
            box = option.bounding_box()
            assert box is not None
            assert box["height"] >= 44
            assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE["viewport"]["width"]
        address = str(options.nth(1).get_attribute("href"))
        options.nth(1).tap()
        page.wait_for_url(f"**/{address.removeprefix('../')}")


def test_neither_the_page_nor_the_field_moves(browser: Browser, url: str) -> None:
    with opened(browser, url + OPEN) as (page, field):
        page.evaluate("scrollTo(0, 500)")
        before = [page.locator(part).evaluate(BOX) for part in ("article", "dialog form")]
        field.press_sequentially("rotation")
        expect(options_of(page).first).to_be_visible()
        page.evaluate(SETTLE)
        assert before == [page.locator(part).evaluate(BOX) for part in ("article", "dialog form")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_list_is_named_and_has_contrast(scheme: str, browser: Browser, url: str) -> None:
    with opened(browser, url + OPEN, **DESK | {"color_scheme": scheme}) as (page, field):
        field.press_sequentially("rotation")
        expect(options_of(page).first).to_be_visible()
        field.press("ArrowDown")
        page.evaluate(AXE)
        assert page.evaluate(FAULTS) == []


def test_with_forced_colours_the_choice_and_the_words_are_seen(browser: Browser, url: str) -> None:
    with opened(browser, url + OPEN, forced_colors="active") as (page, field):
        field.press_sequentially("rotation")
        first = options_of(page).first
        expect(first).to_be_visible()
        field.press("ArrowDown")
        expect(first).to_have_css("outline-style", "solid")
        expect(page.locator(".search-option .highlighted").first).to_have_css("font-weight", "600")


def test_where_the_index_does_not_come_the_form_still_leads_on(browser: Browser, url: str) -> None:
    with browser.new_page() as page:
        page.route("**/search_index.js*", lambda route: route.abort())
        page.goto(url + OPEN)
        page.keyboard.press("Control+k")
        expect(page.get_by_role("status")).to_contain_text("The search does not work here")
        page.keyboard.type("rotation")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=rotation")


def test_the_page_of_the_search_lists_while_typing(browser: Browser, url: str) -> None:
    with visit(browser, f"{url}search.html") as page:
        field = page.locator(".bd-search-container input")
        field.press_sequentially("rotate_ha")
        hits = page.locator("#search-results li a")
        expect(hits.first).to_have_attribute("href", re.compile(re.escape(MODEL)))
        field.fill("xyzzy")
        expect(page.get_by_role("status")).to_contain_text("Nothing was found")
        expect(hits).to_have_count(0)
