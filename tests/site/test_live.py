"""Live figures: their numbers are the library's, their stills what they draw, their hands move.

That every control of every figure moves it is asked of each page, in test_pages.py.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import mpmath
import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect
from scipy.linalg import block_diag

from pe_book import live, minilm, plots
from pe_book.attention import attention_weights, softmax
from pe_book.live import still
from pe_book.live.data import make
from pe_book.live.figure import LiveFigure
from pe_lib import numpy as pe
from pe_lib._checks import Layout
from tests.site.browser import DESK, PHONE, visit
from website.built_site import SITE

MINILM = Path(__file__).resolve().parents[2] / "book" / "data" / "minilm"
NUMBERS = """([kind, states, data]) => {
  const spec = peLive.kinds[kind](data);
  return states.map((state) => [state, spec.numbers({ ...peLive.defaults(spec), ...state })]);
}"""


@pytest.fixture(scope="module")
def bench(browser: Browser) -> Iterator[Page]:
    """An empty page with every script."""
    page = browser.new_page()
    add_scripts(page, *live.KINDS)
    yield page
    page.close()


def add_scripts(page: Page, *kinds: str) -> None:
    for name in (*still.KIT, *(name for kind in kinds for name in still.files_of(kind))):
        page.add_script_tag(path=live.FOLDER / f"{name}.js")


@pytest.fixture
def clock(browser: Browser, tmp_path: Path) -> Iterator[Locator]:
    """A clock on a page that has an address, on a phone."""
    figure = live.clock()
    scripts = [f"{name}.js" for name in (*still.KIT, *still.files_of("clock"))]
    file = tmp_path / "clock.html"
    file.write_text(
        '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<link rel="stylesheet" href="{(live.FOLDER / "kit.css").as_uri()}">'
        f'<figure id="fig-clock">{live.box("clock", "Why?", figure.state, {})}</figure>'
        '<p style="height: 2000px">Below.</p>'
        + "".join(f'<script src="{(live.FOLDER / name).as_uri()}"></script>' for name in scripts),
        encoding="utf-8",
    )
    with visit(browser, file.as_uri(), **PHONE, has_touch=True) as page:
        yield page.locator('[data-figure="clock"][data-live]').first


# ---- Numbers -------------------------------------------------------------------------------------


def ask(bench: Page, kind: str, **values: Any) -> list[Any]:
    """Each state that these values make, and the numbers of the figure in it."""
    states = [dict(zip(values, one, strict=True)) for one in itertools.product(*values.values())]
    return ask_of(bench, kind, states)


def ask_of(bench: Page, kind: str, states: list[Any], **data: Any) -> list[Any]:
    """The same for these states, where the figure may compute with other data than its own."""
    answers: list[Any] = bench.evaluate(NUMBERS, [kind, states, data])
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


def test_attention_without_positions_is_the_library_s_in_every_order(bench: Page) -> None:
    """And its weights move with the words, as its sentence says."""
    made = make.attention()
    rows, w_q, w_k = (made[name] for name in ("rows", "w_q", "w_k"))
    home = attention_weights(rows, w_q, w_k)
    orders = ["".join(order) for order in itertools.permutations("012")]
    whole = {name: np.asarray(value).tolist() for name, value in made.items()}
    for data, rounding in ((whole, 1e-14), ({}, 1e-4)):
        asked = [{"order": order} for order in orders]
        for state, found in ask_of(bench, "attention", asked, **data):
            order = [int(digit) for digit in state["order"]]
            wanted = attention_weights(rows[order], w_q, w_k)
            np.testing.assert_allclose(wanted, home[np.ix_(order, order)], atol=1e-15)
            np.testing.assert_allclose(found["weights"], wanted, atol=rounding)
    states = [{"order": order, "who": who} for order in orders for who in range(3)]
    for state, sentence in bench.evaluate(SAID, ["attention", states]):
        who, words = state["who"], make.WORDS
        others = [f"“{words[k]}” {home[who, k]:.2f}" for k in range(3) if k != who]
        told = f"“{words[who]}” gives {' and '.join(others)} of its attention"
        moved = " ".join(words[int(digit)] for digit in state["order"])
        same = f"In “{moved}”, {told}, as in “{' '.join(words)}”."
        assert sentence == (f"{told}." if state["order"] == "012" else same)


HOME = "01234567"
PAIRS = list(itertools.combinations(range(8), 2))


def exchanged(one: int, other: int) -> str:
    digits = list(HOME)
    digits[one], digits[other] = digits[other], digits[one]
    return "".join(digits)


def states_of_the_sentence() -> list[dict[str, str]]:
    """As it is; each two numbers exchanged, and each two words; without words or numbers; mixed."""
    rng = np.random.default_rng(0)
    orders = ["".join(map(str, rng.permutation(8))) for _ in range(40)]
    return [
        {"tags": HOME},
        *({order: exchanged(*pair)} for pair in PAIRS for order in ("tags", "words")),
        {"given": "same"},
        {"given": "none"},
        *(dict(zip(("tags", "words"), pair, strict=True)) for pair in itertools.pairwise(orders)),
        *({"tags": order, "given": "same"} for order in orders),
    ]


def attention_of_the_third_head(
    model: minilm.MiniLM, tags: str = HOME, words: str = HOME, given: str = "sentence"
) -> Any:
    """By the reader of the extract, whose numbers are all those of the model."""
    tokens, places = model.sentences[0], [int(digit) for digit in tags]
    order = [tokens.index("dog")] * 8 if given == "same" else [int(digit) for digit in words]
    arrays = dict(model.arrays)
    mean = model.positions.mean(axis=0)
    rows = [mean] * 8 if given == "none" else model.positions[places]
    arrays["positions"] = np.vstack([rows, model.positions[8:]])
    terms = minilm.MiniLM(arrays, model.provenance).score_terms([tokens[k] for k in order])
    return softmax(terms[:, :, 2].sum(axis=(0, 1)))


@pytest.fixture(scope="module")
def model() -> minilm.MiniLM:
    return minilm.load(MINILM)


def test_the_head_of_the_exchange_is_the_model_s_own(bench: Page, model: minilm.MiniLM) -> None:
    """Before its data were rounded, the script gives what the model's own software gave."""
    data = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in make.exchange(model).items()
    }
    ((_, found),) = ask_of(bench, "exchange", [{}], **data)
    np.testing.assert_allclose(found["weights"], model.arrays["attention_0"][2], atol=1e-7)
    for state, one in ask_of(bench, "exchange", states_of_the_sentence()[1:60:7], **data):
        np.testing.assert_allclose(
            one["weights"], attention_of_the_third_head(model, **state), atol=1e-9
        )


