"""Make exchange.js and crank.js beside this module from the extract in book/data/minilm.

    python -m pe_book.live.data.make

What two live figures compute with, small enough for the first view of a page. Rows are rounded to
16 bits, and the matrices of one head to 8 bits, each row of a matrix with a scale of its own. A
test compares both files with what this script makes.
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
    }
    tables = {"exchange": exchange(model), "crank": crank(model)}
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
    """The ten coordinates of each row, one matrix of all rows and one of half, and the hands.

    A row times a column of ``vectors`` is the complex number of a hand, in units of its median
    length; they are eigenvectors of the matrix that shifts all rows.
    """
    rows = model.positions[FIRST : LAST + 1]
    u, s, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    ten = (u * s)[:, :DIRECTIONS]
    values, vectors = np.linalg.eig(shift(ten))
    fastest = np.argsort(-np.angle(values))[:HANDS]
    hands = ten @ vectors[:, fastest]
    vectors = vectors[:, fastest] / np.median(np.abs(hands), axis=0)
    return {
        "first": FIRST,
        "half": HALF,
        "turns": 2 * np.pi / np.angle(values[fastest]),
        "rows": ten,
        "shift": shift(ten[: HALF - FIRST + 1]),
        "real": vectors.real,
        "imaginary": vectors.imag,
    }


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
            made[name] = packed_table(value, np.int8 if name.startswith("w_") else np.int16)
    return made


def packed_table(table: Array, whole: type[np.integer]) -> dict[str, Any]:
    scales = np.abs(table).max(axis=1) / np.iinfo(whole).max
    numbers = np.rint(table / scales[:, None]).astype(np.dtype(whole).newbyteorder("<"))
    return {
        "bits": 8 * numbers.itemsize,
        "columns": table.shape[1],
        "scales": [float(f"{scale:.6g}") for scale in scales],
        "numbers": b64encode(numbers.tobytes()).decode(),
    }


if __name__ == "__main__":
    main()
