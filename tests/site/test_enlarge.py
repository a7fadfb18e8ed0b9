"""A still figure that is pressed is shown whole above its caption, then larger, and goes again."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.site.browser import DESK, PHONE, visit
from website.built_site import SITE

STILL = "#fig-tour-ring"


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The tour at a desk and on a phone."""
    setting: dict[str, Any] = request.param
    with visit(browser, (SITE / "book/tour.html").as_uri(), **setting) as page:
        yield page


def opened(page: Page) -> Locator:
    """The box of the figure, by a press of it."""
    page.locator(f"{STILL} .enlarges:visible").click()
    box = page.get_by_role("dialog", name="Figure, enlarged")
    expect(box).to_be_visible()
    return box


def width_of(picture: Locator) -> float:
    width: float = picture.evaluate("one => one.getBoundingClientRect().width")
    return width


def test_a_figure_is_shown_whole_with_its_caption(page: Page) -> None:
    box = opened(page)
    expect(box.locator("img")).to_be_in_viewport(ratio=1)
    expect(box.locator("figcaption")).to_be_in_viewport(ratio=1)
    expect(box.locator("figcaption")).to_contain_text("Fig. 9")


def test_a_second_press_makes_it_larger_and_a_third_shows_it_whole(page: Page) -> None:
    box = opened(page)
    picture = box.locator("img")
    whole = width_of(picture)
    picture.click(position={"x": 5, "y": 5})
    assert width_of(picture) == pytest.approx(2 * whole, rel=0.01)
    expect(box.locator("figcaption")).to_be_in_viewport(ratio=1)
    box.get_by_role("button", name="Smaller").click()
    expect(picture).to_be_in_viewport(ratio=1)
    expect(box.get_by_role("button", name="Larger")).to_be_visible()


def test_it_goes_by_key_by_button_and_by_the_ground_and_gives_focus_back(page: Page) -> None:
    def by_the_ground(box: Locator) -> None:
        place = box.locator("img").locator("xpath=..")
        place.click(position={"x": 1, "y": 1})

    for leave in (
        lambda box: page.keyboard.press("Escape"),
        lambda box: box.get_by_role("button", name="Close").click(),
        by_the_ground,
    ):
        box = opened(page)
        leave(box)
        expect(page.locator("dialog[open]")).to_have_count(0)
        expect(page.locator(f"{STILL} .enlarges:visible")).to_be_focused()
