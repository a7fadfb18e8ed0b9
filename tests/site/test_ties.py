"""Text and figure are tied, by mouse, key, finger and voice; without scripts nothing is lost.

The pages are the tour and the chapters whose live figure shows the symbols of their formulas.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.site.browser import DESK, PHONE, visit
from website.built_site import SITE, parsed

# Each page with a kind of figure, a symbol that it shows, and one that then steps back.
TIED = {
    "tour": ("table", "x", "after"),
    "rotation": ("table", "x", "after"),
    "dot_product": ("similarity", "offset", "law"),
    "add_or_concatenate": ("subspaces", "words", "positions"),
    "rope": ("rope", "m", "n"),
}
PAGES = list(TIED)


IS_IN_THE_WINDOW = """copy => {
  const { top, bottom, left, right } = copy.getBoundingClientRect();
  return top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth;
}"""

OVERLAPS = """(copy, other) => {
  const [one, two] = [copy, other].map((element) => element.getBoundingClientRect());
  const across = one.left < two.right && two.left < one.right;
  return across && one.top < two.bottom && two.top < one.bottom;
}"""


def address(name: str) -> str:
    return (SITE / "book" / f"{name}.html").as_uri()


def alive(page: Page, kind: str) -> Locator:
    figure = page.locator(f'.live[data-figure="{kind}"]').first
    expect(figure).to_have_attribute("data-live", "")
    return figure


def expect_lit(page: Page, figure: Locator, part: str, other: str) -> None:
    """The part stands out in the picture, in the formulas, and the other one steps back."""
    expect(page.locator("html")).to_have_attribute("data-lit", part)
    picture = figure.locator(".live-picture:visible")
    expect(picture.locator(f".tie-{part}").first).to_have_css("opacity", "1")
    expect(picture.locator(f".tie-{other}:not(.tie-{part})").first).to_have_css("opacity", "0.25")
    term = page.locator(f"article mjx-container .tie-{part}").first
    expect(term).not_to_have_css("background-color", "rgba(0, 0, 0, 0)")


def expect_nothing_lit(page: Page) -> None:
    expect(page.locator("html")).not_to_have_attribute("data-lit", re.compile(""))


def symbol(page: Page, part: str) -> Locator:
    """The first symbol of the prose that shows without unfolding anything."""
    return page.locator(f"article mjx-container .tie-{part}").filter(visible=True).first


def far_symbol(page: Page, part: str) -> Locator:
    """The last symbol of the prose for a part, in the middle of a window without the figure."""
    last = page.locator(f"article mjx-math .tie-{part}").filter(visible=True).last
    last.evaluate('one => one.scrollIntoView({ block: "center" })')
    return last


def expect_copy(page: Page, beside: Locator) -> Locator:
    """A copy of a picture, within the window, for eyes alone and beside what asked for it."""
    copy = page.locator(".live-copy")
    expect(copy).to_be_visible()
    expect(copy).to_have_attribute("aria-hidden", "true")
    expect(copy.locator("[id], [tabindex], button, input")).to_have_count(0)
    assert copy.evaluate(IS_IN_THE_WINDOW)
    assert not copy.evaluate(OVERLAPS, beside.element_handle())
    return copy


def expect_lit_copy(page: Page, beside: Locator, part: str, other: str) -> Locator:
    copy = expect_copy(page, beside)
    expect(copy.locator(f".tie-{part}").first).to_have_css("opacity", "1")
    expect(copy.locator(f".tie-{other}:not(.tie-{part})").first).to_have_css("opacity", "0.25")
    return copy


# ---- What is asked of one visit: each begins with nothing lit, and ends so


def a_key_lights_a_term_which_says_what_it_is(page: Page, name: str) -> None:
    kind, part, other = TIED[name]
    figure = alive(page, kind)
    formula = figure.get_by_role("group", name="The formula with these numbers")
    term = formula.locator(f'button[data-light="{part}"]').first
    assert re.fullmatch(r".+: .{10,}", str(term.get_attribute("aria-label")))
    term.focus()
    expect_lit(page, figure, part, other)
    # As where the page scrolls under a mouse that rests.
    page.locator("article h1").dispatch_event("pointerover", {"bubbles": True})
    expect_lit(page, figure, part, other)
    page.keyboard.press("Escape")
    expect_nothing_lit(page)


def a_mouse_lights_a_symbol_and_its_part_from_either_side(page: Page, name: str) -> None:
    kind, part, other = TIED[name]
    figure = alive(page, kind)
    symbol(page, part).hover()
    expect_lit(page, figure, part, other)
    page.locator("article h1").hover()
    expect_nothing_lit(page)
    figure.locator(f".live-picture:visible .tie-{part}").first.dispatch_event(
        "pointerover", {"bubbles": True}
    )
    expect_lit(page, figure, part, other)
    page.locator("article h1").dispatch_event("pointerover", {"bubbles": True})
    expect_nothing_lit(page)


def a_finger_lights_a_symbol_until_it_touches_something_else(page: Page, name: str) -> None:
    kind, part, other = TIED[name]
    figure = alive(page, kind)
    symbol(page, part).tap()
    expect_lit(page, figure, part, other)
    page.locator("article h2").last.tap()
    expect_nothing_lit(page)


def every_symbol_has_a_term_for_the_keyboard(page: Page, name: str) -> None:
    parts = page.locator("article mjx-math .tie").evaluate_all(
        "all => [...new Set(all.map((one) => one.className.match(/tie-([a-z]+)/)[1]))]"
    )
    for part in parts:
        expect(page.locator(f'.live__formula button[data-light="{part}"]').first).to_be_visible()


def a_symbol_at_rest_is_underlined_in_the_colour_of_its_part(page: Page, name: str) -> None:
    kind, part, _ = TIED[name]
    picture = alive(page, kind).locator(".live-picture:visible")
    colour = picture.locator(f".tie-{part}").first.evaluate("one => getComputedStyle(one).color")
    line = symbol(page, part).evaluate(
        """one => {
          const { borderBottomStyle, borderBottomColor } = getComputedStyle(one, "::after");
          return [borderBottomStyle, borderBottomColor];
        }"""
    )
    assert line == ["dotted", colour]


def a_term_under_the_mouse_keeps_the_colour_of_text(page: Page, name: str) -> None:
    """Beside its own tint, the blue of other buttons is too faint."""
    kind, part, _ = TIED[name]
    formula = alive(page, kind).locator(".live__formula")
    term = formula.locator(f'button[data-light="{part}"]').first
    term.hover()
    ink = formula.evaluate("one => getComputedStyle(one).color")
    expect(term).to_have_css("color", ink)
    page.locator("article h1").hover()


def a_mouse_far_from_the_figure_brings_a_copy(page: Page, name: str) -> None:
    kind, part, other = TIED[name]
    alive(page, kind)
    far = far_symbol(page, part)
    far.hover()
    place = far.bounding_box()
    if page.locator("[data-face]").count():  # a figure stays beside the text, and is lit itself
        expect_lit(page, page.locator("[data-beside] > .live"), part, other)
        expect(page.locator(".live-copy")).to_have_count(0)
        page.mouse.move(0, 0)
        expect_nothing_lit(page)
        return
    copy = expect_lit_copy(page, far, part, other)
    assert far.bounding_box() == place  # what is read does not move
    page.mouse.move(0, 0)
    expect(copy).to_have_count(0)
    far.hover()
    expect(copy).to_be_visible()
    page.keyboard.press("Escape")
    expect(copy).to_have_count(0)
    page.mouse.move(0, 0)
    far.hover()
    expect(copy).to_be_visible()
    page.emulate_media(media="print")
    expect(copy).to_be_hidden()
    page.emulate_media(media="screen")
    page.mouse.move(0, 0)


def a_finger_far_from_the_figure_brings_a_copy(page: Page, name: str) -> None:
    kind, part, other = TIED[name]
    alive(page, kind)
    far = far_symbol(page, part)
    far.tap()
    copy = expect_lit_copy(page, far, part, other)
    place = copy.bounding_box()
    assert place
    assert place["width"] == page.evaluate("document.documentElement.clientWidth")
    assert place["height"] <= 0.4 * page.evaluate("innerHeight") + 1
    page.touchscreen.tap(3, 300)
    expect(copy).to_have_count(0)
    page.locator("article h2").last.tap()


def a_finger_goes_from_a_term_to_a_symbol(page: Page, name: str) -> None:
    kind, part, _ = TIED[name]
    figure = alive(page, kind)
    figure.locator(f'.live__formula button[data-light="{part}"]').first.tap()
    expect(page.locator("html")).to_have_attribute("data-lit", part)
    page.locator(f"article mjx-math .tie:not(.tie-{part})").filter(visible=True).first.tap()
    expect(page.locator("html")).to_have_attribute("data-lit", re.compile(f"^(?!{part}$)."))
    page.locator("article h2").last.tap()
    expect_nothing_lit(page)


def the_formula_and_the_voice_follow_the_state(page: Page, name: str) -> None:
    kind, *_ = TIED[name]
    figure = alive(page, kind)
    formula, says = figure.locator(".live__formula"), figure.locator(".live__says")
    before, said = formula.inner_text(), says.inner_text()
    figure.locator("input:enabled").last.press("ArrowRight")
    expect(formula).not_to_have_text(before)
    expect(says).not_to_have_text(said)
    expect(says).to_have_attribute("aria-live", "polite")


def a_phrase_of_the_prose_sets_the_figure(page: Page, name: str) -> None:
    """By a key, and by a finger where the page is touched. A phrase for what the figure shows
    already would prove nothing, so it is the first that asks for something else."""
    phrases = page.locator("span[data-state] > button").filter(visible=True)
    phrases.first.wait_for()
    for phrase in phrases.all():
        named, *pairs = str(phrase.locator("xpath=..").get_attribute("data-state")).split()
        figures = page.locator(f'#{named} .live, .live[data-figure="{named}"]')
        expect(figures.last).to_have_attribute("data-live", "")
        states = [set_to(figures, *pair.split("=")) for pair in pairs]
        if all(state.count() for state in states):
            continue
        phrase.tap() if page.evaluate("navigator.maxTouchPoints > 0") else phrase.press("Enter")
        for state in states:
            expect(state.first).to_be_visible()
        return
    pytest.fail("no phrase asks for what its figure does not show already")


def set_to(figures: Locator, key: str, value: str) -> Locator:
    """The sliders and the choices of these figures that are set to a value."""
    said = value.replace("-", "−")
    return figures.locator(
        f'input[data-key="{key}"][aria-valuetext^="{said}"], '
        f'[data-set="{key}"][data-value="{value}"][aria-pressed="true"]'
    )


def phrases_are_text_in_print(page: Page, name: str) -> None:
    page.locator("span[data-state] > button").filter(visible=True).first.wait_for()
    page.emulate_media(media="print")
    button = page.locator("span[data-state] > button").filter(visible=True).first
    expect(button).to_be_visible()
    expect(button).to_have_css("text-decoration-line", "none")
    paper = button.locator("xpath=..").evaluate("one => getComputedStyle(one).color")
    expect(button).to_have_css("color", paper)


AT_A_DESK = (
    a_key_lights_a_term_which_says_what_it_is,  # while no mouse is on the page
    a_mouse_lights_a_symbol_and_its_part_from_either_side,
    a_mouse_far_from_the_figure_brings_a_copy,
    a_symbol_at_rest_is_underlined_in_the_colour_of_its_part,
    a_term_under_the_mouse_keeps_the_colour_of_text,
    every_symbol_has_a_term_for_the_keyboard,
    a_phrase_of_the_prose_sets_the_figure,
    the_formula_and_the_voice_follow_the_state,
    phrases_are_text_in_print,
)
ON_A_PHONE = (
    a_finger_lights_a_symbol_until_it_touches_something_else,
    a_finger_far_from_the_figure_brings_a_copy,
    a_finger_goes_from_a_term_to_a_symbol,
    a_symbol_at_rest_is_underlined_in_the_colour_of_its_part,
    a_phrase_of_the_prose_sets_the_figure,
)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    ("setting", "checks"),
    [(DESK, AT_A_DESK), (PHONE | {"has_touch": True}, ON_A_PHONE)],
    ids=["desk", "phone"],
)
def test_text_and_figure_are_tied(
    browser: Browser,
    name: str,
    setting: dict[str, Any],
    checks: tuple[Callable[[Page, str], None], ...],
    subtests: pytest.Subtests,
) -> None:
    with visit(browser, address(name), **setting) as page:
        for check in checks:
            with subtests.test(check.__name__):
                check(page, name)


@pytest.mark.parametrize("name", PAGES)
def test_without_scripts_phrases_are_text_and_formulas_whole(browser: Browser, name: str) -> None:
    phrases = parsed(SITE / "book" / f"{name}.html").select("article span[data-state]")
    assert phrases
    with browser.new_page(java_script_enabled=False, **DESK) as page:
        page.goto(address(name))
        shown = page.locator("article span[data-state]").filter(visible=True)
        assert shown.count() == len(phrases)
        expect(page.locator(".live__formula").first).to_be_visible()
        terms = page.locator(".live__formula button")
        assert terms.evaluate_all("all => all.every((term) => term.disabled)")  # they do nothing
        assert terms.count()


@pytest.mark.parametrize("setting", [DESK, PHONE | {"has_touch": True}], ids=["desk", "phone"])
def test_a_phrase_far_from_its_figure_brings_a_copy(
    browser: Browser, setting: dict[str, Any]
) -> None:
    """The reader stays at the phrase, and the copy stays until the reader has had enough of it."""
    with visit(browser, address("dot_product"), **setting) as page:
        figure = alive(page, "similarity")
        phrase = page.get_by_role("button", name="160", exact=True)
        phrase.evaluate('one => one.scrollIntoView({ block: "center" })')
        before = page.evaluate("scrollY")
        is_touched = page.evaluate("navigator.maxTouchPoints > 0")
        phrase.tap() if is_touched else phrase.click()
        expect(figure.locator(".live__says")).to_contain_text("At offset 160")
        copy = expect_copy(page, phrase)
        expect(copy).to_contain_text("K(160)")
        assert page.evaluate("scrollY") == before
        if is_touched:
            page.touchscreen.tap(3, 300)
        else:
            page.mouse.move(0, 0)
            expect(copy).to_be_visible()
            page.keyboard.press("Escape")
        expect(copy).to_have_count(0)
        phrase.press("Enter")
        expect(copy).to_be_visible()
        figure.scroll_into_view_if_needed()
        expect(copy).to_have_count(0)


def test_a_phrase_need_not_wait_until_the_page_has_loaded(browser: Browser, url: str) -> None:
    """Figures come to life once it has. One that a phrase asks for comes at once."""
    with browser.new_page(**DESK) as page:
        page.route("**/logo.svg", lambda _: None)  # a picture that never comes
        page.goto(f"{url}book/dot_product.html", wait_until="domcontentloaded")
        page.get_by_role("button", name="160", exact=True).press("Enter")
        figure = page.locator('.live[data-figure="similarity"]').first
        expect(figure.locator(".live__says")).to_contain_text("At offset 160")
        assert page.evaluate("document.readyState") == "interactive"
        assert page.locator(".live[data-live]").count() == 1


def centre(one: Locator) -> tuple[float, float]:
    one.evaluate('one => one.scrollIntoView({ block: "center" })')
    place = one.bounding_box()
    assert place
    return place["x"] + place["width"] / 2, place["y"] + place["height"] / 2


def test_what_a_mouse_holds_stays_lit(browser: Browser) -> None:
    with visit(browser, address("rotation"), **DESK) as page:
        figure, root = alive(page, "clock"), page.locator("html")
        x, y = centre(figure.locator(".live-picture--wide .tie-x .tip").nth(1))
        page.mouse.move(x, y)
        page.mouse.down()
        for by in (0, 10, 200):
            page.mouse.move(x + by, y + by)
            expect(root).to_have_attribute("data-lit", "x")
            expect(figure.locator(".live-picture--wide .tie-x").first).to_have_css("opacity", "1")
        page.mouse.up()
        page.mouse.move(0, 0)
        expect_nothing_lit(page)
        x, y = centre(figure.locator('input[data-key="step"]'))
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 30, y + 100)
        expect(root).to_have_attribute("data-lit", "step")
        page.mouse.up()
        page.mouse.move(0, 0)
        expect_nothing_lit(page)


def test_a_hand_that_a_finger_has_tapped_is_lit(browser: Browser) -> None:
    with visit(browser, address("rotation"), **PHONE, has_touch=True) as page:
        figure = alive(page, "clock")
        hand = figure.locator(".live-picture--narrow .tie-x .tip").nth(1)
        page.touchscreen.tap(*centre(hand))
        expect_lit(page, figure, "x", "after")
        page.locator("article h2").last.tap()
        expect_nothing_lit(page)
