"""Read the extract of the trained model all-MiniLM-L6-v2, and split its first layer's scores."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pe_book.attention import softmax

Array = NDArray[np.floating]
PARTS = ("word", "position", "constant")
CONSTANT = PARTS.index("constant")  # the part that biases belong to


@dataclass(frozen=True)
class MiniLM:
    """What the extract holds: rows of the tables, one layer's projections, some sentences.

    ``words`` are a uniform sample of the vocabulary and ``tokens`` their names; ``words_by_use``
    are drawn by how often books use them, one row for each draw; ``word_mean`` is the mean of the
    whole vocabulary. ``arrays`` holds everything by its name in the file, in float64, and
    ``provenance`` says where it comes from.
    """

    arrays: dict[str, Array]
    provenance: dict[str, Any]

    @property
    def positions(self) -> Array:
        return self.arrays["positions"]

    @property
    def words(self) -> Array:
        return self.arrays["sample_words"]

    @property
    def words_by_use(self) -> Array:
        return np.repeat(self.arrays["use_words"], self.arrays["use_times"].astype(int), axis=0)

    @property
    def word_mean(self) -> Array:
        return self.arrays["word_mean"]

    @property
    def tokens(self) -> list[str]:
        return [str(token) for token in self.arrays["sample_tokens"]]

    @property
    def sentences(self) -> list[list[str]]:
        return [text.split() for text in self.provenance["sentences"]]

    def word_rows(self, tokens: list[str]) -> Array:
        """The word embeddings of tokens that occur in the sentences, not centred."""
        row_of = {str(token): row for row, token in enumerate(self.arrays["text_tokens"])}
        for token in tokens:
            if token not in row_of:
                raise ValueError(
                    f"tokens must occur in the sentences of the extract, got {token!r}"
                )
        return self.arrays["text_words"][[row_of[token] for token in tokens]]

    def parts(self, tokens: list[str], turn: Array | None = None) -> list[Array]:
        """Centred words, centred positions and the constant rest, before the LayerNorm.

        The three add up to what the model adds up. ``turn`` rotates the centred words.
        """
        words = self.word_rows(tokens) - self.word_mean
        words = words if turn is None else words @ turn
        mean = self.positions.mean(axis=0)
        constant = self.arrays["token_type"] + self.word_mean + mean
        return [
            words,
            self.positions[: len(tokens)] - mean,
            np.broadcast_to(constant, words.shape),
        ]

    def score_terms(self, tokens: list[str], turn: Array | None = None) -> Array:
        """The nine terms of the first layer's scores, of shape (3, 3, heads, length, length).

        The axes are the query's part, the key's part (each in the order of `PARTS`), head, query,
        key. Summed over the first two they are the scores of the layer, before the softmax.
        """
        heads, weights = self.provenance["heads"], self.arrays
        parts = self.parts(tokens, turn)
        variance = np.sum(parts, axis=0).var(axis=1, keepdims=True)
        gain = weights["norm_gain"] / np.sqrt(variance + self.provenance["layer_norm_epsilon"])
        rows = np.stack([gain * (part - part.mean(axis=1, keepdims=True)) for part in parts])
        rows[CONSTANT] += weights["norm_bias"]

        def project(name: str) -> Array:
            projected = rows @ weights[f"w_{name}"]
            projected[CONSTANT] += weights[f"b_{name}"]
            split = projected.reshape(*projected.shape[:2], heads, -1)
            return np.asarray(split.swapaxes(1, 2))  # (part, head, token, width of a head)

        queries, keys = project("q"), project("k")
        terms = queries[:, None] @ keys[None].swapaxes(-1, -2)
        return np.asarray(terms / np.sqrt(queries.shape[-1]))

    def attention(self, tokens: list[str], *, words: bool = True) -> Array:
        """The attention weights of the first layer, (heads, length, length).

        Without ``words`` the mean of the vocabulary stands in place of each of them.
        """
        width = self.positions.shape[1]
        scores = self.score_terms(tokens, None if words else np.zeros((width, width)))
        return softmax(scores.sum((0, 1)))


def load(folder: str | Path) -> MiniLM:
    """Read ``extract.npz``, ``use.npz`` and ``provenance.json`` in a folder."""
    folder = Path(folder)
    provenance = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    arrays = {}
    for part in ("extract.npz", "use.npz"):
        with np.load(folder / part) as file:
            arrays.update(file)
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            arrays[name] = array.astype(np.float64)
    return MiniLM(arrays, provenance)
