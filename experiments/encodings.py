"""One small class for each encoding: each way of giving a Transformer its positions.

An encoding may act at four places, and each class says at which:

* `enter`: where words enter the model, a row of the table may join them (add, split, project);
* `turn`: queries and keys may be turned by their position (rotary);
* `bias`: a number that depends on two positions may join the score of each pair (untied, ALiBi);
* `score_rows`: rows may be added where queries and keys are computed, and not the values.

Where nothing is said, choices are PyTorch's defaults. Shapes are (batch, length, width) for the
stream of a model, and (batch, heads, length, width of a head) for queries, keys and values.
"""

import functools
import math
import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from experiments.common import Encoding, Size, Transformer, ahead, parameters
from pe_lib.torch import RotaryPositionalEncoding, sinusoidal_table

SMALL_STD = 0.02  # of words and trained rows, as in BERT
SMALL_ROWS = SMALL_STD * 2**0.5  # makes sinusoids as small: their mean square is 1/2


class Add(Encoding):
    """Add the sinusoidal table of a ``base``, multiplied by ``row_factor``, to the words."""

    def __init__(
        self,
        size: Size,
        word_std: float | None = None,
        word_factor: float | None = None,
        row_factor: float = 1.0,
        base: float = 10_000.0,
    ) -> None:
        super().__init__(size, word_std, word_factor)
        rows = row_factor * sinusoidal_table(size.seq_len, size.d_model, base=base)
        self.rows: Tensor = nn.Buffer(rows)

    def enter(self, words: Tensor) -> Tensor:
        return words + self.rows[: words.shape[1]]

    def tables(self, words: Tensor) -> tuple[Tensor, Tensor]:
        return words, self.rows


class AddLearned(Add):
    """Add a trained table. Words and rows start with the standard deviation 0.02, as in BERT.

    With a ``factor``, words and rows are stored divided by it and multiplied by it where they are
    used. So they start as before, and Adam makes them learn that many times as fast.
    """

    def __init__(self, size: Size, factor: float = 1.0) -> None:
        super().__init__(size, word_std=SMALL_STD / factor, word_factor=factor)
        self.factor = factor
        self.rows = nn.Parameter(SMALL_STD / factor * torch.randn(size.seq_len, size.d_model))

    def enter(self, words: Tensor) -> Tensor:
        return words + self.factor * self.rows[: words.shape[1]]

    def tables(self, words: Tensor) -> tuple[Tensor, Tensor]:
        return words, self.factor * self.rows


class SideBySide(Encoding):
    """Put the words beside sinusoidal rows of width r.

    *Split* keeps the stream at width d, so that words have d − r entries of it. *Keep both* gives
    words all d, so that the stream is d + r wide.
    """

    def __init__(self, size: Size, r: int, *, d_words: int, small: bool = False) -> None:
        super().__init__(size)
        self.d_words, self.d_stream = d_words, d_words + r
        self.word_std, self.word_factor = d_words**-0.5, d_words**0.5
        rows = sinusoidal_table(size.seq_len, r)
        if small:  # both start as they do in `AddLearned`
            self.word_std, self.word_factor = SMALL_STD, 1.0
            rows = SMALL_ROWS * rows
        self.rows = nn.Buffer(rows)

    def enter(self, words: Tensor) -> Tensor:
        return torch.cat((words, self.rows.expand(len(words), -1, -1)), dim=-1)

    def tables(self, words: Tensor) -> tuple[Tensor, Tensor]:
        r = self.d_stream - self.d_words
        return F.pad(words, (0, r)), F.pad(self.rows, (self.d_words, 0))


class Project(Encoding):
    """Put the words beside sinusoidal rows of width d, and project the 2d entries to d.

    The projection is drawn with variance 1/d, so that words and positions enter as large as in
    `Add`, each in a basis of its own.
    """

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        d = size.d_model
        self.rows = nn.Buffer(sinusoidal_table(size.seq_len, d))
        self.weight = nn.Parameter(torch.randn(2 * d, d) * d**-0.5)

    def enter(self, words: Tensor) -> Tensor:
        joined = torch.cat((words, self.rows.expand(len(words), -1, -1)), dim=-1)
        return joined @ self.weight

    def tables(self, words: Tensor) -> tuple[Tensor, Tensor]:
        for_words, for_positions = self.weight.chunk(2)
        return words @ for_words, self.rows @ for_positions