def test_the_exchange_looks_where_the_model_does(bench: Page, model: minilm.MiniLM) -> None:
    """With rounded data the weights are the same to four decimals, and so is where each looks."""
    for state, found in ask_of(bench, "exchange", states_of_the_sentence()):
        wanted = attention_of_the_third_head(model, **state)
        np.testing.assert_allclose(found["weights"], wanted, atol=1e-4)
        assert found["looks"] == wanted.argmax(axis=1).tolist(), state


def test_what_the_figure_says_of_the_sentence(bench: Page, model: minilm.MiniLM) -> None:
    """Each token looks at the number one below its own, whichever two have changed places; but for
    one, if [CLS] and "dog" have. The sentence below the figure says so, with the right numbers."""
    exceptions = []
    for state, (_, sentence) in zip(
        ONE_EXCHANGE, bench.evaluate(SAID, ["exchange", ONE_EXCHANGE]), strict=True
    ):
        weights = attention_of_the_third_head(model, **state)
        tags = state.get("tags", HOME)
        asks = [place for place in range(8) if tags[place] != "0"]
        back = [tags.index(str(int(tags[place]) - 1)) for place in asks]
        lost = np.flatnonzero(weights.argmax(axis=1)[asks] != back)
        if len(lost):
            exceptions.append(state)
            assert sentence.startswith(f"{7 - len(lost)} of 7 look at the number before their own")
        else:
            least = np.floor(100 * weights[asks, back].min()) / 100
            assert f"with {least:.2f} or more" in sentence
            is_first_kept = tags[0] + state.get("words", HOME)[0] == "00"
            assert least >= (0.99 if is_first_kept else 0.92)
    assert exceptions == [{"tags": "21034567"}, {"words": "21034567"}]
    without = attention_of_the_third_head(model, given="none").diagonal(-1)
    assert sum(without < 0.2) == 6
    ((_, sentence),) = bench.evaluate(SAID, ["exchange", [{"given": "none"}]])
    assert f"more than {np.ceil(100 * without.max()) / 100:.2f}." in sentence
    ((_, sentence),) = bench.evaluate(SAID, ["exchange", [{"tags": exchanged(2, 5)}]])
    assert sentence.startswith("“.” looks at “dog”")


