"""Live figures: their numbers are the library's, their stills what they draw, and all move."""

import gzip
import itertools
import statistics
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import mpmath
import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page
from site_under_test import ROOT, Setting, nudge, shown, visit

from pe_lib import numpy as pe
from pe_lib._checks import Layout
from pe_lib.book import live, plots

sys.path.append(str(ROOT / "tools"))
import stills

NUMBERS = """([kind, states]) => {
  const spec = peLive.kinds[kind]({});
  return states.map((state) => spec.numbers({ ...peLive.defaults(spec), ...state }));
}"""
PAGE = """<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">
<title>All live figures</title><meta name="viewport" content="width=device-width">
<style>figure {{ margin: 2rem 0; }}</style>
<link rel="stylesheet" href="{style}"></head><body><main><h1>All</h1>{boxes}</main>{scripts}</body>
</html>"""
SHIFT = """window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });"""
LATENCY = """(input) => {
  const times = [];
  for (let k = 0; k < 21; k++) {
    input.value = Number(input.min) + ((k * 7) % (input.max - input.min));
    const before = performance.now();
    input.dispatchEvent(new Event("input", { bubbles: true }));
    document.body.offsetHeight;  // laid out
    times.push(performance.now() - before);
  }
  return times;
}"""
SMALLEST_TEXT = """(box) => Math.min(...[...box.querySelectorAll(".live__picture text")]
  .filter((text) => text.checkVisibility())
  .map((text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"""
FITS = "(box) => box.getBoundingClientRect().height <= innerHeight"


def sine(turn: int) -> Any:
    figure, ax = plt.subplots(figsize=(4, 2))
    plots.clock(ax, turn)
    return figure


def all_figures() -> list[live.Figure]:
    """One of each kind, and frames with a range and with buttons."""
    made = [getattr(live, kind)(question=f"What does {kind} do?") for kind in stills.KINDS]
    given: dict[str, Any] = {"describe": "A clock at {}.".format, "label": "turn <& more>"}
    made.append(live.frames(sine, [0, 1, 2], start=1, question="Which?", **given))
    made.append(live.frames(sine, [0, 1], buttons=True, **given))
    made.append(
        live.frames2(
            lambda a, b: sine(a + b),
            ([0, 1], [0, 2]),
            labels=("a", "b"),
            describe="A clock at {} and {}.".format,
            start=(1, 0),
        )
    )
    return made