class Folded(Encoding):
    """Add two given tables: what remains of `Project` when its matrix is multiplied into both."""

    def __init__(self, size: Size, rows: Tensor) -> None:
        super().__init__(size)
        self.word_factor = 1.0
        self.rows = nn.Parameter(rows)

    def enter(self, words: Tensor) -> Tensor:
        return words + self.rows


class ScoreRows(Encoding):
    """Add sinusoidal rows to the input of the maps to queries and keys, and not to the values.

    The score of positions m and n is ((x + p_m) W_Q)((y + p_n) W_K)ᵀ/√h, x and y being what the
    LayerNorm hands on. So positions act on the scores alone, and never enter the stream.
    """

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        self.rows = nn.Buffer(sinusoidal_table(size.seq_len, size.d_model))

    def score_rows(self, length: int) -> Tensor:
        return self.rows[:length]


class Untied(Encoding):
    """Give each score a product of positions of its own, as TUPE does (Ke et al., 2021).

    The score of positions m and n is (x W_Q)(y W_K)ᵀ/√(2h) + (p_m U_Q)(p_n U_K)ᵀ/√(2h), where h is
    the width of a head. All layers share U_Q and U_K, and the rows p are sinusoidal.
    """

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        d = size.d_model
        self.rows = nn.Buffer(sinusoidal_table(size.seq_len, d))
        self.project = nn.Linear(d, 2 * d, bias=False)

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return queries * 0.5**0.5, keys  # √(2h) in place of √h

    def bias(self, length: int) -> Tensor:
        heads = self.project(self.rows[:length]).unflatten(-1, (2, self.size.heads, -1))
        queries, keys = heads.permute(1, 2, 0, 3)
        scores: Tensor = queries @ keys.mT * (2 * queries.shape[-1]) ** -0.5
        return scores


class RelativeBias(Encoding):
    """Add one trained number for each head and each offset to the scores, shared by all layers.

    These are the biases of T5 (Raffel et al., 2020) without its buckets, which the short windows
    do not need. They start with the standard deviation 0.02, around 0 or around a ``start``, one
    number for each offset from −(length − 1) on.
    """

    def __init__(self, size: Size, start: Tensor | None = None) -> None:
        super().__init__(size)
        offsets = 2 * size.seq_len - 1
        values = 0.02 * torch.randn(size.heads, offsets)
        self.values = nn.Parameter(values if start is None else values + start)
        self.offset = nn.Buffer(ahead(size.seq_len) + size.seq_len - 1)

    def bias(self, length: int) -> Tensor:
        return self.values[:, self.offset[:length, :length]]