ONE_EXCHANGE: list[dict[str, str]] = [
    {},
    {"given": "same"},
    *({order: exchanged(*pair)} for pair in PAIRS for order in ("tags", "words")),
]
SAID = """([kind, states]) => {
  const spec = peLive.kinds[kind]({});
  return states.map((state) => [state, spec.says({ ...peLive.defaults(spec), ...state })]);
}"""


def test_table_is_moved_by_the_library_s_matrix(bench: Page) -> None:
    table = pe.sinusoidal_encoding(np.arange(30), 16, base=16, dtype=np.float64)
    for state, found in ask(
        bench, "table", step=[-12, -0.3, 0, 6.4], transposed=["0" * 8, "00001000", "1" * 8]
    ):
        step, flips = state["step"], [digit == "1" for digit in state["transposed"]]
        matrix = pe.rotation_matrix(step, 16, base=16)
        for i, flip in enumerate(flips):
            pair = slice(2 * i, 2 * i + 2)
            matrix[pair, pair] = matrix[pair, pair].T if flip else matrix[pair, pair]
            np.testing.assert_allclose(found["blocks"][i], matrix[pair, pair], atol=1e-13)
        np.testing.assert_allclose(found["rows"], table @ matrix, atol=1e-13)
        moved = pe.sinusoidal_encoding(np.arange(30) + step, 16, base=16, dtype=np.float64)
        back = pe.sinusoidal_encoding(np.arange(30) - step, 16, base=16, dtype=np.float64)
        np.testing.assert_allclose(
            found["rows"], np.where(np.repeat(flips, 2), back, moved), atol=1e-12
        )


def test_each_face_of_the_companion_is_the_library_s(bench: Page, model: minilm.MiniLM) -> None:
    """With its data before they were rounded; and nearly so with those that it has."""
    made = make.companion(model)
    data = {name: value.tolist() for name, value in made.items()}
    faces = ["table", "products", "learned", "added", "turned"]
    states = [{"face": face, "step": step} for face in faces for step in (-12, -0.3, 0, 3)]
    places = np.arange(30)
    _, values, vectors = make.hands(model)
    rounded = ask_of(bench, "companion", states)
    for (state, found), (_, near) in zip(
        ask_of(bench, "companion", states, **data), rounded, strict=True
    ):
        face, step = state["face"], state["step"]
        rows: Any = pe.sinusoidal_encoding(places + step, 16, base=16, dtype=np.float64)
        matrix = rows @ rows.T
        if face == "table":
            matrix = pe.rotation_matrix(step, 16, base=16)
        elif face == "added":
            order = [0, 1, 2, 0, 3, 4, 0, 3, 2, 0, 1]  # the dog sees the cat and the cat sees …
            rows = made["words"][order] + rows[:11]
            matrix = rows @ rows.T
        elif face == "turned":
            rows, keys = (
                pe.rotate(np.tile(row, (30, 1)), places + step, base=16, layout="interleaved")
                for row in made["head"]
            )
            matrix = rows @ keys.T
        elif face == "learned":
            rows = interleaved(make.hands(model)[0][:30] @ vectors * values**step)
            turns = [[[v.real, -v.imag], [v.imag, v.real]] for v in values**step]
            matrix = block_diag(*turns)
        np.testing.assert_allclose(found["rows"], rows, atol=1e-12)
        np.testing.assert_allclose(found["matrix"], matrix, atol=1e-11)
        np.testing.assert_allclose(near["rows"], found["rows"], atol=1e-3)
        np.testing.assert_allclose(near["matrix"], found["matrix"], atol=1e-2)


def interleaved(hands: Any) -> Any:
    """Complex numbers as pairs of a sine and a cosine."""
    return np.stack([hands.imag, hands.real], axis=-1).reshape(len(hands), -1)


def test_the_hands_of_the_companion_are_turned_by_the_matrix_of_all_rows(
    model: minilm.MiniLM,
) -> None:
    ten, values, vectors = make.hands(model)
    three_on = ten @ np.linalg.matrix_power(make.shift(ten), 3) @ vectors
    np.testing.assert_allclose(three_on, ten @ vectors * values**3, atol=1e-9)


def test_what_the_companion_says_stays_where_all_rows_move(bench: Page) -> None:
    """The dot products of codes, and the scores of queries that are turned; not those of sums."""
    for face, stays in (("products", True), ("turned", True), ("added", False)):
        states = [{"face": face, "step": step} for step in (0, 5)]
        (_, before), (_, after) = ask_of(bench, "companion", states)
        assert np.allclose(before["matrix"], after["matrix"]) == stays
        assert not np.allclose(before["rows"], after["rows"])


