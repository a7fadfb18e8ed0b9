"""Figures, still and live: small, self-contained, described, and the same every time."""

import base64
import doctest
import gzip
import inspect
import io
import itertools
import json
import re
import shutil
from base64 import b64decode
from pathlib import Path
from textwrap import dedent
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from bs4 import BeautifulSoup
from ipywidgets import IntSlider, link
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont
from matplotlib.text import Text
from PIL import Image
from py_mini_racer import MiniRacer
from traitlets import TraitError

from pe_book import live, plots
from pe_book.dark import (
    CONTRAST_OF_TEXT,
    DARK_DIVERGING,
    DIVERGING,
    GROUND,
    HREF,
    contrast,
    dark_colour,
    dark_drawing,
    dark_pixels,
    hex_of,
    luminance,
)
from pe_book.live import still
from pe_book.live.data import make
from pe_book.live.figure import LiveFigure, kind
from pe_book.live.frames import MOST_FRAMES_OF_ONE
from website.extensions.live_figures import without_comments

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = re.compile(r'peLive\.keep\("\w+", (.*)\);')
PARTS_OF_THE_KIT = {*still.KIT, "ties", "margin", "beside", "sentence"}
IMAGE, VIEW = "image/svg+xml", "application/vnd.jupyter.widget-view+json"


def draw(turn: float) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(4.6, 2))
    plots.clock(left, turn, label=r"$\omega_i$")
    right.plot([0, 1], [turn, 1.0], "o-", label="a < b & c")
    right.legend()
    return figure


def draw_two(turn: float, times: float) -> Figure:
    return draw(turn * times)


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
    assert ElementTree.fromstring(bundle[IMAGE]).get("role") == "img"
    assert "Live in JupyterLab with anywidget" in bundle[IMAGE]
    assert "var(" not in bundle[IMAGE]
    assert figure._esm.endswith("export default { render: peLive.render };\n")


ROLES = {
    "position": plots.POSITION,
    "after-step": plots.AFTER_STEP,
    "step": plots.STEP,
    "word": plots.WORD,
    "error": plots.ERROR,
    "grey": plots.GREY,
}


def test_a_colour_has_one_role_in_still_and_live_figures() -> None:
    """kit.css names each colour three times: in light, in dark, and in a still without the page."""
    sheet = (live.FOLDER / "kit.css").read_text(encoding="utf-8")
    for role, colour in ROLES.items():
        declared = re.findall(rf"--live-{role}: (#\w+);", sheet)
        assert declared == [colour.lower(), dark_colour(colour)], role
        alone = re.findall(rf"color: var\(--live-{role}, (#\w+)\)", sheet)
        assert set(alone) == {colour.lower()}, role
    scripts = "".join(path.read_text(encoding="utf-8") for path in live.FOLDER.glob("*.js"))
    used = set(re.findall(r"\bis-([a-z-]+)", scripts))
    assert used <= {*ROLES, "plain", "before"}


def dark_heat_map(values: list[float], colours: str) -> tuple[dict[str, str], list[str]]:
    """The named parts of a heat map of one row on a dark page, and the colours of its cells."""
    figure, ax = plt.subplots(figsize=(len(values), 1))  # inches: a number fits into its cell
    ax.imshow([values], cmap=colours, vmin=-1, vmax=1)
    plots.annotate_cells(ax, [values])
    plots.outline(ax, 0, 0)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    plt.close(figure)
    svg = ElementTree.fromstring(dark_drawing(buffer.getvalue()))
    parts = {
        part.get("id", ""): ElementTree.tostring(part, encoding="unicode") for part in svg.iter()
    }
    (image,) = svg.iter(f"{{{plots.SVG}}}image")
    with Image.open(io.BytesIO(base64.b64decode(image.get(HREF, "").partition(",")[2]))) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    _, width, _ = pixels.shape
    middles = (np.arange(len(values)) + 0.5) * width / len(values)
    cells = [hex_of(*(pixels[0, int(middle)] / 255)) for middle in middles]
    return parts, cells


VALUES = [-1.0, -0.4, -0.1, 0.0, 0.1, 0.4, 1.0]


