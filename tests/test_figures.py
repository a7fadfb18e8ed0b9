"""Figures, still and live: small, self-contained, described, and the same every time."""

import gzip
import re
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from pe_lib.book import live, plots

IMAGE, VIEW = "image/svg+xml", "application/vnd.jupyter.widget-view+json"


def draw(turn: float) -> Figure:
    figure, (left, right) = plots.small_multiples(2, columns=2, height=2)
    plots.clock(left, turn, label=r"$\omega_i$")
    right.plot([0, 1], [turn, 1.0], "o-", label="a < b & c")
    right.legend()
    return figure


def test_svg_is_one_described_element_that_keeps_its_text() -> None:
    plt.close("all")  # what other tests left open
    text = plots.to_svg(draw(1), 'Two "clocks" & a line')
    svg = ElementTree.fromstring(text)
    assert (svg.get("role"), svg.get("aria-label")) == ("img", 'Two "clocks" & a line')
    assert "a &lt; b &amp; c" in text
    assert "ω" in text
    assert "<style" not in text, "it would reach out of the figure"
    assert plt.get_fignums() == []


def test_svg_is_the_same_every_time_and_its_names_are_its_own() -> None:
    plots.use_style()
    first, second = plots.to_svg(draw(1), "first"), plots.to_svg(draw(2), "second")
    assert first == plots.to_svg(draw(1), "first")
    names = set(re.findall(r' id="([^"]+)"', first))
    referred = set(re.findall(r'(?:url\(|href=")#([^")]+)', first))
    assert names == referred
    assert names.isdisjoint(re.findall(r' id="([^"]+)"', second))


def test_a_live_figure_carries_its_still_and_its_scripts() -> None:
    figure = live.clock(7, step=1, question="Which hand?")
    bundle, _ = figure._repr_mimebundle_()
    assert bundle["text/plain"] == "Live figure: clock(x=7, step=1)"
    assert bundle[VIEW]["model_id"] == figure.model_id
    still = ElementTree.fromstring(bundle[IMAGE])
    assert still.get("role") == "img"
    assert "Live in JupyterLab with anywidget" in bundle[IMAGE]
    assert "var(" not in bundle[IMAGE]
    assert figure._esm.endswith("export default { render: peLive.render };\n")


def test_scripts_are_small() -> None:
    texts = [path.read_bytes() for path in live.FOLDER.glob("*.js")]
    assert all(len(gzip.compress(text)) <= 6_000 for text in texts)
    assert len(gzip.compress(b"".join(texts))) <= 20_000


def test_frames_begin_with_the_frame_asked_for() -> None:
    one = live.frames(draw, [1, 2, 3], label="turn", describe=str, start=1)
    bundle, _ = one._repr_mimebundle_()
    assert bundle["text/plain"] == "Live figure: turn, 3 frames"
    assert 'aria-label="2"' in bundle[IMAGE]
    pairs = live.frames2(
        lambda x, y: draw(x * y),
        ([1, 2], [3, 4, 5]),
        labels=("x", "y"),
        describe="{} and {}".format,
        start=(1, 2),
    )
    assert len(pairs.data["frames"]) == 6
    assert 'aria-label="2 and 5"' in pairs._repr_mimebundle_()[0][IMAGE]


def test_what_no_figure_can_show_is_refused() -> None:
    for count in (0, live.MOST_FRAMES_OF_ONE + 1):
        with pytest.raises(ValueError, match=f"from 1 to 40 frames, got {count}"):
            live.frames(draw, range(count), label="turn", describe=str)
    with pytest.raises(ValueError, match="decay must be finite, got nan"):
        live.orbit(float("nan"))


def test_text_of_a_page_stays_text() -> None:
    box = live.box("clock", 'Is <b> "bold"?', {"x": 3, "step": 2}, {})
    assert "Is &lt;b&gt; &quot;bold&quot;?" in box
    data = {
        "controls": [{"label": "<i>", "shown": ["</script>"], "buttons": True}],
        "frames": ["<svg/>"],
    }
    held = live.box("frames", "", {"frame": 0}, data)
    assert held.count("</script>") == 1
    assert "<i>" not in held.partition("<script")[0]
