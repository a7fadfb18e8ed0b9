"""Make companion.js, crank.js and exchange.js here, from the extract in book/data/minilm.

    python -m pe_book.live.data.make

What three live figures compute with, small enough for the first view of a page. Rows are rounded
to 16 or 12 bits, and the matrices of one head to 8 bits, each row of a matrix with a scale of its
own. A test compares the files with what this script makes.
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
BITS = {"words": 12, "positions": 12, "w_q": 8, "w_k": 8}  # of a number of these; of others 16
SHOWN, KINDS_OF_WORDS, WIDTH = 30, 5, 16  # of the table that stays beside the tour
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
        "exchange": "Rows of tokens and positions, and the third head of the first layer, of",
        "crank": "The ten strongest coordinates of the positions, and their matrices, of",
        "companion": "Random words and a random head, and thirty positions of",
    }
    tables = {
        "exchange": exchange(model),
        "crank": crank(model),
        "companion": companion(model),
    }
    return {
        f"{name}.js": NOTE.format(what=what)
        + f"peLive.keep({json.dumps(name)}, {json.dumps(packed(tables[name]))});\n"
        for name, what in whats.items()
    }


def exchange(model: minilm.MiniLM) -> dict[str, Any]:
    """What one head needs of the sentence: rows before the LayerNorm, and its two matrices.

    The gain and the bias of the LayerNorm are made part of the matrices: (γ ∘ n + β)W + b is
    n(γ ∘ W) + (βW + b). The token type is added to the rows of the words. ``positions`` ends with
    the mean of all rows of the table.
    """
    tokens = model.sentences[0]
    arrays = model.arrays
    length = len(arrays["b_q"]) // model.provenance["heads"]
    of_head = slice(HEAD * length, (HEAD + 1) * length)
    data: dict[str, Any] = {
        "tokens": tokens,
        "epsilon": model.provenance["layer_norm_epsilon"],
        "words": model.word_rows(tokens) + arrays["token_type"],
        "positions": np.vstack([model.positions[: len(tokens)], model.positions.mean(axis=0)]),
    }
    for name in ("q", "k"):
        matrix = arrays[f"w_{name}"][:, of_head]
        data[f"w_{name}"] = arrays["norm_gain"][:, None] * matrix
        data[f"b_{name}"] = arrays["norm_bias"] @ matrix + arrays[f"b_{name}"][of_head]
    return data


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
            made[name] = packed_table(value, BITS.get(name, 16))
    return made


def packed_table(table: Array, bits: int) -> dict[str, Any]:
    """Whole numbers of so many bits. Two of 12 bits are three bytes, and begin at 0.

    What rounds the scale down leaves no room for the largest number, which then is the largest
    that there is.
    """
    largest = 2 ** (bits - 1) - 1
    digits = 6 if bits == 16 else 3
    scales = [float(f"{scale:.{digits}g}") for scale in np.abs(table).max(axis=1) / largest]
    numbers = np.rint(table / np.array(scales)[:, None]).clip(-largest, largest).astype(np.int64)
    if bits == 12:
        first, second = numbers.reshape(-1, 2).T + largest + 1
        parts = [first >> 4, (first & 15) << 4 | second >> 8, second & 255]
        written = np.stack(parts, axis=1).astype(np.uint8)
    else:
        written = numbers.astype(f"<i{bits // 8}")
    return {
        "bits": bits,
        "columns": table.shape[1],
        "scales": scales,
        "numbers": b64encode(written.tobytes()).decode(),
    }


if __name__ == "__main__":
    main()