@pytest.mark.parametrize("colours", [DIVERGING, plots.SEQUENTIAL])
def test_numbers_on_a_heat_map_can_be_read_on_a_dark_page(colours: str) -> None:
    """Black has no attribute in an SVG, so it must not inherit what the page makes of it."""
    parts, cells = dark_heat_map(VALUES, colours)
    for column, cell in enumerate(cells):
        inks = re.findall(r"fill: (#\w+)", parts[f"as-drawn-0-{column}"])
        assert contrast(inks[-1], cell) >= CONTRAST_OF_TEXT, VALUES[column]
    assert "stroke: #000000" in parts["as-drawn-outline-black-0-0"]


def test_a_heat_map_is_darkest_at_its_zero_on_a_dark_page() -> None:
    _, cells = dark_heat_map(VALUES, DIVERGING)
    zero = VALUES.index(0)
    assert contrast(cells[zero], GROUND) < 1.1
    light = [luminance(cell) for cell in cells]
    assert light[: zero + 1] == sorted(light[: zero + 1], reverse=True)
    assert light[zero:] == sorted(light[zero:])
    assert all(contrast(cell, GROUND) > CONTRAST_OF_TEXT for cell in (cells[0], cells[-1]))


def test_a_picture_in_other_colours_stays_on_a_dark_page() -> None:
    light = np.array([[[0, 34, 78, 255], [254, 232, 56, 255]]], dtype=np.uint8)
    assert dark_pixels(light) is light


def test_live_cells_and_still_heat_maps_have_the_same_colours_on_a_dark_page() -> None:
    sheet = (live.FOLDER / "kit.css").read_text(encoding="utf-8")
    declared = [re.findall(rf"--live-{sign}: (#\w+);", sheet)[1] for sign in ("minus", "plus")]
    assert set(declared) <= set(DARK_DIVERGING.values())


def test_letters_of_stills_can_be_read_on_a_phone_and_fill_the_column() -> None:
    """A page shows each drawing enlarged, and a phone, whose column has 358 px, smaller again."""
    with mpl.rc_context():
        plots.use_style()
        figure, ax = plt.subplots(figsize=(4.6, 3))
        ax.set(xlabel="x", ylabel="y", title="title")
        ax.plot([0, 1], label="line")
        ax.legend()
        figure.canvas.draw()
        found = [part for part in figure.findobj(Text) if isinstance(part, Text)]
        texts = [text for text in found if text.get_text()]
        assert len(texts) > 8
        width = figure.get_figwidth() * 96 * plots.ENLARGED
        points = min(float(text.get_fontsize()) for text in texts)
        names = {Path(findfont(text.get_fontproperties())).stem for text in texts}
        plt.close(figure)
    assert width == pytest.approx(plots.COLUMN)
    assert points / 72 * 96 * plots.ENLARGED * 358 / plots.COLUMN >= 11.5
    assert names == {"SourceSerif4-Regular", "SourceSerif4-Semibold"}


def test_the_sequential_map_grows_lighter_and_is_that_of_live_figures() -> None:
    shades = [
        luminance(hex_of(*colour[:3])) for colour in mpl.colormaps[plots.SEQUENTIAL](range(256))
    ]
    assert all(one < other for one, other in itertools.pairwise(shades[::5]))
    script = (live.FOLDER / "orbit.js").read_text(encoding="utf-8")
    (written,) = re.findall(r"SHADES_OF = (\[.*\]);", script)
    assert [hex_of(*(part / 255 for part in one)) for one in json.loads(written)] == list(
        plots.VIOLET_ORANGE
    )


def test_scripts_are_small() -> None:
    """What a page with one figure loads, of the 300 kB of a first view: each script by itself."""
    sizes = {path.stem: size_as_sent(path) for path in live.FOLDER.glob("*.js")}
    on_every_page = sum(sizes.pop(name) for name in ("draw", "light", "kit", "ties"))
    assert len(sizes) >= 7
    of_kinds = [
        sum(sizes[name] for name in still.files_of(kind) if name in sizes) for kind in live.KINDS
    ]
    assert on_every_page + max(*of_kinds, *sizes.values()) <= 15_000
    data = [size_as_sent(path) for path in live.FOLDER.glob("data/*.js")]
    assert len(data) >= 2
    assert max(data) <= 45_000


def size_as_sent(script: Path) -> int:
    return len(gzip.compress(without_comments(script.read_text(encoding="utf-8")).encode()))


@pytest.mark.parametrize("name", sorted(set(live.KINDS) - {"frames"}))
def test_a_script_without_its_comments_draws_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = getattr(live, name)()
    drawn = still.content_of_box(name, figure.state, {})
    with MiniRacer() as racer:
        racer.eval(still.WITHOUT_A_PAGE + without_comments(still.scripts(name)))
        monkeypatch.setattr(still, "engine", lambda: racer)
        assert still.content_of_box(name, figure.state, {}) == drawn