def test_digits_are_binary_and_their_waves_step_evenly(bench: Page) -> None:
    places = np.arange(32)
    bits = places[:, None] >> np.arange(4) & 1
    for state, found in ask(bench, "digits", x=[0, 11, 31], soft=[0]):
        assert found["code"] == bits[state["x"]].tolist()
        flips = np.abs(np.diff(bits, axis=0)).sum(axis=1)
        np.testing.assert_allclose(found["steps"], np.sqrt(flips), atol=1e-12)
    for state, found in ask(bench, "digits", x=[0, 11], soft=[1], read=["sine", "both"]):
        turns = np.pi * (places[:, None] + 0.5) / 2 ** np.arange(4)
        waves = (
            np.dstack([np.sin(turns), np.cos(turns)]) if state["read"] == "both" else np.sin(turns)
        )
        code = (1 - waves.reshape(32, -1)) / 2
        np.testing.assert_allclose(found["code"], code[state["x"]], atol=1e-12)
        lengths = np.linalg.norm(np.diff(code, axis=0), axis=1)
        np.testing.assert_allclose(found["steps"], lengths, atol=1e-12)
        assert (np.ptp(lengths) < 1e-9) == (state["read"] == "both")


def test_a_byte_wraps_as_numpy_s_does(bench: Page) -> None:
    for state, found in ask(bench, "byte", x=[0, 6, 7, 100], add=[1, 37, 255]):
        product = np.array([state["x"]], dtype=np.uint8) * np.uint8(state["add"])
        assert found["byte"] == product[0]
        assert found["sum"] == state["x"] * state["add"] == 256 * found["turns"] + found["byte"]


def test_crank_turns_the_hands_of_the_table(bench: Page, model: minilm.MiniLM) -> None:
    """As the chapter on the trained model fits them; the data are rounded to 16 bits."""
    learned = model.positions[1:507] - model.positions[1:507].mean(axis=0)
    u, s, _ = np.linalg.svd(learned, full_matrices=False)
    ten = (u * s)[:, :10]
    values, vectors = np.linalg.eig(np.linalg.lstsq(ten[:-1], ten[1:])[0])
    fastest = np.argsort(-np.angle(values))[:4]
    hands = ten @ vectors[:, fastest]
    size = np.median(np.abs(hands), axis=0)
    half = np.linalg.lstsq(ten[:249], ten[1:250])[0]
    # An eigenvector is known up to a factor: compare what it cannot change.
    start = hands[0] / size
    places = [1, 2, 140, 250, 251, 380, 506]
    (_, first), *_ = ask(bench, "crank", x=[1])
    begin = np.array([complex(up, across) for across, up in first["hands"]])
    np.testing.assert_allclose(np.abs(begin), np.abs(start), atol=1e-3)
    for state, found in ask(bench, "crank", x=places, steps=[1, 20]):
        x, steps = state["x"], state["steps"]
        shown = np.array([complex(up, across) for across, up in found["hands"]])
        np.testing.assert_allclose(shown / begin, hands[x - 1] / size / start, atol=2e-3)
        if x <= 250:
            assert found["ghosts"] is None
            continue
        predicted = ten[x - 1 - steps] @ np.linalg.matrix_power(half, steps) @ vectors[:, fastest]
        ghost = np.array([complex(up, across) for across, up in found["ghosts"]])
        np.testing.assert_allclose(ghost / begin, predicted / size / start, atol=5e-3)
        missed = ten[250 + steps :] - ten[250:-steps] @ np.linalg.matrix_power(half, steps)
        explained = 1 - np.sum(missed**2) / np.sum(ten[250 + steps :] ** 2)
        assert found["explained"] == pytest.approx(explained, abs=5e-4)
    turns = 2 * np.pi / np.angle(values[fastest])
    assert bench.evaluate("peLive.kinds.crank({}).says({ x: 1, steps: 1 })")
    assert [f"a turn in {turn:.0f}" for turn in turns] == bench.evaluate(TURNS)


TURNS = """() => peLive.kinds.crank({}).draw({ x: 1, steps: 1 }, true).parts.join("")
  .match(/a turn in \\d+/g)"""


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
        *(getattr(live, kind)() for kind in live.KINDS if kind != "frames"),
        live.clock(5, step=3),
        live.orbit(decay=0.05),
        live.similarity(64, base=100, offset=7),
        live.subspaces(8),
        live.attention("201", who=1),
        live.exchange("01534267"),
        live.table(6.4, transposed="00001000"),
        live.crank(380),
        live.companion("added", step=3),
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


# ---- Motion --------------------------------------------------------------------------------------


