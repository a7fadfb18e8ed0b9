"""The drawings on the cards (website/cards.py): one for each page, from the book's data.

Each function is named after a page and returns the inside of an SVG element of SIDE × SIDE pixels.
A card is mostly seen a third as large, in a chat on a phone: there is one thing to look at, lines
are thick, letters large and few, and there are no axes. A colour means what it means in every
figure of the book (pe_book/plots.py).
"""

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
import yaml
from numpy.typing import NDArray

from experiments import length_transfer
from pe_book import encodings, minilm, published_tables
from pe_book.attention import attention_weights, softmax
from pe_book.dark import DIVERGING
from pe_book.live.data import make
from pe_book.plots import AFTER_STEP, ERROR, GREY, INK, LIGHT_GREY, POSITION, SHADE, STEP, WORD
from pe_lib import numpy as pe
from pe_lib.torch import RotaryPositionalEncoding, rotary_frequencies
from website.cards import BOOK, statements, verdicts

Array = NDArray[np.floating]
Point = tuple[float, float]
Look = float | str

SIDE = 520
SMALL, LARGE = 40, 58  # px of letters: 12 and 17 px where the card is shown 360 px wide
WHITE = "#fff"


# ---- What drawings are made of


def element(name: str, /, *inside: str, **attributes: Look) -> str:
    """An element of SVG. Numbers have one decimal, so that every processor draws the same."""
    said = (f'{key.replace("_", "-")}="{short(value)}"' for key, value in attributes.items())
    return f"<{name} {' '.join(said)}>{''.join(inside)}</{name}>"


def short(value: Look) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def disc(at: Point, radius: float, colour: str) -> str:
    return element("circle", cx=at[0], cy=at[1], r=radius, fill=colour)


def ring(at: Point, radius: float, colour: str, width: float) -> str:
    look: dict[str, Look] = {"fill": "none", "stroke": colour, "stroke_width": width}
    return element("circle", cx=at[0], cy=at[1], r=radius, **look)


def box(left: float, top: float, width: float, height: float, **look: Look) -> str:
    return element("rect", x=left, y=top, width=width, height=height, **look)


def curve(way: str, colour: str, width: float, **look: Look) -> str:
    ends: dict[str, Look] = {"stroke_linecap": "round", "stroke_linejoin": "round"}
    drawn: dict[str, Look] = {"d": way, "fill": "none", "stroke": colour, "stroke_width": width}
    return element("path", **(ends | drawn | look))


def line(points: Iterable[Point], colour: str, width: float, **look: Look) -> str:
    """A line through points."""
    way = "M" + " ".join(f"{short(float(x))},{short(float(y))}" for x, y in points)
    return curve(way, colour, width, **look)


def text(at: Point, said: str, size: float, colour: str = INK, **look: Look) -> str:
    return element("text", said, x=at[0], y=at[1], font_size=size, fill=colour, **look)


def written(at: Point, said: str, size: float, colour: str = INK, **look: Look) -> str:
    """A text in the middle of a point."""
    return text((at[0], at[1] + 0.33 * size), said, size, colour, text_anchor="middle", **look)


def tip(centre: Point, radius: float, angle: float) -> Point:
    """Where the hand of a clock points that has turned by an angle."""
    return centre[0] + radius * float(np.sin(angle)), centre[1] - radius * float(np.cos(angle))


def arc(
    centre: Point, radius: float, start: float, end: float, colour: str, width: float, **look: Look
) -> str:
    """A part of a circle, clockwise."""
    angles = np.linspace(start, end, max(2, round((end - start) / 0.05)))
    return line((tip(centre, radius, angle) for angle in angles), colour, width, **look)


def heat_map(matrix: Array, left: float, top: float, width: float, height: float) -> str:
    """A signed matrix in the colours of `plots.heat_map`."""
    down, across = height / len(matrix), width / len(matrix[0])
    shares = 0.5 + 0.5 * matrix / np.abs(matrix).max()
    colours = mpl.colormaps[DIVERGING](np.rint(255 * shares).astype(int))
    cells = [
        box(
            left + column * across,
            top + row * down,
            across,
            down,
            fill=mpl.colors.to_hex(colours[row, column]),
        )
        for row, column in np.ndindex(matrix.shape)
    ]
    return element("g", "".join(cells), shape_rendering="crispEdges")


