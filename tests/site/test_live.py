"""Live figures: their numbers are the library's, their stills what they draw, their hands move.

That every control of every figure moves it is asked of each page, in test_pages.py.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import mpmath
import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect

from pe_book import live, plots
from pe_book.live import still
from pe_lib import numpy as pe
from pe_lib._checks import Layout
from tests.site.browser import PHONE, visit
from website.built_site import SITE

NUMBERS = """([kind, states]) => {
  const spec = peLive.kinds[kind]({});
  return states.map((state) => [state, spec.numbers({ ...peLive.defaults(spec), ...state })]);
}"""


@pytest.fixture(scope="module")
def bench(browser: Browser) -> Iterator[Page]:
    """An empty page with every script."""
    page = browser.new_page()
    for name in (*still.KIT, *live.KINDS):
        page.add_script_tag(path=live.FOLDER / f"{name}.js")
    yield page
    page.close()


@pytest.fixture
def clock(browser: Browser) -> Iterator[Locator]:
    """The first figure of the chapter on rotation, on a phone."""
    address = (SITE / "book" / "rotation.html").as_uri()
    with visit(browser, address, **PHONE, has_touch=True) as page:
        yield page.locator('[data-figure="clock"][data-live]').first


# ---- Numbers -------------------------------------------------------------------------------------


def ask(bench: Page, kind: str, **values: Any) -> list[Any]:
    """Each state that these values make, and the numbers of the figure in it."""
    states = [dict(zip(values, one, strict=True)) for one in itertools.product(*values.values())]
    answers: list[Any] = bench.evaluate(NUMBERS, [kind, states])
    return answers


def test_clock_computes_what_the_library_does(bench: Page) -> None:
    steps = [-6, -1, 0, 2]
    for state, dials in ask(bench, "clock", x=[0, 7, 30], step=steps, block=["T", "transposed"]):
        x, step = state["x"], state["step"]
        matrix = pe.rotation_matrix(step, 8, base=16)
        matrix = matrix if state["block"] == "T" else matrix.T
        row, after = pe.sinusoidal_encoding([x, x + step], 8, base=16, dtype=np.float64)
        assert len(dials) == 4
        for i, dial in enumerate(dials):
            pair = slice(2 * i, 2 * i + 2)
            found = (dial["before"], dial["matrix"], dial["moved"], dial["after"])
            wanted = (row[pair], matrix[pair, pair], (row @ matrix)[pair], after[pair])
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-13)


def test_orbit_computes_distances(bench: Page) -> None:
    for state, found in ask(bench, "orbit", decay=[0, 0.05], pitch=[0, 0.1], stretch=[1, 1.7]):
        x = np.arange(40)
        size = np.exp(-state["decay"] * x)
        flat = [state["stretch"] * size * np.sin(0.3 * x), size * np.cos(0.3 * x)]
        points = np.column_stack([*flat, state["pitch"] * x])
        apart = np.linalg.norm(points[:, None] - points, axis=2)
        np.testing.assert_allclose(found["distances"], apart, atol=1e-13)
        np.testing.assert_allclose(found["chords"], np.diagonal(apart, 8), atol=1e-13)
        assert (np.ptp(found["chords"]) < 1e-12) == (state["decay"] == 0 and state["stretch"] == 1)


def test_similarity_its_limit_and_its_law(bench: Page) -> None:
    bases, offsets = [100, 10_000, 1_000_000], [1, 2, 31, 512]
    for state, found in ask(bench, "similarity", d_model=[64, 512], base=bases, offset=offsets):
        d, base, offset = state.values()
        curve = pe.similarity(np.arange(514), d, base=base)
        assert found["similarity"] == pytest.approx(curve[offset], abs=1e-13)
        limit = (mpmath.ci(offset) - mpmath.ci(offset / base)) / mpmath.log(base)
        assert found["limit"] == pytest.approx(float(limit), abs=1e-13)
        law = 1 - (np.log(offset) + np.euler_gamma) / np.log(base)
        assert found["law"] == pytest.approx(law, abs=1e-13)
        assert found["rise"] == 1 + np.flatnonzero(np.diff(curve[1:]) > 0)[0]


# The numbers in the plot that the line of the offset strikes through, in either form of the figure.
STRUCK = """(states) => states.flatMap((state) => {
  const spec = peLive.kinds.similarity({});
  const place = document.body.appendChild(document.createElement("div"));
  place.innerHTML = peLive.html(spec, { ...peLive.defaults(spec), ...state });
  const struck = [...place.querySelectorAll(".halo")].filter((number) => {
    const line = number.parentElement.querySelector(".thin.tie-offset").getBoundingClientRect();
    const box = number.getBoundingClientRect();
    return box.left < line.right && line.left < box.right;
  });
  place.remove();
  return struck.map((number) => [number.textContent, state]);
})"""


def test_the_line_of_the_offset_strikes_through_no_number(bench: Page) -> None:
    bench.add_style_tag(content=".live-picture { font: 14px sans-serif } .end { text-anchor: end }")
    widths, offsets = [64, 128, 256, 512, 1024], range(1, 129)
    states = [{"d_model": d, "offset": offset} for d in widths for offset in offsets]
    assert bench.evaluate(STRUCK, states) == []


def test_subspaces_one_matrix_and_its_norm(bench: Page) -> None:
    for state, found in ask(bench, "subspaces", angle=[1, 5, 30, 60, 89, 90]):
        angle = np.radians(state["angle"])
        lines = np.array([[1, 0], [np.cos(angle), np.sin(angle)]])
        matrix = np.linalg.solve(lines, [-1, 1])
        np.testing.assert_allclose(found["matrix"], matrix, rtol=1e-9)
        assert found["norm"] == pytest.approx(np.linalg.norm(matrix), rel=1e-9)
        worst = matrix / np.linalg.norm(matrix)
        np.testing.assert_allclose(np.abs(worst @ np.linalg.inv(lines)), found["part"], rtol=1e-9)
    ((_, found),) = ask(bench, "subspaces", angle=[0], c=[2.0])
    assert found["price"] == pytest.approx(2 / 3)


def test_rope_scores_are_those_of_rotate(bench: Page) -> None:
    directions, pairs = ["clockwise", "anticlockwise"], ["neighbours", "halves", "mixed"]
    query = np.tile([0.0, 1.0], 4)
    key = pe.sinusoidal_encoding(1, 8, base=16, dtype=np.float64)
    for state, found in ask(
        bench, "rope", m=[0, 5, 30], n=[0, 29], direction=directions, pairs=pairs
    ):
        way = 1 if state["direction"] == "clockwise" else -1
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
    for state, one in ask(bench, "formats", position=places):
        place = state["position"]
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


# ---- Play ----------------------------------------------------------------------------------------

# What figures show beyond the ends of their ranges while they play, in frames or in whole seconds.
BEYOND_THE_ENDS = """() => Object.keys(peLive.kinds).filter((kind) => kind !== "frames")
  .map((kind) => peLive.kinds[kind]({}))
  .filter(({ play }) => play)
  .flatMap(({ title, controls, play }) => [1 / 60, 0.1, 1].flatMap((seconds) => {
    let state = peLive.defaults({ controls });
    return Array.from({ length: 3000 }).flatMap(() => {
      state = { ...state, ...play(state, seconds) };
      const isBeyond = ([key, { min, max }]) => state[key] < min || state[key] > max;
      return Object.entries(controls).filter(isBeyond).map(([key]) => [title, key, state[key]]);
    });
  }))"""


def test_what_plays_stays_on_its_sliders(bench: Page) -> None:
    assert bench.evaluate(BEYOND_THE_ENDS) == []


# ---- Stills --------------------------------------------------------------------------------------

DRAW = """([kind, data, state]) => {
  const spec = peLive.kinds[kind](data);
  return peLive.html(spec, peLive.allowAll(spec, state, peLive.defaults(spec)));
}"""


def test_stills_are_what_a_browser_draws(bench: Page) -> None:
    """The build draws them in V8 without a page; a browser is the independent witness."""

    def draw(*turns: int) -> Any:
        figure, ax = plt.subplots(figsize=(4, 2))
        plots.clock(ax, sum(turns))
        return figure

    one: dict[str, Any] = {"describe": "A clock at {}.".format, "label": "turn <& more>"}
    two: dict[str, Any] = {"describe": "{} and {}".format, "labels": ("a", "b"), "start": (1, 0)}
    figures = [
        live.clock(5, step=3),
        live.orbit(decay=0.05),
        live.similarity(64, base=100, offset=7),
        live.subspaces(8),
        live.rope(7, 6),
        live.formats(257),
        live.frames(draw, [0, 1, 2], start=1, **one),
        live.frames(draw, [0, 1], buttons=True, **one),
        live.frames2(draw, ([0, 1], [0, 2]), **two),
    ]
    assert {figure.kind for figure in figures} == set(live.KINDS)
    for figure in figures:
        drawn = bench.evaluate(DRAW, [figure.kind, dict(figure.data), figure.state])
        assert still.content_of_box(figure.kind, figure.state, dict(figure.data)) == drawn, figure


# ---- In a notebook -------------------------------------------------------------------------------

# A model as anywidget gives one: what is set is told at once to all who listen.
SET_BY_PYTHON = """(asked) => {
  const traits = { figure: "clock", question: "", data: {}, x: 3, step: 2, block: "T" };
  const listeners = [];
  const model = {
    get: (name) => traits[name],
    set(name, value) {
      traits[name] = value;
      listeners.forEach((listen) => listen());
    },
    on: (_, listen) => listeners.push(listen),
    off: () => {},
    save_changes: () => {},
  };
  const el = document.body.appendChild(document.createElement("div"));
  const end = peLive.render({ model, el });
  for (const [name, value] of asked) model.set(name, value);
  const shown = [...el.querySelectorAll(".live__value")].map((value) => value.textContent);
  end();
  el.remove();
  return [shown, traits.x, traits.step];
}"""


@pytest.mark.parametrize(
    ("asked", "shown", "held"),
    [
        ([("x", 7)], ["7", "2"], [7, 2]),
        # A linked hand stands between two positions while the other one is dragged there.
        ([("x", 4.25)], ["4.3", "2"], [4.25, 2]),
        ([("x", 99), ("step", -6.5)], ["30", "−6"], [30, -6]),
        ([("block", "sideways")], ["3", "2"], [3, 2]),
    ],
)
def test_a_figure_shows_what_python_sets(
    bench: Page, asked: list[Any], shown: list[str], held: list[float]
) -> None:
    found: list[Any] = bench.evaluate(SET_BY_PYTHON, asked)
    assert found == [shown, *held]


# ---- In the page ---------------------------------------------------------------------------------


def middle(box: Locator) -> tuple[float, float]:
    place = box.bounding_box()
    assert place is not None
    return place["x"] + place["width"] / 2, place["y"] + place["height"] / 2


def swipe(page: Page, *places: tuple[float, float]) -> None:
    """A finger goes from place to place."""
    session = page.context.new_cdp_session(page)
    kinds = ["touchStart", *["touchMove"] * (len(places) - 1), "touchEnd"]
    for kind, points in zip(kinds, [*([place] for place in places), []], strict=True):
        touches = [{"x": x, "y": y} for x, y in points]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})


def test_a_finger_drags_hands_and_scrolls_the_rest(clock: Locator) -> None:
    page, values = clock.page, clock.locator(".live__value")
    hand = clock.locator('.live-picture--narrow [data-handle="step 1"].tip')
    hand.scroll_into_view_if_needed()
    scrolled = page.evaluate("scrollY")
    x, y = middle(hand)
    cx, cy = middle(clock.locator(".live-picture--narrow .dial").nth(1))
    swipe(page, (x, y), (x - 10, y + 10), (cx, cy + 30))  # to the bottom: x + Δx = 2π
    expect(values).to_have_text(["3", "3"])
    expect(clock.locator('input[data-key="step"]')).to_be_focused()  # the keys go on from there
    assert page.evaluate("scrollY") == scrolled
    x, y = middle(clock.locator('input[data-key="x"]'))
    swipe(page, *((x, y - 9 * k) for k in range(9)))  # up, as one scrolls
    page.wait_for_function(f"scrollY > {scrolled + 20}")
    expect(values).to_have_text(["3", "3"])  # a swipe across the track left it


def test_a_track_between_two_buttons_is_as_long_as_one_beside_it(browser: Browser) -> None:
    with visit(browser, (SITE / "book" / "dot_product.html").as_uri()) as page:
        tracks = page.locator('.live[data-figure="similarity"]').first.locator("input[type=range]")
        base, offset = tracks.evaluate_all("all => all.map((track) => track.clientWidth)")
        assert offset >= 0.9 * base


def test_a_mouse_moves_a_slider(clock: Locator) -> None:
    clock.locator('input[data-key="x"]').click()  # in its middle
    expect(clock.locator(".live__value").first).to_have_text("15")  # of 0 to 30


def test_the_address_tells_the_state_and_is_held_to_what_is_allowed(clock: Locator) -> None:
    page, step = clock.page, clock.locator('input[data-key="step"]')
    address, name = page.url, clock.locator("xpath=..").get_attribute("id")
    step.press("ArrowRight")
    page.wait_for_url(f"**?{name}.step=3#{name}")
    page.reload()
    expect(step).to_have_value("3")
    step.press("ArrowLeft")
    page.wait_for_url(lambda url: "step" not in url)  # back where it began
    set_to = 'input, [data-set][aria-pressed="true"]'
    for asked, shown in (
        ("x=4.4&{0}.step=-3&{0}.block=transposed", ["4", "-3", "transposed"]),
        ("x=999&{0}.step=-1e99", ["30", "-6", "T"]),
        ("x=NaN&{0}.step=Infinity", ["3", "6", "T"]),
        ("x=hello&{0}.step=&{0}.nothing=1&{0}.block=<b>", ["3", "2", "T"]),
    ):
        page.goto(f"{address}?{name}.{asked.format(name)}")
        expect(clock).to_be_visible()  # once it lives
        values = clock.locator(set_to).evaluate_all(
            "all => all.map((e) => e.value || e.dataset.value)"
        )
        assert values == shown, asked


def test_presets_play_and_reset(clock: Locator) -> None:
    """The clock of the page stands still, and goes on by a second when the test says so."""
    expect(clock).to_be_visible()  # once it lives
    time = clock.page.clock
    time.install(time=0)
    time.pause_at(1000)

    def press(button: str, said: str) -> None:
        clock.get_by_role("button", name=button).click()
        expect(clock.locator(".live__says")).to_contain_text(said)

    press("Wrong way round", "stand at position 1, not at 5")
    press("Same Δx, another x", "stand at position 13. PE")
    press("Play", "stand at position 14. PE")  # in whole steps: no motion is wanted
    # Its name says what it does, so it is no button that stays pressed.
    assert clock.get_by_role("button", name="Pause").get_attribute("aria-pressed") is None
    time.run_for(1000)
    expect(clock.locator(".live__says")).to_contain_text("stand at position 15. PE")
    press("Pause", "stand at position 15. PE")
    time.run_for(3000)
    press("Reset", "stand at position 5. PE")


def test_a_figure_is_printed_without_its_controls(clock: Locator) -> None:
    clock.page.emulate_media(media="print")
    expect(clock.locator(".live__picture > svg:visible")).to_have_count(1)
    expect(clock.locator(".live__controls")).to_be_hidden()