def kernel(size: Size) -> Tensor:
    """The score of two sinusoidal rows as wide as a head, K(Δ)/√h, for each offset Δ.

    K(Δ) is the sum of cos ω_i Δ over the h/2 pairs, so a head begins by preferring near words.
    """
    rows = sinusoidal_table(2 * size.seq_len - 1, size.d_model // size.heads)
    middle = rows[size.seq_len - 1]
    scores: Tensor = rows @ middle * len(middle) ** -0.5
    return scores


class ALiBi(Encoding):
    """Subtract a multiple of the distance from each score (Press et al., 2022).

    The multiple differs from head to head. Between words on both sides, the distance alone cannot
    tell left from right. So with ``sided`` half the heads look back only, as the causal heads that
    ALiBi was made for do, and half look ahead only. ``sloped=False`` leaves that mask alone.
    """

    def __init__(self, size: Size, *, sided: bool = True, sloped: bool = True) -> None:
        super().__init__(size)
        heads = torch.arange(1, size.heads + 1)
        slopes = 2.0 ** (-8 * heads / size.heads) if sloped else torch.zeros(size.heads)
        offset = ahead(size.seq_len)
        bias = -slopes[:, None, None] * offset.abs()
        if sided:
            side = torch.tensor([-1, 1]).repeat(size.heads // 2)[:, None, None]
            bias = bias.masked_fill(side * offset < 0, -math.inf)
        self.fixed = nn.Buffer(bias)

    def bias(self, length: int) -> Tensor:
        return self.fixed[:, :length, :length]


class Rotary(Encoding):
    """Turn queries and keys by their position: RoPE (Su et al., 2021)."""

    def __init__(self, size: Size, word_factor: float | None = None) -> None:
        super().__init__(size, word_factor=word_factor)
        self.rotate = RotaryPositionalEncoding(size.d_model // size.heads, layout="interleaved")

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return self.rotate(queries), self.rotate(keys)


def in_layers(encoding: Encoding, layers: Sequence[int]) -> Encoding:
    """The encoding, acting on the scores of these layers alone."""
    encoding.layers = tuple(layers)
    return encoding


def first(encoding: Encoding) -> Encoding:
    return in_layers(encoding, (0,))


def last(encoding: Encoding) -> Encoding:
    return in_layers(encoding, (encoding.size.layers - 1,))


ENCODINGS: dict[str, Callable[[Size], Encoding]] = {
    "none": Encoding,
    "add": Add,
    "add-base-100": lambda size: Add(size, base=100.0),
    "add-base-10": lambda size: Add(size, base=10.0),
    "add-norm-1": lambda size: Add(size, word_factor=1.0),
    "add-variance-1": lambda size: Add(size, word_std=1.0, word_factor=1.0),
    "add-0.02": lambda size: Add(size, word_std=SMALL_STD, word_factor=1.0),
    "add-small": lambda size: Add(size, SMALL_STD, word_factor=1.0, row_factor=SMALL_ROWS),
    "add-learned": AddLearned,
    "add-learned-fast": lambda size: AddLearned(size, factor=size.d_model**0.5),
    "split-8": lambda size: SideBySide(size, 8, d_words=size.d_model - 8),
    "split-16": lambda size: SideBySide(size, 16, d_words=size.d_model - 16),
    "split-32": lambda size: SideBySide(size, 32, d_words=size.d_model - 32),
    "split-16-small": lambda size: SideBySide(size, 16, d_words=size.d_model - 16, small=True),
    "keep-both-16": lambda size: SideBySide(size, 16, d_words=size.d_model),
    "project": Project,
    "score-rows": ScoreRows,
    "score-rows-first": lambda size: first(ScoreRows(size)),
    "score-rows-last": lambda size: last(ScoreRows(size)),
    "untied": Untied,
    "untied-first": lambda size: first(Untied(size)),
    "untied-last": lambda size: last(Untied(size)),
    "relative-bias": RelativeBias,
    "relative-bias-kernel": lambda size: RelativeBias(size, kernel(size)),
    "alibi": ALiBi,
    "alibi-unmasked": lambda size: ALiBi(size, sided=False),
    "mask-alone": lambda size: ALiBi(size, sloped=False),
    "rotary": Rotary,
    "rotary-first": lambda size: first(Rotary(size)),
    "rotary-last": lambda size: last(Rotary(size)),
    "rotary-norm-1": lambda size: Rotary(size, word_factor=1.0),
}


DRAWING = threading.Lock()  # all threads of a process draw from one generator


@functools.cache
def matched_hidden(encoding: str, size: Size) -> int:
    """The width between the two linear maps of a layer that makes all encodings equally large.

    `add` has four times the width of the stream. An encoding that brings parameters of its own, or
    saves some, gets so many fewer or more here that its total comes nearest to that of `add`.
    """
    wanted = parameters(Transformer(ENCODINGS["add"](size), 4 * size.d_model))
    one, two = (parameters(Transformer(ENCODINGS[encoding](size), width)) for width in (1, 2))
    return round(1 + (wanted - one) / (two - one))


def matched_model(encoding: str, size: Size, *, seed: int, causal: bool) -> Transformer:
    """A model as its training starts, with as many parameters as that of `add`."""
    with DRAWING:
        d_hidden = matched_hidden(encoding, size)
        torch.manual_seed(seed)  # here, because finding the width draws models too
        return Transformer(ENCODINGS[encoding](size), d_hidden, causal=causal)


@torch.no_grad()
def folded(model: Transformer) -> Transformer:
    """The same model, with the matrix of `Project` multiplied into a table of words and of rows."""
    project = model.encoding
    if not isinstance(project, Project):
        raise TypeError(f"only Project can be folded, got {type(project).__name__}")
    words, rows = project.tables(model.embed.weight * project.word_factor)
    # A tied model has two tables afterwards: only the one that words come from is multiplied.
    result = Transformer(
        Folded(project.size, rows),
        model.d_hidden,
        causal=model.mask is not None,
        norm=model.norm_of_layers,
        norm_sum=isinstance(model.norm_sum, nn.LayerNorm),
    )
    kept = {k: v for k, v in model.state_dict().items() if not k.startswith("encoding.")}
    result.load_state_dict(kept | {"embed.weight": words, "encoding.rows": rows})
    return result