@contextmanager
def staged(
    browser: Browser, figure: LiveFigure, setting: dict[str, Any] = DESK, *, calm: bool = False
) -> Iterator[Locator]:
    """A figure that lives on an empty page."""
    motion: Any = "reduce" if calm else "no-preference"
    with browser.new_page(reduced_motion=motion, **setting) as page:
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        box = live.box(figure.kind, "Why?", figure.state, dict(figure.data))
        page.set_content(f'<!doctype html><meta name=viewport content="width=device-width">{box}')
        page.add_style_tag(path=live.FOLDER / "kit.css")
        add_scripts(page, figure.kind)
        page.evaluate("document.querySelectorAll('.live').forEach(peLive.hydrate)")
        yield page.locator(".live")
        assert errors == []


# The line or circle that a selector shows, by its attributes.
SHOWN = """(selector) => {
  const part = [...document.querySelectorAll(selector)].find((one) => one.checkVisibility());
  return ["x1", "y1", "x2", "y2"].map((name) => Number(part.getAttribute(name)));
}"""
PRESS = """(press) => {
  const box = document.querySelector(".live");
  if (press.state) box.dispatchEvent(new CustomEvent("set-state", { detail: press.state }));
  else [...box.querySelectorAll("button")].find((one) => one.textContent === press.button).click();
}"""
HAND = ".is-position.is-before > .hand"
PRESSES = [{"button": "Same Δx, another x"}, {"state": {"x": "11"}}]


def frames(page: Page, act: Callable[[], object]) -> list[list[float]]:
    """The hand before an act, right after it, and in the frames of the 600 ms that follow.

    The clock of the page stands still and is moved frame by frame, so that a busy machine leaves
    none out.
    """
    page.clock.install()
    page.clock.pause_at(datetime.now() + timedelta(seconds=1))
    shown = [page.evaluate(SHOWN, HAND)]
    act()
    shown.append(page.evaluate(SHOWN, HAND))
    for _ in range(30):
        page.clock.run_for(20)
        shown.append(page.evaluate(SHOWN, HAND))
    page.clock.resume()
    return shown


def bearing(line: list[float]) -> float:
    x1, y1, x2, y2 = line
    return float(np.degrees(np.arctan2(x2 - x1, y1 - y2)))


@pytest.mark.parametrize("press", PRESSES, ids=["preset", "phrase"])
def test_a_new_state_is_reached_along_the_angle(browser: Browser, press: dict[str, Any]) -> None:
    """The hand of ω = 1 turns by 8 radians; in between it keeps its length."""
    with staged(browser, live.clock(3)) as figure:
        page = figure.page
        shown = frames(page, lambda: page.evaluate(PRESS, press))
        expect(figure.locator(".live__value").first).to_have_text("11")
    lengths = [np.hypot(x2 - x1, y2 - y1) for x1, y1, x2, y2 in shown]
    np.testing.assert_allclose(lengths, 48, atol=0.02)
    assert bearing(shown[-1]) == pytest.approx(np.degrees(11) % 360 - 360, abs=0.1)
    assert shown[1] == shown[0], "it jumped"
    turns = np.unwrap([bearing(one) for one in shown], period=360)
    assert np.count_nonzero(np.diff(turns)) >= 10
    assert turns[-1] - turns[0] == pytest.approx(np.degrees(8), abs=0.1)
    assert np.diff(turns).min() >= 0


@pytest.mark.parametrize("press", PRESSES, ids=["preset", "phrase"])
def test_nothing_glides_where_motion_is_not_wanted(browser: Browser, press: Any) -> None:
    with staged(browser, live.clock(3), calm=True) as figure:
        page = figure.page
        before, *after = frames(page, lambda: page.evaluate(PRESS, press))
    assert all(one == after[-1] != before for one in after)


def test_a_hand_that_is_let_go_glides_to_its_step(browser: Browser) -> None:
    with staged(browser, live.clock(3)) as figure:
        page, mouse = figure.page, figure.page.mouse
        mouse.move(*middle(figure.locator('.live-picture--wide .tip[data-handle="x 3"]')))
        mouse.down()
        cx, cy = middle(figure.locator(".live-picture--wide .dial").nth(3))
        mouse.move(cx + 40 * np.sin(0.55), cy - 40 * np.cos(0.55))  # x = 4.4
        expect(figure.locator(".live__value").first).to_have_text("4.4")
        shown = frames(page, mouse.up)
        expect(figure.locator(".live__value").first).to_have_text("4")
    assert len({tuple(one) for one in shown}) >= 5