def test_the_data_of_live_figures_are_those_of_the_extract() -> None:
    """Numbers that a processor rounds otherwise may differ by one step of their rounding."""
    for name, text in make.files().items():
        stored = (live.FOLDER / "data" / name).read_text(encoding="utf-8")
        assert text.splitlines()[:2] == stored.splitlines()[:2]
        fresh, kept = (json.loads(DATA.findall(one)[0]) for one in (text, stored))
        assert fresh.keys() == kept.keys()
        for key, value in fresh.items():
            if isinstance(value, dict):
                np.testing.assert_allclose(value["scales"], kept[key]["scales"], rtol=1e-5)
                numbers, others = (
                    np.frombuffer(b64decode(one["numbers"]), "<i2").astype(int)
                    for one in (value, kept[key])
                )
                assert np.abs(numbers - others).max() <= (0 if name == "companion.js" else 1), key
            elif isinstance(value, list) and isinstance(value[0], float):
                np.testing.assert_allclose(value, kept[key], rtol=1e-5)
            else:
                assert value == kept[key]


def test_frames_begin_with_the_frame_asked_for() -> None:
    one = live.frames(draw, [1, 2, 3], label="turn", describe=str, start=1)
    bundle, _ = one._repr_mimebundle_()
    assert bundle["text/plain"] == "Live figure: turn, 3 frames"
    assert 'aria-label="2"' in bundle[IMAGE]
    pairs = live.frames2(
        draw_two,
        ([1, 2], [3, 4, 5]),
        labels=("x", "y"),
        describe="{} and {}".format,
        start=(1, 2),
    )
    assert len(pairs.data["frames"]) == 6
    assert 'aria-label="2 and 5"' in pairs._repr_mimebundle_()[0][IMAGE]


def test_what_no_figure_can_show_is_refused() -> None:
    for count in (0, MOST_FRAMES_OF_ONE + 1):
        with pytest.raises(ValueError, match=f"from 1 to 40 frames, got {count}"):
            live.frames(draw, range(count), label="turn", describe=str)
    two: dict[str, Any] = {"labels": ("x", "y"), "describe": "{} and {}".format}
    with pytest.raises(ValueError, match="from 1 to 100 frames, got 110"):
        live.frames2(draw_two, (range(10), range(11)), **two)
    for start in (-1, 3):
        with pytest.raises(ValueError, match=f"index from 0 to 2, got {start}"):
            live.frames(draw, [1, 2, 3], label="turn", describe=str, start=start)
        for both in ((start, 0), (0, start)):
            with pytest.raises(ValueError, match=f"index from 0 to 2, got {start}"):
                live.frames2(draw_two, ([1, 2, 3], [4, 5, 6]), start=both, **two)
    bad: list[Any] = [float("nan"), "fast", True]
    for value in bad:
        with pytest.raises(TraitError, match=r"'decay' trait of an Orbit .* a finite real number"):
            live.orbit(value)
    for order in ("01234566", "012345678", "0123456x"):
        with pytest.raises(TraitError, match=r"'tags' trait of an Exchange .* fits"):
            live.exchange(order)
    with pytest.raises(TraitError, match="'transposed' trait of a Table"):
        live.table(transposed="2" * 8)
    figure = live.clock()
    with pytest.raises(TraitError, match="'block' trait"):
        figure.block = "sideways"


def test_python_reads_sets_and_follows_the_controls() -> None:
    """What `ipywidgets` builds on: traits that are synchronised, observed and linked."""
    first, second = live.clock(3, step=2), live.clock(7, step=1)
    assert {"x", "step", "block"} <= set(first.keys)
    seen: list[int] = []
    first.observe(lambda change: seen.append(change["new"]), "x")
    link((first, "x"), (second, "x"))
    slider = IntSlider(max=30)
    link((slider, "value"), (first, "x"))
    second.x = 11
    assert (first.x, slider.value, seen) == (11, 11, [0, 11])
    assert first.state == {"x": 11, "step": 2, "block": "T"}


@pytest.mark.parametrize("name", sorted(set(live.KINDS) - {"frames"}))
def test_every_kind_draws_its_still(name: str) -> None:
    check_still(getattr(live, name)())


