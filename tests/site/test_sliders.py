"""Every slider moves its picture: with keys, mouse and finger, from a server and from a folder."""

import json

import pytest
from playwright.sync_api import Browser, Locator, Mouse
from site_under_test import PAGES, ROOT, SITE, Setting, Visit, visit

VISIBLE_PICTURES = """figure => {
  const pictures = [...figure.querySelectorAll("svg, img")];
  return pictures.filter((one) => one.checkVisibility()).map((one) => one.outerHTML);
}"""


def sliders_of(name: str) -> int:
    """How many figures with sliders the page's notebook shows."""
    source = (ROOT / name).with_suffix(".ipynb")
    if not source.exists():
        return 0
    cells = json.loads(source.read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return sum(
        "".join(output.get("data", {}).get("text/plain", "")).startswith("Slider")
        for output in outputs
    )


PAGES_WITH_SLIDERS = [name for name in PAGES if sliders_of(name)]

every_slider_page = pytest.mark.parametrize("name", PAGES_WITH_SLIDERS)


def figures_of(seen: Visit, name: str) -> list[Locator]:
    """The figures with sliders of a page: as many as its notebook has, and each of them alive."""
    figures = seen.page.locator(".live-figure").all()
    assert len(figures) == sliders_of(name)
    assert seen.page.locator(".live-figure:not([data-live])").count() == 0, "a dead slider"
    return figures


def frame(figure: Locator) -> str:
    """The source of the one picture that a figure shows."""
    shown: list[str] = figure.evaluate(VISIBLE_PICTURES)
    assert len(shown) == 1, "a figure must show one frame, and nothing else"
    return shown[0]


def press(slider: Locator) -> None:
    """A step to the right, or to the left at the right end."""
    handle = slider.locator(".noUi-handle")
    last = handle.get_attribute("aria-valuenow") == handle.get_attribute("aria-valuemax")
    handle.press("ArrowLeft" if last else "ArrowRight")


def assert_moved(figure: Locator, before: str, complaint: str) -> None:
    """The figure shows another frame, at once or as soon as a busy machine has drawn it."""
    for _ in range(100):
        if frame(figure) != before:
            return
        figure.page.wait_for_timeout(50)
    raise AssertionError(complaint)


def place_on(slider: Locator, part: float) -> tuple[float, float]:
    track = slider.locator(".noUi-base")
    track.scroll_into_view_if_needed()
    box = track.bounding_box()
    assert box is not None
    return box["x"] + part * box["width"], box["y"] + box["height"] / 2


def test_there_are_sliders() -> None:
    assert PAGES_WITH_SLIDERS


def settle(slider: Locator) -> None:
    """Wait while the handle glides to where it was sent; it takes no orders meanwhile."""
    slider.locator(".noUi-state-tap").wait_for(state="detached")


def drag(mouse: Mouse, slider: Locator) -> None:
    """Take the handle where it stands, near the left end, and pull it to the middle."""
    slider.locator(".noUi-handle").hover()  # waits until the handle stands still
    mouse.down()
    mouse.move(*place_on(slider, 0.6), steps=4)
    mouse.up()


def move(seen: Visit, figure: Locator) -> None:
    """Move each slider of a figure by key and by mouse, and look at the picture each time."""
    for slider in figure.locator(".widget-slider").all():
        before = frame(figure)
        press(slider)
        assert_moved(figure, before, "a key did not move the picture")
        for away, part in (("Home", 0.97), ("End", 0.03)):
            slider.locator(".noUi-handle").press(away)
            before = frame(figure)
            seen.page.mouse.click(*place_on(slider, part))
            settle(slider)
            assert_moved(figure, before, "a click did not move the picture")
        before = frame(figure)
        drag(seen.page.mouse, slider)
        assert_moved(figure, before, "the mouse did not drag the picture along")


@every_slider_page
@pytest.mark.parametrize("origin", ["http", "file"])
def test_every_slider_moves_its_picture(browser: Browser, url: str, name: str, origin: str) -> None:
    address = url + name if origin == "http" else (SITE / name).as_uri()
    with visit(browser, address) as seen:
        figures = figures_of(seen, name)
        for figure in figures:
            move(seen, figure)
        for figure in figures:
            check_handles(figure)
        seen.page.emulate_media(media="print")
        for figure in figures:
            frame(figure)
            assert not figure.locator(".widget-slider").first.is_visible()
        assert seen.foreign == []
        assert seen.complaints == []


def check_handles(figure: Locator) -> None:
    """Each handle has the name and the value that stand beside it, and shows its focus."""
    for slider in figure.locator(".widget-slider").all():
        handle, readout = slider.locator(".noUi-handle"), slider.locator(".widget-readout")
        label = slider.locator(".widget-label").inner_text()
        assert label
        assert handle.get_attribute("aria-label") == label
        for _ in range(2):
            assert handle.get_attribute("aria-valuetext") == readout.inner_text()
            press(slider)
        outline = handle.evaluate("e => getComputedStyle(e).outlineStyle")
        assert outline == "solid", "focus cannot be seen"


@every_slider_page
def test_a_finger_moves_the_picture(browser: Browser, url: str, name: str) -> None:
    with visit(browser, url + name, Setting("light", 390), has_touch=True) as seen:
        for figure in figures_of(seen, name):
            slider = figure.locator(".widget-slider").first
            slider.locator(".noUi-handle").press("End")
            before = frame(figure)
            seen.page.touchscreen.tap(*place_on(slider, 0.03))
            settle(slider)
            assert_moved(figure, before, "a finger did not move the picture")


@every_slider_page
def test_first_frame_stands_without_scripts(browser: Browser, url: str, name: str) -> None:
    with visit(browser, url + name, java_script_enabled=False) as seen:
        stills = seen.page.locator(".live-figure__still img").all()
        assert len(stills) == sliders_of(name)
        for still in stills:
            assert still.is_visible()
            assert len(still.get_attribute("alt") or "") > 10
            source = str(still.get_attribute("src"))
            assert "<svg" in (SITE / name).parent.joinpath(source).read_text()