def test_what_a_held_hand_moves_is_lit(browser: Browser) -> None:
    with staged(browser, live.clock(3)) as figure:
        page, picture = figure.page, figure.locator(".live-picture--wide")
        page.mouse.move(*middle(picture.locator(HAND).nth(1)))
        page.mouse.down()
        for lit in ("x", "moved", "after"):
            expect(picture.locator(f".tie-{lit}").first).to_have_css("opacity", "1")
        expect(picture.locator(".tie-matrix:not(.tie-moved)").first).to_have_css("opacity", "0.4")
        expect(figure.locator('.live__formula [data-light="after"]')).not_to_have_css(
            "background-color", "rgba(0, 0, 0, 0)"
        )
        page.mouse.up()
        page.mouse.move(0, 0)
        expect(picture.locator(".tie-matrix").first).to_have_css("opacity", "1")


def test_no_ring_of_focus_goes_round_a_slider_while_a_hand_is_dragged(browser: Browser) -> None:
    with staged(browser, live.clock(3)) as figure:
        page = figure.page
        page.keyboard.press("Tab")  # a reader who uses keys as well
        page.mouse.move(*middle(figure.locator(f".live-picture--wide {HAND}").nth(1)))
        page.mouse.down()
        slider = figure.locator('input[data-key="x"]')
        expect(slider).to_be_focused()
        expect(slider).to_have_css("outline-style", "none")
        page.mouse.up()
        expect(slider).to_have_css("outline-style", "none")
        page.keyboard.press("ArrowRight")  # which goes on from there, and then shows where it is
        expect(slider).to_have_css("outline-style", "solid")


def test_query_and_key_are_both_seen_where_they_meet(browser: Browser) -> None:
    """At each dial the dot of the query stands in the ring of the key."""
    seen = """([x, y]) => document.elementFromPoint(x, y).dataset.handle"""
    with staged(browser, live.rope(3, 2)) as figure:
        picture = figure.locator(".live-picture--wide")
        for dial in range(4):
            dot = picture.locator(f'.tip[data-handle="m {dial}"]')
            ring = picture.locator(f'.ring[data-handle="n {dial}"]')
            np.testing.assert_allclose(middle(dot), middle(ring), atol=0.6)
            place = ring.bounding_box()
            assert place
            x, y = middle(ring)
            assert figure.page.evaluate(seen, [x, y]) == f"m {dial}"
            for angle in np.arange(8) * np.pi / 4:
                edge = [
                    x + place["width"] / 2.1 * np.cos(angle),
                    y + place["width"] / 2.1 * np.sin(angle),
                ]
                if figure.page.evaluate(seen, edge) == f"n {dial}":
                    break
            else:
                pytest.fail("the key is under the query")
        assert picture.locator(".hand.thick").count() == 4


# ---- The three large figures ---------------------------------------------------------------------


