"""Figures and sliders: small, self-contained, described, and the same every time."""

import re
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from pe_lib.book import plots, widgets

IMAGE, VIEW = "image/svg+xml", "application/vnd.jupyter.widget-view+json"


def draw(turn: float) -> Figure:
    figure, (left, right) = plots.small_multiples(2, columns=2, height=2)
    plots.clock(left, turn, label=r"$\omega_i$")
    right.plot([0, 1], [turn, 1.0], "o-", label="a < b & c")
    right.legend()
    return figure


def test_svg_is_one_described_element() -> None:
    plt.close("all")  # what other tests left open
    svg = ElementTree.fromstring(plots.to_svg(draw(1), 'Two "clocks" & a line'))
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == 'Two "clocks" & a line'
    assert plt.get_fignums() == []


def test_svg_keeps_its_text() -> None:
    svg = plots.to_svg(draw(1), "text")
    assert "a &lt; b &amp; c" in svg
    assert "ω" in svg


def test_svg_is_the_same_every_time() -> None:
    plots.use_style()
    assert plots.to_svg(draw(1), "same") == plots.to_svg(draw(1), "same")


def test_names_are_the_figures_own_and_all_are_used() -> None:
    first, second = plots.to_svg(draw(1), "first"), plots.to_svg(draw(2), "second")
    names = set(re.findall(r' id="([^"]+)"', first))
    referred = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', first))
    assert names == {name for pair in referred for name in pair if name}
    assert names.isdisjoint(re.findall(r' id="([^"]+)"', second))


def test_style_does_not_leave_the_figure() -> None:
    assert "<style" not in plots.to_svg(draw(1), "style")


def test_slider_shows_its_first_frame_beside_the_live_view() -> None:
    slider = widgets.frame_slider(draw, [1, 2, 3], label="turn", describe=str, start=1)
    bundle = slider._repr_mimebundle_()
    assert bundle["text/plain"] == "Slider: turn, 3 frames"
    assert bundle[VIEW]["model_id"] == slider.model_id
    assert 'aria-label="2"' in bundle[IMAGE]


def test_two_sliders_choose_among_all_pairs() -> None:
    slider = widgets.frame_slider_2d(
        lambda x, y: draw(x * y),
        ([1, 2], [3, 4, 5]),
        labels=("x", "y"),
        describe=lambda x, y: f"{x} and {y}",
        start=(1, 2),
    )
    first, second, outer = slider.children
    assert [first.description, second.description] == ["x", "y"]
    assert outer.selected_index == 1
    assert [inner.selected_index for inner in outer.children] == [2, 2]
    assert [len(inner.children) for inner in outer.children] == [3, 3]
    assert 'aria-label="2 and 5"' in slider._repr_mimebundle_()[IMAGE]


@pytest.mark.parametrize("count", [0, widgets.MOST_FRAMES_OF_ONE_SLIDER + 1])
def test_slider_has_neither_no_frame_nor_too_many(count: int) -> None:
    with pytest.raises(ValueError, match=f"from 1 to 40 frames, got {count}"):
        widgets.frame_slider(draw, range(count), label="turn", describe=str)
