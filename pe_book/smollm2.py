"""What book/data/smollm2 holds of SmolLM2-135M: 30 layers of 9 heads, 32 turning pairs in each.

`extract.npz` has mean scores by offset for the licence ("text", and "shuffled" with its tokens in
random order) and for five ordinary texts; the arrays are made by `extract.py` beside it.
"""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
HEADS, PAIRS, BASE = 270, 32, 100_000.0
KINDS = ("float32", "cosines", "rows")  # of errors of scores, see `score_errors`


def load(folder: Path) -> dict[str, NDArray]:
    """The arrays of the extract, by name."""
    with np.load(folder / "extract.npz") as stored:
        return dict(stored)


def ordinary_texts(folder: Path) -> dict[str, str]:
    """The ordinary texts, by name, and what each is."""
    provenance = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    return {name: source["what"] for name, source in provenance["texts"].items()}


def mean_scores(stored: dict[str, NDArray], text: str) -> Array:
    """Mean score of the 270 heads at each of ``stored["offsets"]``: an array (270, offsets)."""
    return stored[f"score_{text}"].reshape(HEADS, -1).astype(np.float64)


def mean_products(stored: dict[str, NDArray], text: str) -> NDArray[np.complex128]:
    """Mean query times mean key, conjugated, of each head and pair, over √64: (270, 32)."""
    if f"product_{text}" in stored:
        real, imaginary = stored[f"product_{text}"].astype(np.float64).swapaxes(0, 1)
        both = real + 1j * imaginary
    else:
        q, k = (
            stored[f"mean_{name}_{text}"].astype(np.float64).transpose(0, 2, 3, 1) @ (1, 1j)
            for name in "qk"
        )
        both = q * k.conj() / np.sqrt(2 * PAIRS)
    return np.asarray(both.reshape(HEADS, PAIRS))


def falls(scores: Array, offsets: NDArray) -> Array:
    """By how much the score of each head falls when the offset doubles: a straight line is fitted
    to its mean scores over log2 of the offset. Negative where it rises."""
    return np.asarray(-np.polyfit(np.log2(offsets), scores.T, 1)[0])


def heads_that_fall_at_random_angles(
    stored: dict[str, NDArray], text: str, draws: int = 20, seed: int = 0
) -> NDArray[np.int64]:
    """For each draw, how many of 270 heads fall if each wave starts at a random angle.

    The waves are those of the mean query and mean key, which keep their heights.
    """
    offsets = stored["offsets"]
    waves = np.exp(1j * np.outer(BASE ** (-np.arange(PAIRS) / PAIRS), offsets))
    rng = np.random.default_rng(seed)
    turns = np.exp(2j * np.pi * rng.random((draws, HEADS, PAIRS)))
    products = mean_products(stored, text)
    return np.array([(falls((products * turn @ waves).real, offsets) > 0).sum() for turn in turns])


def score_errors(stored: dict[str, NDArray], text: str, kind: str) -> Array:
    """Error of the scores of each head at ``stored["positions"]``: an array (positions, 270).

    The root of the mean square error, divided by the standard deviation of the head's scores.
    kind: "float32", angles in float32; "cosines", cosines and sines rounded to bfloat16; "rows",
    rotated queries and keys rounded to bfloat16.
    """
    error, spread = (
        stored[f"error_{name}_{text}"].astype(np.float64).swapaxes(0, 1).reshape(-1, HEADS)
        for name in (kind, "spread")
    )
    return error / spread