def drag(page: Page, start: tuple[float, float], *places: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    for place in places:
        page.mouse.move(*place)
    page.mouse.up()


def shown(figure: Locator, form: str = "wide") -> Locator:
    return figure.locator(f".live-picture--{form}")


def test_a_tag_that_is_dragged_onto_another_word(browser: Browser) -> None:
    with staged(browser, live.exchange()) as figure:
        page, picture, says = figure.page, shown(figure), figure.locator(".live__says")
        five, two = (middle(picture.locator(f'[data-handle="tag {k}"]')) for k in (5, 2))
        drag(page, five, (five[0] - 40, five[1] - 10), two)
        expect(says).to_contain_text("“.” looks at “dog”")
        expect(picture.locator('[data-handle="tag 5"]')).to_have_attribute(
            "aria-valuetext", "under “dog”"
        )
        figure.get_by_role("button", name="Reset").click()
        five = middle(picture.locator('[data-handle="word 5"]'))
        drag(page, five, middle(picture.locator('[data-handle="word 2"]')))
        expect(says).to_contain_text("Words have moved, and no arc has")
        dropped = middle(picture.locator('[data-handle="tag 1"]'))
        drag(page, dropped, (dropped[0], dropped[1] + 400))  # nowhere: it returns
        expect(says).to_contain_text("no arc has")


def test_a_tag_that_keys_move(browser: Browser) -> None:
    with staged(browser, live.exchange()) as figure:
        tag, says = shown(figure).locator('[data-handle="tag 5"]'), figure.locator(".live__says")
        tag.focus()
        tag.press("2")
        expect(says).to_contain_text("“.” looks at “dog”")
        expect(tag).to_be_focused()
        expect(tag).to_have_css("outline-style", "solid")
        tag.press("ArrowRight")
        expect(tag).to_have_attribute("aria-valuenow", "3")
        tag.press("End")
        tag.press("ArrowRight")  # it is at the end
        expect(tag).to_have_attribute("aria-valuenow", "7")
        assert shown(figure).get_attribute("role") == "group"


def test_a_finger_exchanges_two_numbers(browser: Browser) -> None:
    with staged(browser, live.exchange(), PHONE | {"has_touch": True}) as figure:
        picture = shown(figure, "narrow")
        five, two = (picture.locator(f'[data-handle="tag {k}"]') for k in (5, 2))
        for target in (five, picture.locator('[data-handle="word 3"]')):
            place = target.bounding_box()
            assert place
            assert min(place["width"], place["height"]) >= 40
        (x, y), end = middle(five), middle(two)
        swipe(figure.page, (x, y), (x - 30, y), ((x + end[0]) / 2, y), end)
        expect(figure.locator(".live__says")).to_contain_text("“.” looks at “dog”")


def test_words_that_are_dragged_tapped_and_moved_by_keys(browser: Browser) -> None:
    with staged(browser, live.attention()) as figure:
        picture, says = shown(figure), figure.locator(".live__says")
        dog, man = (middle(picture.locator(f'[data-handle="looks {k}"]')) for k in (0, 2))
        drag(figure.page, dog, (dog[0] + 40, dog[1] + 10), man)
        expect(says).to_contain_text("In “man bites dog”, “dog” gives")
        below = middle(picture.locator('[data-handle="looked 0"]'))
        drag(figure.page, below, (below[0] - 40, below[1]), (man[0] + 400, man[1] + 600))
        expect(says).to_contain_text("In “man bites dog”")  # dropped nowhere
        picture.locator('[data-handle="looked 1"]').click()
        expect(says).to_contain_text("“bites” gives “dog”")
        expect(figure.get_by_role("button", name="bites", exact=True)).to_have_attribute(
            "aria-pressed", "true"
        )
        word = picture.locator('[data-handle="looks 0"]')
        word.focus()
        word.press("ArrowLeft")
        expect(says).to_contain_text("In “man dog bites”")
        expect(word).to_have_attribute("aria-valuetext", "place 2")
        word.press("Home")
        word.press("ArrowLeft")  # it is at the beginning
        expect(word).to_have_attribute("aria-valuenow", "1")


def test_a_finger_exchanges_two_words(browser: Browser) -> None:
    with staged(browser, live.attention(), PHONE | {"has_touch": True}) as figure:
        picture = shown(figure, "narrow")
        (x, y), end = (middle(picture.locator(f'[data-handle="looks {k}"]')) for k in (0, 2))
        swipe(figure.page, (x, y), (x + 30, y), end)
        expect(figure.locator(".live__says")).to_contain_text("In “man bites dog”")


def test_a_face_of_the_companion_comes_slowly_and_keeps_the_step(browser: Browser) -> None:
    """And at once where motion is not wanted."""
    watch = """() => new Promise((resolve) => {
      const seen = [];
      const started = performance.now();
      const look = () => {
        const fades = document.querySelectorAll(".live-picture--wide > g[opacity]");
        seen.push(...[...fades].map((one) => Number(one.getAttribute("opacity"))));
        if (performance.now() < started + 600) requestAnimationFrame(look);
        else resolve(seen);
      };
      const set = new CustomEvent("set-state", { detail: { face: "products" } });
      document.querySelector(".live").dispatchEvent(set);
      look();
    })"""
    for calm in (False, True):
        with staged(browser, live.companion(step=3), calm=calm) as figure:
            faded = figure.page.evaluate(watch)
            assert any(0 < one < 1 for one in faded) != calm
            expect(shown(figure).locator("g[opacity]")).to_have_count(0)
            expect(figure.locator(".live__value").first).to_have_text("3")
            expect(figure.locator(".live__says")).to_contain_text("as before")


def test_the_companion_is_pulled_turned_and_tapped(browser: Browser) -> None:
    with staged(browser, live.companion("turned"), PHONE | {"has_touch": True}) as figure:
        page, picture, values = figure.page, shown(figure, "narrow"), figure.locator(".live__value")
        place = picture.locator('[data-handle="table"]').bounding_box()
        assert place
        row = place["height"] / 30
        x, y = place["x"] + 50, place["y"] + 20.5 * row
        swipe(page, (x, y), (x, y - 2 * row), (x, y - 4 * row))
        expect(values).to_have_text(["4", "20"])
        expect(figure.locator(".live__says")).to_contain_text("as it did at 20 and 17")
        square = picture.locator('[data-handle="matrix"]').bounding_box()
        assert square
        swipe(page, (square["x"] + 20, square["y"] + square["height"] * 5.5 / 30))
        expect(values).to_have_text(["4", "5"])
        cx, cy = middle(picture.locator(".dial").nth(2))
        before = float(values.first.inner_text())
        places = [(cx + 9 * np.sin(a), cy - 9 * np.cos(a)) for a in np.arange(0, 1.5, 0.25)]
        swipe(page, *places)
        assert float(values.first.inner_text().replace("−", "-")) != before
        figure.locator('input[data-key="step"]').press("Home")
        expect(values.first).to_have_text("−12")


def test_a_table_that_is_pulled_by_any_amount(browser: Browser) -> None:
    with staged(browser, live.table()) as figure:
        page, picture, values = figure.page, shown(figure), figure.locator(".live__value")
        place = picture.locator('[data-handle="table"]').bounding_box()
        assert place
        row = place["height"] / 30
        x, y = place["x"] + 50, place["y"] + 20.5 * row
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, y - 3 * row)
        page.mouse.move(x, y - 6.4 * row)
        expect(values).to_have_text(["6.4", "20"])  # it was taken hold of at row 20
        page.mouse.up()
        expect(figure.locator(".live__says")).to_contain_text("every row x to x + 6.4")
        clock = middle(picture.locator('[data-handle="clock 3"]').last)
        drag(page, clock)  # a tap
        expect(figure.locator(".live__says")).to_contain_text("Block 4 is transposed")
        drag(page, clock)
        block = picture.locator('[data-handle="block 6"]')
        drag(page, middle(block))
        expect(block).to_have_attribute("aria-checked", "true")
        block.press("Enter")
        expect(block).to_have_attribute("aria-checked", "false")


