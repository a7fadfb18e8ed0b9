"""Contents, outline and search, by finger, by mouse and by key."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from site_under_test import Setting, Visit, visit

CHAPTER = "book/06_add_or_concatenate.html"


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
    page.locator("dialog[open] a[href$='05_dot_product.html']").first.tap()
    page.wait_for_url("**/05_dot_product.html")


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


def ask(page: Page) -> None:
    page.keyboard.type("resistors")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=resistors")
    result = page.locator("#search-results li", has=page.locator("a[href*='06_add_or']")).first
    expect(result.locator(".context")).to_contain_text("resistors")
    quoted = page.locator("#search-results").inner_text()
    assert "\\" not in quoted, "a formula that is not typeset"
    assert ".ipynb" not in quoted, "the names of buttons"


def test_the_keyboard_opens_the_search(at_a_desk: Visit) -> None:
    at_a_desk.page.keyboard.press("Control+k")
    ask(at_a_desk.page)


def test_a_click_opens_the_search(at_a_desk: Visit) -> None:
    at_a_desk.page.locator("button.search-button-field:visible").click()
    ask(at_a_desk.page)


def test_a_page_without_scripts_has_the_colours_of_the_light_one(
    browser: Browser, url: str
) -> None:
    with visit(browser, url + CHAPTER, Setting("dark", 390), java_script_enabled=False) as seen:
        theorem = seen.page.locator(".admonition.theorem").first
        expect(theorem).to_have_css("background-color", "rgb(238, 245, 250)")
        expect(seen.page.locator("noscript > p")).to_be_visible()
        expect(seen.page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
