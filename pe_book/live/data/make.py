"""Make the tables of live figures here, most of them from the extract in book/data/minilm.

    python pe_book/live/data/make.py

What four live figures compute with, small enough for the first view of a page. Tables are rounded
to 16 bits, each row with a scale of its own. A test compares the files with what this script makes.
"""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pe_book import minilm

Array = NDArray[np.floating]

FOLDER = Path(__file__).resolve().parent
EXTRACT = FOLDER.parents[2] / "book" / "data" / "minilm"
HEAD = 2  # the third
FIRST, LAST, HALF = 1, 506, 250  # positions: the others are longer than nearly all of these
DIRECTIONS, HANDS = 10, 4
SHOWN, KINDS_OF_WORDS, WIDTH = 30, 5, 16  # of the table that stays beside the tour
WORDS = ("dog", "bites", "man")
DRAWN = """// Three rows and the two matrices of a head, drawn at random by
// pe_book/live/data/make.py, and rounded there.
"""
NOTE = """// {what} all-MiniLM-L6-v2 (Apache License 2.0),
// made by pe_book/live/data/make.py from the extract in book/data/minilm, and rounded there.
"""


def main() -> None:
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def files() -> dict[str, str]:
    """The text of each file, by its name."""
    model = minilm.load(EXTRACT)
    whats = {
        "exchange": "What the third head of the first layer makes of tokens and of positions, from",
        "crank": "The ten strongest coordinates of the positions, and their matrices, of",
        "companion": "Random words and a random head, and thirty positions of",
    }
    tables = {
        "exchange": exchange(model),
        "crank": crank(model),
        "companion": companion(model),
    }
    notes = {name: NOTE.format(what=what) for name, what in whats.items()}
    notes["attention"], tables["attention"] = DRAWN, attention()
    return {
        f"{name}.js": note
        + f"peLive.keep({json.dumps(name)}, {json.dumps(packed(tables[name]))});\n"
        for name, note in notes.items()
    }


def attention() -> dict[str, Any]:
    """Rows of three words, and a head without positions."""
    rng = np.random.default_rng(11)
    width = 8
    w_q, w_k = rng.normal(0, width**-0.5, (2, width, width))
    rows = np.random.default_rng(36).normal(size=(len(WORDS), width))
    return {"words": WORDS, "rows": rows, "w_q": w_q, "w_k": w_k}


def exchange(model: minilm.MiniLM) -> dict[str, Any]:
    """What one head makes of each token and of each position of the sentence.

    Up to the standard deviation σ by which the LayerNorm divides, the query of a sum is the sum of
    two queries: with rows t and p less their means, and gain and bias of the LayerNorm made part of
    matrix and bias, it is (tW + pW) / σ + b. So 32 numbers for each t and each p are enough, and σ
    for each pair of them. The token type is added to the rows of the tokens. The last of the
    positions is the mean of all rows of the table.
    """
    arrays = model.arrays
    tokens = model.sentences[0]
    length = len(arrays["b_q"]) // model.provenance["heads"]
    of_head = slice(HEAD * length, (HEAD + 1) * length)
    token_rows = centred(model.word_rows(tokens) + arrays["token_type"])
    rows = model.positions
    position_rows = centred(np.vstack([rows[: len(tokens)], rows.mean(axis=0)]))
    sums = token_rows[:, None] + position_rows
    variances = (sums**2).mean(axis=-1) + model.provenance["layer_norm_epsilon"]
    data: dict[str, Any] = {"tokens": tokens, "deviations": np.sqrt(variances)}
    for name in ("q", "k"):
        matrix = arrays[f"w_{name}"][:, of_head]
        gained = arrays["norm_gain"][:, None] * matrix
        data[f"token_{name}"] = token_rows @ gained
        data[f"position_{name}"] = position_rows @ gained
        data[f"b_{name}"] = arrays["norm_bias"] @ matrix + arrays[f"b_{name}"][of_head]
    return data


def centred(rows: Array) -> Array:
    """Each row less its mean."""
    return np.asarray(rows - rows.mean(axis=-1, keepdims=True))


def crank(model: minilm.MiniLM) -> dict[str, Any]:
    """The ten coordinates of each row, one matrix of all rows and one of half, and the hands."""
    ten, values, vectors = hands(model)
    return {
        "first": FIRST,
        "half": HALF,
        "turns": 2 * np.pi / np.angle(values),
        "rows": ten,
        "shift": shift(ten[: HALF - FIRST + 1]),
        "real": vectors.real,
        "imaginary": vectors.imag,
    }


def companion(model: minilm.MiniLM) -> dict[str, Any]:
    """Rows of five words, a query and a key, all drawn at random; and what the hands of the first
    positions are. The matrix turns each by an angle and changes its length by a factor."""
    rng = np.random.default_rng(2)
    ten, values, vectors = hands(model)
    turned = ten[:SHOWN] @ vectors
    pairs = np.stack([turned.imag, turned.real], axis=-1)  # as the sine and the cosine of a pair
    return {
        "words": rng.normal(0, 0.5**0.5, (KINDS_OF_WORDS, WIDTH)),
        "head": rng.normal(0, 0.5**0.5, (2, WIDTH)),
        "learned": pairs.reshape(SHOWN, 2 * HANDS),
        "angles": np.angle(values),
        "factors": np.abs(values),
    }


def hands(model: minilm.MiniLM) -> tuple[Array, Array, Array]:
    """The strongest coordinates of each row; the eigenvalues of the matrix that shifts all rows,
    and its eigenvectors. A row times one of these is the complex number of a hand, in units of its
    median length."""
    rows = model.positions[FIRST : LAST + 1]
    u, s, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    ten = (u * s)[:, :DIRECTIONS]
    values, vectors = np.linalg.eig(shift(ten))
    fastest = np.argsort(-np.angle(values))[:HANDS]
    sizes = np.median(np.abs(ten @ vectors[:, fastest]), axis=0)
    return ten, values[fastest], vectors[:, fastest] / sizes


def shift(rows: Array) -> Array:
    """The matrix that comes nearest to taking each row to the next, by least squares."""
    return np.asarray(np.linalg.lstsq(rows[:-1], rows[1:])[0])


def packed(data: dict[str, Any]) -> dict[str, Any]:
    """The tables as bytes in base 64 with a scale for each row, and vectors as numbers."""
    made = {}
    for name, value in data.items():
        if not isinstance(value, np.ndarray):
            made[name] = value
        elif value.ndim == 1:
            made[name] = [float(f"{number:.7g}") for number in value]
        else:
            made[name] = packed_table(value)
    return made


def packed_table(table: Array) -> dict[str, Any]:
    """Whole numbers of 16 bits.

    What rounds the scale down leaves no room for the largest number, which then is the largest
    that there is.
    """
    largest = 2**15 - 1
    scales = [float(f"{scale:.6g}") for scale in np.abs(table).max(axis=1) / largest]
    numbers = np.rint(table / np.array(scales)[:, None]).clip(-largest, largest).astype("<i2")
    return {
        "columns": table.shape[1],
        "scales": scales,
        "numbers": b64encode(numbers.tobytes()).decode(),
    }


if __name__ == "__main__":
    main()