def test_a_clock_that_is_turned_moves_the_table(browser: Browser) -> None:
    with staged(browser, live.table(0, 0)) as figure:
        clock = shown(figure).locator(".grip:has(> .dial)").nth(2)
        cx, cy = middle(clock.locator(".dial"))
        places = [(cx + 20 * np.sin(a), cy - 20 * np.cos(a)) for a in (0, 0.5, 1, 1.5)]
        drag(figure.page, *places)
        expect(figure.locator(".live__value").first).to_have_text("3")  # 1.5 over ω = 1/2


def test_the_fourth_hand_turns_the_first(browser: Browser) -> None:
    with staged(browser, live.crank(140)) as figure:
        dial = shown(figure).locator(".grip:has(> .dial)").nth(3)
        cx, cy = middle(dial.locator(".dial"))
        x, y = middle(dial.locator(".tip").last)
        start = np.arctan2(x - cx, cy - y)
        places = [(cx + 50 * np.sin(start + a), cy - 50 * np.cos(start + a)) for a in (0, 0.2, 0.4)]
        drag(figure.page, *places)
        slider = figure.locator('input[data-key="x"]')
        moved = int(slider.input_value()) - 140
        assert 7 <= moved <= 13  # more than a turn of the first, a sixteenth of one of the fourth
        figure.get_by_role("button", name="Six on").click()
        expect(slider).to_have_value(str(146 + moved))
        tape = shown(figure).locator('[data-handle="tape"]').bounding_box()
        assert tape
        drag(figure.page, (tape["x"] + 0.75 * tape["width"], tape["y"] + 10))
        expect(figure.locator(".live__says")).to_contain_text("predicted from the row before")


@pytest.mark.parametrize("setting", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("kind", sorted(set(live.KINDS) - {"frames"}))
def test_a_figure_keeps_its_height(browser: Browser, kind: str, setting: dict[str, Any]) -> None:
    """Or what stands below would move. Its sentence has two lines at most."""
    with staged(browser, getattr(live, kind)(), setting, calm=True) as figure:
        figure.page.add_style_tag(content="body { margin: 0 16px }")
        before = figure.bounding_box()
        for button in figure.locator("[data-preset], [data-set]").all():
            button.click()
            assert figure.bounding_box() == pytest.approx(before, abs=0.5), button.inner_text()


@pytest.mark.parametrize("kind", sorted(set(live.KINDS) - {"frames"}))
def test_a_finger_has_room(browser: Browser, kind: str) -> None:
    with staged(
        browser, getattr(live, kind)(), PHONE | {"has_touch": True, "is_mobile": True}
    ) as box:
        for control in box.locator("button:visible, input:visible").all():
            place = control.bounding_box()
            assert place
            assert place["height"] >= 44, control