def check_still(figure: LiveFigure) -> None:
    """A script that draws nothing, or at places that are no numbers, raises no error by itself."""
    svg = figure._repr_mimebundle_()[0][IMAGE]
    of_every_still = still.with_note('<svg viewBox="0 0 9 9" width="9" height="9"></svg>')
    assert count_elements(svg) > count_elements(of_every_still)
    assert not re.search("NaN|Infinity|undefined", svg)


def count_elements(svg: str) -> int:
    return len(list(ElementTree.fromstring(svg).iter()))


def test_the_example_in_contributing_draws_its_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who adds a live figure begins with this script and this line, so both must pass."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    script, code = (
        dedent(re.findall(f"^ +```{language}$\n(.*?)^ +```$", text, re.MULTILINE | re.DOTALL)[0])
        for language in ("js", "python")
    )
    shutil.copytree(live.FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "hand.js").write_text(script, encoding="utf-8")
    monkeypatch.setattr(still, "FOLDER", tmp_path)
    names: dict[str, Any] = {"kind": kind}
    exec(code, names)
    hand = names["hand"]
    assert repr(hand(5)) == "Live figure: hand(x=5)"
    assert "One hand of a clock, and the sine" in hand.__doc__
    assert hand().state == {"x": 3}
    check_still(hand())
    del live.KINDS["hand"]


def test_contributing_names_every_field_that_a_figure_may_define() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, _, fields = text.partition("\n## Add a live figure\n")
    named = set(re.findall(r"`(\w+)", fields.partition("\n## ")[0]))
    used = set(re.findall(r"\bspec\.(\w+)", (live.FOLDER / "kit.js").read_text(encoding="utf-8")))
    assert len(used) > 8
    assert used - named == set()


def test_a_still_is_drawn_at_the_state_of_the_controls() -> None:
    figure = live.clock(3, step=2)
    before = figure._repr_mimebundle_()[0][IMAGE]
    figure.x = 4
    after = figure._repr_mimebundle_()[0][IMAGE]
    assert "PE(3)" in before
    assert "PE(4)" in after
    assert "PE(3)" not in after


def test_defaults_and_documentation_are_those_of_the_script() -> None:
    signature = inspect.signature(live.rope)
    assert str(signature) == (
        "(m=5, n=2, direction='clockwise', pairs='neighbours', *, question='')"
    )
    assert "direction of the turns: 'clockwise' or 'anticlockwise'" in str(live.rope.__doc__)
    assert "position, from 1 to 506" in str(live.crank.__doc__)
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        live.clock(speed=3)
    assert {name: one.kind for name, one in live.KINDS.items()} == {n: n for n in live.KINDS}
    assert set(live.KINDS) == {path.stem for path in live.FOLDER.glob("*.js")} - PARTS_OF_THE_KIT


def test_what_a_figure_says_is_escaped_once() -> None:
    said = 'A "hand" at 1 < 2 & 3'
    figure = live.frames(
        draw,
        [1, 2],
        label=f"label: {said}",
        describe=lambda _: said,
        show=lambda _: f"shown: {said}",
    )
    box = BeautifulSoup(
        still.content_of_box("frames", figure.state, dict(figure.data)), "html.parser"
    )
    assert box.select("svg")[0]["aria-label"] == said
    assert box.select(".live__says")[0].text == said
    (slider,) = box.select("input")
    assert slider["aria-label"] == box.select(".live__name")[0].text == f"label: {said}"
    assert slider["aria-valuetext"] == box.select(".live__value")[0].text == f"shown: {said}"


def test_text_of_a_page_stays_text() -> None:
    box = live.box("clock", 'Is <b> "bold"?', {"x": 3, "step": 2}, {})
    assert "Is &lt;b&gt; &quot;bold&quot;?" in box
    data = {
        "controls": [{"label": "<i>", "shown": ["</script>"], "buttons": True}],
        "frames": ["<svg/>"],
        "said": [""],
    }
    held = live.box("frames", "", {"frame": 0}, data)
    assert held.count("</script>") == 1
    assert "<i>" not in held.partition("<script")[0]


@pytest.mark.parametrize("kind", [kind for kind in live.KINDS if kind != "frames"])
def test_the_example_of_a_live_figure_holds(kind: str) -> None:
    """These are made by a call of `kind`, where doctest does not look for them."""
    make = getattr(live, kind)
    examples = doctest.DocTestParser().get_doctest(make.__doc__, {kind: make}, kind, None, None)
    assert len(examples.examples) == 1
    assert doctest.DocTestRunner().run(examples).failed == 0