def marks(groups: Iterable[tuple[int, str, str]]) -> str:
    """Rows of marks to be counted: for each group how many, what they are, and their form."""
    drawn, top, across = [], 0.0, 9
    for count, name, form in groups:
        colour = POSITION if form == "full" else INK
        drawn.append(text((0, top + 40), str(count), 52, colour, font_weight=600))
        drawn.append(text((70, top + 40), name, 44, colour))
        for k in range(count):
            at = 24 + 58.0 * (k % across), top + 81 + 54 * (k // across)
            drawn.append(disc(at, 22, colour) if form == "full" else ring(at, 20, colour, 4))
            if form == "half":
                left, low = short(at[0] - 20), short(at[1])
                drawn.append(element("path", d=f"M{left},{low}a20,20 0 0 0 40,0z", fill=colour))
            if form == "most":
                middle, low = short(at[0]), short(at[1])
                path = f"M{middle},{low}v-20a20,20 0 1 0 20,20z"
                drawn.append(element("path", d=path, fill=colour))
        top += 58 + 54 * -(-count // across) + 14
    return "".join(drawn)


# ---- The drawings


def index() -> str:
    """Seven learned positions in a row, on the ring of MiniLM's fastest hand."""
    _, hands = minilm_hands()
    centre, radius = (260.0, 260.0), 190
    points = [hand_at(centre, radius, hand) for hand in hands[:, 0]]
    drawn = [disc(point, 4, LIGHT_GREY) for point in points]
    first = 136
    numbered = points[first : first + 7]
    drawn.append(line(numbered, POSITION, 6))
    for number, point in enumerate(numbered, start=1):
        drawn.append(disc(point, 33, POSITION))
        drawn.append(written(point, str(number), 42, WHITE, font_weight=600))
    return "".join(drawn)


def tour() -> str:
    """The third head of MiniLM's first layer, when two words have exchanged their numbers."""
    model = minilm.load(BOOK / "data" / "minilm")
    tokens = model.sentences[0]
    numbers = list(range(len(tokens)))
    dog, man = tokens.index("dog"), tokens.index("man")
    numbers[dog], numbers[man] = man, dog
    looks = third_head(model, tokens, numbers).argmax(axis=1)
    words = [k for k, token in enumerate(tokens) if not token.startswith("[")]
    height = {word: SIDE / len(words) * (n + 0.5) for n, word in enumerate(words)}
    drawn = []
    for word, y in height.items():
        drawn.append(text((176, y + 17), tokens[word], 60, WORD, text_anchor="end"))
        moved = numbers[word] != word
        at = 234.0, y
        drawn.append(disc(at, 35, POSITION) if moved else ring(at, 33, POSITION, 4))
        colour = WHITE if moved else POSITION
        drawn.append(written(at, str(numbers[word]), 44, colour, font_weight=600))
        if looks[word] in height:
            drawn.append(look(y, height[looks[word]]))
    return "".join(drawn)


def look(start: float, end: float) -> str:
    """An arrow from a word to the one that it looks at, on the right of both."""
    out = 290 + 1.33 * (66 + 0.46 * abs(end - start))
    x, y, foot = short(out), short(start), short(end)
    way = f"M288,{y}C{x},{y} {x},{foot} 304,{foot}"
    head = element("path", d=f"M284,{foot}l28,-16v32z", fill=STEP)
    return curve(way, STEP, 7, stroke_linecap="butt") + head


def third_head(model: minilm.MiniLM, tokens: list[str], numbers: list[int]) -> Array:
    """The weights of the third head of the first layer, if words stand at these places."""
    arrays, part = model.arrays, slice(64, 96)
    rows = model.word_rows(tokens) + model.positions[numbers] + arrays["token_type"]
    rows = rows - rows.mean(axis=1, keepdims=True)
    variance = (rows**2).mean(axis=1, keepdims=True) + model.provenance["layer_norm_epsilon"]
    rows = rows / np.sqrt(variance) * arrays["norm_gain"] + arrays["norm_bias"]
    queries, keys = (rows @ arrays[f"w_{x}"][:, part] + arrays[f"b_{x}"][part] for x in "qk")
    return softmax(queries @ keys.T / np.sqrt(32))


def folklore() -> str:
    """The sentences by their verdicts."""
    count = verdicts()
    return marks(
        [
            (count["true"], "true", "full"),
            (count["incomplete"], "incomplete", "most"),
            (count["half"], "half true", "half"),
            (count["not"], "not so, or not why", "none"),
        ]
    )


def why_order() -> str:
    """How much “dog” looks at “man” in two headlines, in the head of the tour's first figure."""
    words = ["dog", "bites", "man"]
    embedded = np.random.default_rng(36).normal(size=(3, 8))
    wq, wk, _ = np.random.default_rng(11).normal(0, 8**-0.5, (3, 8, 8))
    drawn = []
    for order, foot in (([0, 1, 2], 216), ([2, 1, 0], 486)):
        weights = attention_weights(embedded[order], wq, wk)
        dog, man = order.index(0), order.index(2)
        places = 70, 262, 446
        for place, word in zip(places, order, strict=True):
            drawn.append(text((place, foot), words[word], 70, WORD, text_anchor="middle"))
        start, end, low, high = places[dog], places[man], foot - 70, foot - 222
        way = f"M{start},{low}C{start},{high} {end},{high} {end},{low - 24}"
        drawn.append(curve(way, STEP, 36 * weights[dog, man], stroke_linecap="butt"))
        drawn.append(element("path", d=f"M{end - 22},{low - 34}h44l-22,40z", fill=STEP))
        said = f"{weights[dog, man]:.2f}"
        drawn.append(written((258, foot - 110), said, LARGE, STEP, font_weight=600))
    return "".join(drawn)


def conditions() -> str:
    """Which codes break which of the five conditions: the left half of the page's scorecard."""
    random_rows = np.random.default_rng(0).normal(size=(2048, 64))
    codes: dict[str, encodings.Rule] = {
        "index": encodings.ENCODINGS["index"],
        "divided": encodings.ENCODINGS["normalised"],
        "binary": encodings.ENCODINGS["binary"],
        "one sine": encodings.ENCODINGS["sin x/10000"],
        "random": lambda x, _: random_rows[x],
        "one clock": encodings.ENCODINGS["slow pair"],
        "two clocks": lambda x, _: pe.sinusoidal_encoding(x, 4, dtype=np.float64),
        "32 clocks": encodings.ENCODINGS["sinusoid"],
    }
    drawn = []
    for row, (name, rule) in enumerate(codes.items()):
        y = SIDE / len(codes) * (row + 0.5)
        *four, gap, ties = encodings.measure(rule, 2048).met()
        met = (*four, gap and ties)
        colour, weight = (POSITION, 600) if all(met) else (INK, 400)
        look: dict[str, Look] = {"text_anchor": "end", "font_weight": weight}
        drawn.append(text((204, y + 14), name, 43, colour, **look))
        for column, kept in enumerate(met):
            at = 256.0 + 60 * column, y
            if kept:
                drawn.append(disc(at, 15, POSITION) if all(met) else disc(at, 7, LIGHT_GREY))
            else:
                cross = f"M{short(at[0] - 16)},{short(y - 16)}l32,32m0,-32l-32,32"
                drawn.append(curve(cross, ERROR, 10))
    return "".join(drawn)


def rotation() -> str:
    """The table with the rows x and x + Δx framed, and the clocks that turn to the second."""
    pairs, rows, x, step, top = 4, 11, 3, 2, 146.0
    omega = 16.0 ** (-np.arange(pairs) / pairs)
    angles = np.multiply.outer(np.arange(rows), omega)
    table = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(rows, -1)
    drawn = [heat_map(table, 0, top, SIDE, SIDE - top)]
    for row, colour in ((x, POSITION), (x + step, AFTER_STEP)):
        down = (SIDE - top) / rows
        for shade, width in ((WHITE, 12), (colour, 7)):
            look: dict[str, Look] = {"fill": "none", "stroke": shade, "stroke_width": width}
            drawn.append(box(-4, top + row * down, SIDE + 8, down, **look))
    for pair, speed in enumerate(omega):
        centre, radius = (SIDE / pairs * (pair + 0.5), 62.0), 56
        before, after = speed * x, speed * (x + step)
        drawn.append(ring(centre, radius, LIGHT_GREY, 3))
        drawn.append(arc(centre, 0.5 * radius, before, after, STEP, 6))
        for angle, colour in ((before, POSITION), (after, AFTER_STEP)):
            end = tip(centre, radius, angle)
            drawn.append(line([centre, end], colour, 7) + disc(end, 11, colour))
    return "".join(drawn)


def dot_product() -> str:
    """The similarity of two rows, falling by the same steps as the offset doubles."""
    first, last = 3, 7  # powers of two: before, hands have hardly turned; after, there are ripples

    def similarity(power: float) -> float:
        return float(pe.similarity(np.array([2.0**power]), 512)[0])

    most, least = similarity(first), similarity(last)

    def at(power: float) -> Point:
        across = (power - first) / (last - first)
        return 20 + 480 * across, 425 * (most - similarity(power)) / (most - least)

    drawn = []
    for power in range(first, last):
        (left, high), (right, lower) = at(power), at(power + 1)
        drawn.append(line([(left, high), (right, high), (right, lower)], STEP, 5))
    drawn.append(line((at(power) for power in np.linspace(first, last, 241)), INK, 8))
    for power in range(first, last + 1):
        drawn.append(text((at(power)[0], 512), str(2**power), 43, STEP, text_anchor="middle"))
    drawn.append(text((6, 452), "places apart", 43, STEP))
    return "".join(drawn)


def converse() -> str:
    """Nine random numbers that go round, and the four circles that they turn out to be."""
    row = np.random.default_rng(1).normal(size=9)
    rolled = np.array([np.roll(row, x) for x in range(10)])
    tips = np.fft.fft(rolled, axis=1)[:, 1:5]
    drawn = []
    for k, turned in enumerate((tips / tips[0]).T):
        centre, radius = (126.0 + 268 * (k % 2), 126.0 + 268 * (k // 2)), 115
        points = [(centre[0] + radius * z.imag, centre[1] - radius * z.real) for z in turned]
        drawn.append(ring(centre, radius, LIGHT_GREY, 3))
        drawn.append(line(points, POSITION, 5))
        drawn += [disc(point, 12, POSITION) for point in points[:9]]
    return "".join(drawn)


def add_or_concatenate() -> str:
    """Words of the page, and the same with a position added, where positions vary most."""
    rng = np.random.default_rng(3)
    positions = pe.sinusoidal_table(512, 64, dtype=np.float64)
    words = rng.normal(size=(300, 64)) / 8
    sums = words + positions[rng.integers(512, size=300)] - positions.mean(axis=0)
    plane = np.linalg.eigh(np.cov(positions.T))[1][:, -2:]
    plane = plane * np.sign(plane[0])  # else the processor decides which way up it is
    middle = np.ptp(sums @ plane, axis=0) / 2 + (sums @ plane).min(axis=0)
    scale = 500 / np.ptp(sums @ plane, axis=0).max()
    rings, dots = (SIDE / 2 + scale * (rows[:120] @ plane - middle) for rows in (words, sums))
    pairs = list(zip(rings, dots, strict=True))
    drawn = [line(pair, "#c5ccd3", 1.5) for pair in pairs]
    drawn += [disc(tuple(dot), 7, POSITION) for _, dot in pairs]
    drawn += [ring(tuple(word), 7, WORD, 3) for word, _ in pairs]
    return "".join(drawn)


def orthogonality() -> str:
    """The angles between rows, as rays: sixty of random rows, and sixty of sinusoids."""
    tables = {
        GREY: np.random.default_rng(7).normal(size=(512, 512)),
        POSITION: pe.sinusoidal_table(512, 512, dtype=np.float64),
    }
    corner, length = (84.0, 500.0), 430
    pairs = np.triu_indices(512, 1)
    drawn = []
    for colour, rows in tables.items():
        units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        cosines = np.sort((units @ units.T)[pairs])
        for cosine in cosines[np.linspace(0, len(cosines) - 1, 60).astype(int)]:
            end = tip(corner, length, float(np.arcsin(cosine)))
            drawn.append(line([corner, end], colour, 3, stroke_opacity="0.6"))
    square = [
        (corner[0] + 52, corner[1]),
        (corner[0] + 52, corner[1] - 52),
        (corner[0], corner[1] - 52),
    ]
    drawn.append(line(square, INK, 5, stroke_linejoin="miter"))
    drawn.append(line([corner, (SIDE, corner[1])], INK, 9))
    drawn.append(text((corner[0], 48), "random", 46, GREY, text_anchor="middle"))
    drawn.append(text((232, 76), "sinusoids", 46, POSITION))
    return "".join(drawn)


def trained_model() -> str:
    """The four hands of MiniLM's table at one position, with the nine positions before it."""
    turns, hands = minilm_hands()
    at, radius = 139, 90
    drawn = []
    for k, hand in enumerate(hands.T):
        centre = 126.0 + 268 * (k % 2), 102.0 + 278 * (k // 2)
        places = [hand_at(centre, radius, one) for one in hand]
        drawn += [disc(place, 2.5, LIGHT_GREY) for place in places]
        drawn += [disc(places[at - back], 10 - 0.7 * back, POSITION) for back in range(9, 0, -1)]
        drawn.append(line([centre, places[at]], POSITION, 10) + disc(places[at], 17, POSITION))
        said = f"a turn in {turns[k]:.0f}"
        drawn.append(text((centre[0], centre[1] + 144), said, SMALL, text_anchor="middle"))
    return "".join(drawn)


@cache
def minilm_hands() -> tuple[Array, NDArray[np.complexfloating]]:
    """In how many positions each hand of MiniLM's table turns once, and the hands of its rows."""
    data = make.crank(minilm.load(BOOK / "data" / "minilm"))
    return data["turns"], data["rows"] @ (data["real"] + 1j * data["imaginary"])


def hand_at(centre: Point, radius: float, hand: complex) -> Point:
    return centre[0] + radius * hand.imag, centre[1] - radius * hand.real


def clock_origin() -> str:
    """Sixty rows of RXNMapper's table in two directions, as they were drawn and trained."""
    trained = published_tables.load(BOOK / "data" / "published_tables")["rxnmapper"].rows
    generator = torch.Generator().manual_seed(42)
    torch.rand(1_998_031, generator=generator)  # what is drawn before the table
    drawn = torch.empty(trained.shape).normal_(0, 0.02, generator=generator).numpy()
    pieces = ((drawn, 116, GREY, 3), (trained, 396, POSITION, 5))
    return "".join(
        line(in_two_directions(rows[1:61], (SIDE / 2, at), 118), colour, width)
        for rows, at, colour, width in pieces
    )


def in_two_directions(rows: Array, centre: Point, radius: float) -> list[Point]:
    """Rows in the two directions in which they vary most, about a centre."""
    left, sizes, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    x, y = (left * sizes)[:, :2].T
    x, y = x * np.sign(x[0]), y * np.sign(y[0])  # else the signs would depend on the processor
    reach = max(abs(x).max(), abs(y).max()) / radius
    return [(centre[0] + a / reach, centre[1] - b / reach) for a, b in zip(x, y, strict=True)]


def rope() -> str:
    """Scores of one word with itself at 24 positions: the right half of the page's figure."""
    rng, count = np.random.default_rng(9), 24
    word = rng.normal(size=64)
    w_q, w_k = rng.normal(0, 1 / 8, (2, 64, 64))
    places = np.arange(count)
    queries, keys = (pe.rotate(np.tile(word @ w, (count, 1)), places) for w in (w_q, w_k))
    scores = queries @ keys.T
    return heat_map(scores - scores.mean(), 0, 0, SIDE, SIDE)


def longer() -> str:
    """Shares of right answers of small models at twice the trained length."""
    runs = length_transfer.stored()["runs"]
    drawn = []
    for column, (name, code) in enumerate((("RoPE", "rotary"), ("sinusoids", "add"))):
        left = 264.0 * column
        drawn.append(written((left + 128, 24), name, 48, font_weight=600))
        for row, (task, said) in enumerate((("copy", "three back"), ("first", "the first"))):
            found = [r for r in runs if (r["size"], r["code"], r["task"]) == ("small", code, task)]
            share = float(np.median([run["accuracy"]["2L"] for run in found]))
            right = share > 0.9
            top, colour = 62.0 + 232 * row, WHITE if right else ERROR
            drawn.append(box(left, top, 256, 224, rx=14, fill=POSITION if right else SHADE))
            drawn.append(
                written((left + 128, top + 88), f"{share:.2f}", 104, colour, font_weight=600)
            )
            drawn.append(written((left + 128, top + 170), said, 44, colour))
    return "".join(drawn)


def rope_in_your_model() -> str:
    """How much of a query's attention each fault of the page's figure moves to other keys."""
    generator = torch.Generator().manual_seed(6)
    length, first = 40, 4000
    query, keys = torch.randn(2, 1, 1, length, 64, generator=generator)
    query = query[:, :, -1:]
    yarn = rotary_frequencies(
        64,
        rope_theta=150_000,
        rope_type="yarn",
        factor=32,
        original_max_position_embeddings=4096,
        truncate=False,
    )
    align = RotaryPositionalEncoding(64, frequencies=yarn.frequencies, layout="split")
    keys[0, 0, 30] = 0.3 * align(query[0, 0], offset=9)[0]  # nine back

    def weights(at: int = first + length - 1, coarse: bool = False, **options: Any) -> Array:
        turn = RotaryPositionalEncoding(64, **({"frequencies": yarn, "layout": "split"} | options))
        places = torch.arange(first, first + length)
        own = torch.tensor([at])
        if coarse:
            places, own = places.bfloat16().double(), places[-1:].bfloat16().double()
        scores = turn(query, positions=own) @ turn(keys, positions=places).mT
        return np.asarray(torch.softmax(scores[0, 0, 0] / 8, dim=-1))

    another = {"frequencies": None, "base": 500_000, "attention_factor": yarn.attention_factor}
    faults: dict[str, dict[str, Any]] = {
        "base": another,
        "layout": {"layout": "interleaved"},
        "offset": {"at": 0},
        "rounding": {"coarse": True},
        "factor": {"frequencies": yarn.frequencies},
    }
    meant = weights()
    drawn = [text((0, 42), "attention gone astray", 46, ERROR)]
    for row, (name, fault) in enumerate(faults.items()):
        astray = float(np.abs(weights(**fault) - meant).sum() / 2)
        left, foot, whole = 208, 124 + 91.0 * row, 312
        drawn.append(text((0, foot), name, 44))
        drawn.append(box(left, foot - 45, whole, 60, fill=SHADE, rx=10))
        drawn.append(box(left, foot - 45, round(whole * astray), 60, fill=ERROR, rx=10))
    return "".join(drawn)


def inspector() -> str:
    """How far each pair of a model turned within the trained length: the page's first example."""
    examples = yaml.safe_load((BOOK / "data" / "inspector.yml").read_text(encoding="utf-8"))
    config = json.loads(examples[0]["config"])
    base, width = float(config["rope_theta"]), config["head_dim"]
    trained = config["rope_scaling"]["original_max_position_embeddings"]
    drawn = []
    for pair in range(width // 2):
        turned = base ** (-2 * pair / width) * trained
        centre = 32.5 + 65 * (pair % 8), 32.5 + 65 * (pair // 8)
        whole = turned >= 2 * np.pi
        drawn.append(ring(centre, 24, LIGHT_GREY if whole else SHADE, 9))
        if not whole:
            drawn.append(arc(centre, 24, 0, turned, STEP, 9, stroke_linecap="butt"))
    return "".join(drawn)


def settled() -> str:
    """What is proved, measured and open."""
    count = statements()
    forms = {"proved": "full", "measured": "half", "open": "none"}
    return marks((count[name], name, form) for name, form in forms.items())


DRAWINGS: dict[str, Callable[[], str]] = {
    drawing.__name__: drawing
    for drawing in (
        index,
        tour,
        folklore,
        why_order,
        conditions,
        rotation,
        dot_product,
        converse,
        add_or_concatenate,
        orthogonality,
        trained_model,
        clock_origin,
        rope,
        longer,
        rope_in_your_model,
        inspector,
        settled,
    )
}