@pytest.fixture(scope="module")
def bench(browser: Browser) -> Iterator[Page]:
    """An empty page with every script."""
    page = browser.new_page()
    for name in (*live.KIT, *live.KINDS):
        page.add_script_tag(path=live.FOLDER / f"{name}.js")
    yield page
    page.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of a folder with one box of each kind, as the site has them."""
    file = tmp_path_factory.mktemp("live") / "all.html"
    boxes = "".join(
        f'<figure id="fig-{number}">{live.box(one.figure, one.question, one.state, one.data)}'
        f"<figcaption>Figure {number}</figcaption></figure>"
        for number, one in enumerate(all_figures())
    )
    scripts = "".join(
        f'<script defer src="{(live.FOLDER / name).as_uri()}.js"></script>'
        for name in (*live.KIT, *live.KINDS)
    )
    style = (live.FOLDER / "kit.css").as_uri()
    file.write_text(PAGE.format(style=style, boxes=boxes, scripts=scripts))
    return file.as_uri()


# ---- Numbers -------------------------------------------------------------------------------------


def ask(bench: Page, kind: str, states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = bench.evaluate(NUMBERS, [kind, states])
    return answers


def test_clock_computes_what_the_library_does(bench: Page) -> None:
    places = itertools.product(range(31), range(-6, 7), ("T", "transposed"))
    states: list[dict[str, Any]] = [{"x": x, "step": step, "block": b} for x, step, b in places]
    computed: list[Any] = ask(bench, "clock", states)
    for state, dials in zip(states, computed, strict=True):
        x, step = state["x"], state["step"]
        matrix = pe.rotation_matrix(step, 8, base=16)
        matrix = matrix if state["block"] == "T" else matrix.T
        row, after = pe.sinusoidal_encoding([x, x + step], 8, base=16, dtype=np.float64)
        for i, dial in enumerate(dials):
            pair = slice(2 * i, 2 * i + 2)
            found = (dial["before"], dial["matrix"], dial["moved"], dial["after"])
            wanted = (row[pair], matrix[pair, pair], (row @ matrix)[pair], after[pair])
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-13)


def test_clock_shows_the_digits_of_the_library(bench: Page) -> None:
    """What stands in the cells, not only what was computed."""
    draw = """(state) => {
      const box = document.createElement("div");
      box.innerHTML = peLive.html(peLive.kinds.clock({}), state);
      const texts = box.querySelectorAll(".live-picture--wide .number");
      return [...texts].map((text) => text.textContent);
    }"""
    for x, step in ((0, 1), (3, 2), (7, -6), (22, 5), (30, 6)):
        row, after = pe.sinusoidal_encoding([x, x + step], 8, base=16, dtype=np.float64)
        matrix = pe.rotation_matrix(step, 8, base=16)
        wanted = []
        for pair in (slice(2 * i, 2 * i + 2) for i in range(4)):
            wanted += [*matrix[pair, pair].ravel(), *row[pair], *after[pair], *after[pair]]
        shown = bench.evaluate(draw, {"x": x, "step": step, "block": "T"})
        assert [text.replace("−", "-") for text in shown] == [f"{v + 0.0:.2f}" for v in wanted]


def test_orbit_computes_distances(bench: Page) -> None:
    states = [{"decay": decay, "pitch": pitch, "stretch": stretch}
              for decay in (0, 0.05) for pitch in (0, 0.1) for stretch in (1, 1.7)]  # fmt: skip
    for state, found in zip(states, ask(bench, "orbit", states), strict=True):
        x = np.arange(40)
        size = np.exp(-state["decay"] * x)
        flat = [state["stretch"] * size * np.sin(0.3 * x), size * np.cos(0.3 * x)]
        points = np.column_stack([*flat, state["pitch"] * x])
        apart = np.linalg.norm(points[:, None] - points, axis=2)
        np.testing.assert_allclose(found["distances"], apart, atol=1e-13)
        np.testing.assert_allclose(found["chords"], np.diagonal(apart, 8), atol=1e-13)
        assert (np.ptp(found["chords"]) < 1e-12) == (state["decay"] == 0 and state["stretch"] == 1)


def test_similarity_its_limit_and_its_law(bench: Page) -> None:
    states = [{"d_model": d, "base": base, "offset": offset} for d in (64, 512, 1024)
              for base in (100, 10_000, 1_000_000) for offset in (1, 2, 3, 4, 31, 512)]  # fmt: skip
    for state, found in zip(states, ask(bench, "similarity", states), strict=True):
        d, base, offset = state.values()
        curve = pe.similarity(np.arange(514), d, base=base)
        assert found["similarity"] == pytest.approx(curve[offset], abs=1e-13)
        limit = (mpmath.ci(offset) - mpmath.ci(offset / base)) / mpmath.log(base)
        assert found["limit"] == pytest.approx(float(limit), abs=1e-13)
        law = 1 - (np.log(offset) + np.euler_gamma) / np.log(base)
        assert found["law"] == pytest.approx(law, abs=1e-13)
        assert found["rise"] == 1 + np.flatnonzero(np.diff(curve[1:]) > 0)[0]
    widths = [{"d_model": d, "base": 10_000, "offset": 1} for d in (64, 128, 256, 512, 1024)]
    assert [one["rise"] for one in ask(bench, "similarity", widths)] == [5, 11, 24, 43, 68]


def test_subspaces_one_matrix_and_its_norm(bench: Page) -> None:
    states = [{"angle": angle, "c": 0.5} for angle in range(1, 91)]
    for state, found in zip(states, ask(bench, "subspaces", states), strict=True):
        angle = np.radians(state["angle"])
        lines = np.array([[1, 0], [np.cos(angle), np.sin(angle)]])
        matrix = np.linalg.solve(lines, [-1, 1])
        np.testing.assert_allclose(found["matrix"], matrix, rtol=1e-9)
        assert found["norm"] == pytest.approx(np.linalg.norm(matrix), rel=1e-9)
        worst = matrix / np.linalg.norm(matrix)
        np.testing.assert_allclose(np.abs(worst @ np.linalg.inv(lines)), found["part"], rtol=1e-9)
    (found,) = ask(bench, "subspaces", [{"angle": 0, "c": 2.0}])
    assert found["price"] == pytest.approx(2 / 3)


def test_rope_scores_are_those_of_rotate(bench: Page) -> None:
    states = [{"m": m, "n": n, "sense": sense, "pairs": pairs} for m in (0, 5, 30)
              for n in (0, 2, 29) for sense in ("clockwise", "anticlockwise")
              for pairs in ("neighbours", "halves", "mixed")]  # fmt: skip
    query = np.tile([0.0, 1.0], 4)
    key = pe.sinusoidal_encoding(1, 8, base=16, dtype=np.float64)
    for state, found in zip(states, ask(bench, "rope", states), strict=True):
        way = 1 if state["sense"] == "clockwise" else -1
        of_query: Layout = "split" if state["pairs"] == "halves" else "interleaved"
        of_key: Layout = "interleaved" if state["pairs"] == "neighbours" else "split"
        turned = pe.rotate(query, way * state["m"], base=16, layout=of_query)
        met = pe.rotate(key, way * state["n"], base=16, layout=of_key)
        np.testing.assert_allclose(found["query"], turned, atol=1e-13)
        np.testing.assert_allclose(found["key"], met, atol=1e-13)
        assert found["score"] == pytest.approx(turned @ met, abs=1e-12)
        assert (found["drift"] < 1e-9) == (state["pairs"] != "mixed")


def test_formats_round_as_processors_do(bench: Page) -> None:
    places = [1, 255, 256, 257, 384, 9999, 10_000, 65_793, 2**24, 2**24 + 1, 2**26]
    omega = pe.frequencies(64)
    found = ask(bench, "formats", [{"position": place} for place in places])
    for place, one in zip(places, found, strict=True):
        held = float(torch.tensor(float(place), dtype=torch.float64).bfloat16())
        assert one["held"] == held
        exact, half = pe.sinusoidal_encoding([place, held], 64, dtype=np.float64)[:, ::2]
        # the browser rounds angle and frequency to 2⁻⁵³ of their size
        np.testing.assert_allclose(one["exact"], exact, atol=1e-15 + place * 2**-52)
        np.testing.assert_allclose(one["half"], half, atol=1e-15 + place * 2**-52)
        angles = np.float32(place) * omega.astype(np.float32)
        single = np.sin(angles.astype(np.float64)).astype(np.float32)
        np.testing.assert_array_equal(np.float32(one["angles"]), single)
        errors = [np.abs(row - exact).max() for row in (single, half)]
        np.testing.assert_allclose(one["errors"], errors, rtol=0.005, atol=1e-10)


# ---- Stills --------------------------------------------------------------------------------------


def test_stills_are_what_the_scripts_draw(browser: Browser) -> None:
    drawn = dict(stills.draw_stills(browser))
    stored = {path.stem: path.read_text() for path in live.STILLS.glob("*.html")}
    assert set(stored) == set(drawn), "run tools/stills.py"
    for name, text in drawn.items():
        assert stored[name] == text, f"{name}: run tools/stills.py"


def test_frames_stand_as_the_kit_writes_them(bench: Page) -> None:
    write = "([data, state]) => peLive.html(peLive.kinds.frames(data), state)"
    for one in all_figures():
        if one.figure == "frames":
            state, data = dict(one.state), dict(one.data)
            assert live.inside("frames", state, data) == bench.evaluate(write, [data, state])


def test_scripts_are_small() -> None:
    texts = [(live.FOLDER / f"{name}.js").read_bytes() for name in (*live.KIT, *live.KINDS)]
    assert max(len(gzip.compress(text)) for text in texts) <= 6000
    assert len(gzip.compress(b"".join(texts))) <= 20_000


# ---- In the page ---------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [Setting("light", 1280), Setting("dark", 390)])
def test_every_control_moves_its_picture(browser: Browser, address: str, setting: Setting) -> None:
    with visit(browser, address, setting) as seen:
        times: list[float] = []
        boxes = seen.page.locator(".live[data-live]").all()
        assert len(boxes) == len(all_figures())
        for box in boxes:
            for control in box.locator("input:enabled").all():
                before = shown(box)
                control.press("x")  # letters change nothing
                assert shown(box) == before
                nudge(control)
                assert shown(box) != before, "a key did not move the picture"
                said = box.locator(".live__value").all_inner_texts()
                assert control.get_attribute("aria-valuetext") in said
                assert control.get_attribute("aria-label")
                times += control.evaluate(LATENCY)
            for choice in box.locator('[data-set][aria-pressed="false"]').all():
                before = shown(box)
                choice.press("Enter")
                assert shown(box) != before, "a button did not move the picture"
            assert box.evaluate(FITS), "question, control and picture do not fit on the screen"
        assert seen.axe() == []
        assert seen.complaints == []
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        median = statistics.median(times)
        print(f"median from input to picture, {setting.width} px: {median:.1f} ms")


def test_hands_are_dragged(browser: Browser, address: str) -> None:
    with visit(browser, address) as seen:
        page = seen.page
        clock = page.locator('[data-figure="clock"]')
        clock.scroll_into_view_if_needed()
        dial = clock.locator(".live-picture--wide .dial").first.bounding_box()
        hand = clock.locator('.live-picture--wide .tip[data-handle="step 0"]').bounding_box()
        assert dial is not None
        assert hand is not None
        page.mouse.move(hand["x"] + hand["width"] / 2, hand["y"] + hand["height"] / 2)
        page.mouse.down()
        page.mouse.move(dial["x"] + dial["width"] / 2, dial["y"], steps=3)  # to the top: 2π
        page.mouse.up()
        step = clock.locator('input[data-key="step"]')
        assert step.input_value() == "3"  # from 3 + 2, the whole position next to 6.28
        assert step.evaluate("(input) => input === document.activeElement")
        page.keyboard.press("ArrowLeft")  # the keys go on from there
        assert step.input_value() == "2"
        page.wait_for_timeout(400)
        assert "step" not in page.url  # back where it began
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(400)
        assert page.url.endswith("?fig-0.step=1#fig-0")
        touch = "(e) => getComputedStyle(e).touchAction"
        assert clock.locator(".live__picture").evaluate(touch) == "pan-y"
        assert step.evaluate(touch) == "pan-y"
        assert seen.complaints == []


def test_a_finger_drags_hands_and_scrolls_the_rest(browser: Browser, address: str) -> None:
    with visit(browser, address, Setting("light", 390), has_touch=True) as seen:
        page = seen.page
        session = page.context.new_cdp_session(page)

        def swipe(*places: tuple[float, float]) -> None:
            kinds = ["touchStart", *["touchMove"] * (len(places) - 1), "touchEnd"]
            for kind, points in zip(kinds, [*([place] for place in places), []], strict=True):
                touches = [{"x": x, "y": y} for x, y in points]
                session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})
                page.wait_for_timeout(20)
            page.wait_for_timeout(300)

        def middle(selector: str) -> tuple[float, float]:
            box = clock.locator(selector).nth(0).bounding_box()
            assert box is not None
            return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

        clock = page.locator('[data-figure="clock"]')
        values = clock.locator(".live__value")
        x, y = middle('.live-picture--narrow [data-handle="step 1"].tip')
        cx, cy = middle(".live-picture--narrow .dial >> nth=1")
        swipe((x, y), (x - 10, y + 10), (cx, cy + 30))  # to the bottom: x + Δx = 2π
        assert values.all_inner_texts() == ["3", "3"]
        assert page.evaluate("scrollY") == 0
        x, y = middle('input[data-key="x"]')
        swipe(*((x, y - 9 * k) for k in range(9)))  # up, as one scrolls
        assert values.all_inner_texts() == ["3", "3"], "a swipe across the track moved it"
        assert page.evaluate("scrollY") > 20
        assert seen.complaints == []


@pytest.mark.parametrize(
    ("asked", "x", "step"),
    [
        ("fig-0.x=7&fig-0.step=-3", "7", "-3"),
        ("fig-0.x=999&fig-0.step=-1e99", "30", "-6"),
        ("fig-0.x=hello&fig-0.step=", "3", "2"),
        ("fig-0.x=NaN&fig-0.step=Infinity&fig-0.block=%3Cb%3E", "3", "6"),
        ("fig-0.x=4.4&fig-0.nothing=1&fig-9=2", "4", "2"),
    ],
)
def test_address_holds_the_state(
    browser: Browser, address: str, asked: str, x: str, step: str
) -> None:
    with visit(browser, f"{address}?{asked}") as seen:
        clock = seen.page.locator('[data-figure="clock"]')
        found = [clock.locator(f'input[data-key="{key}"]').input_value() for key in ("x", "step")]
        assert found == [x, step]
        assert "NaN" not in shown(clock)
        assert "undefined" not in shown(clock)
        assert seen.complaints == []


def test_presets_play_and_reset(browser: Browser, address: str) -> None:
    with visit(browser, address) as seen:
        clock = seen.page.locator('[data-figure="clock"]')
        says = clock.locator(".live__says")
        assert "land on position 5. PE" in says.inner_text()
        clock.get_by_role("button", name="Wrong way round").click()
        assert "land on position 1, not on 5" in says.inner_text()
        clock.get_by_role("button", name="Same Δx, another x").click()
        assert "land on position 13. PE" in says.inner_text()
        clock.get_by_role("button", name="Play").click()  # in whole steps: no motion is wanted
        assert "land on position 14. PE" in says.inner_text()
        clock.get_by_role("button", name="Pause").click()
        clock.get_by_role("button", name="Reset").click()
        assert "land on position 5. PE" in says.inner_text()


def test_nothing_jumps_as_figures_come_to_life(browser: Browser, address: str) -> None:
    for width, height in ((1280, 900), (390, 844), (844, 390)):
        page = browser.new_page(viewport={"width": width, "height": height})
        page.add_init_script(SHIFT)
        page.goto(address)
        page.wait_for_timeout(400)
        assert page.evaluate("window.shift") <= 0.05
        boxes = page.locator(".live")
        assert all(boxes.evaluate_all(f"(boxes) => boxes.map({FITS})")), (width, height)
        drawn = page.locator('.live:not([data-figure="frames"])')
        assert min(drawn.evaluate_all(f"(boxes) => boxes.map({SMALLEST_TEXT})")) >= 12
        page.close()


def test_stills_stand_without_scripts_and_in_print(browser: Browser, address: str) -> None:
    with visit(browser, address, java_script_enabled=False) as seen:
        for figure in seen.page.locator(".live").all():
            assert figure.locator(".live__picture > svg").first.is_visible()
            assert not figure.locator(".live__controls").is_visible()
    with visit(browser, address) as seen:
        seen.page.emulate_media(media="print")
        for figure in seen.page.locator(".live").all():
            shown(figure)
            assert not figure.locator(".live__controls").is_visible()
