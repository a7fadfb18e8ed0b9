"""The Transformer of `positions.py`, and one small class for each way of giving it positions.

A way may act at three places, and each class says at which:

* `enter`: where words enter the model, a row of the table may join them (add, split, project);
* `turn`: queries and keys may be turned by their position (rotary);
* `bias`: a number that depends on two positions may join the score of each pair (untied, ALiBi).

Where nothing is said, choices are PyTorch's defaults. Shapes are (batch, length, width) for the
stream of a model, and (batch, heads, length, width of a head) for queries, keys and values.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pe_lib.torch import RotaryPositionalEncoding, sinusoidal_table


@dataclass(frozen=True)
class Size:
    """The size of a model and of what it reads."""

    d_model: int = 96
    layers: int = 2
    heads: int = 4
    seq_len: int = 48
    vocabulary: int = 2048


# The ways of giving positions

SMALL_STD = 0.02  # of words and trained rows, as in BERT
SMALL_ROWS = SMALL_STD * 2**0.5  # makes sinusoids as small: their mean square is 1/2


class NoPositions(nn.Module):
    """The words alone. The other ways change what they need to.

    Words are drawn with variance 1/d and multiplied by √d, as in Vaswani et al. (2017). So each
    entry has variance 1, and a row of the sinusoidal table, of norm √(d/2), is 3 dB below a word.
    ``word_std`` and ``word_factor`` change how words are drawn and what they are multiplied by.
    """

    def __init__(
        self, size: Size, word_std: float | None = None, word_factor: float | None = None
    ) -> None:
        super().__init__()
        self.size = size
        self.d_words = self.d_stream = size.d_model
        self.word_std = size.d_model**-0.5 if word_std is None else word_std
        self.word_factor = size.d_model**0.5 if word_factor is None else word_factor

    def enter(self, words: Tensor) -> Tensor:
        """What goes into the first layer: (batch, length, d_stream)."""
        return words

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """The queries and keys that are multiplied."""
        return queries, keys

    def bias(self) -> Tensor | None:
        """What is added to the scores of each head: (heads, length, length)."""
        return None

    def tables(self, words: Tensor) -> tuple[Tensor, Tensor] | None:
        """A table of words and one of positions whose sum `enter` is, if it is a sum.

        ``words`` are the rows that `enter` is given, (words, d_words). The answer has the shapes
        (words, d_stream) and (length, d_stream).
        """
        return None


class Add(NoPositions):
    """Add the sinusoidal table, multiplied by ``row_factor``, to the words."""

    def __init__(
        self,
        size: Size,
        word_std: float | None = None,
        word_factor: float | None = None,
        row_factor: float = 1.0,
    ) -> None:
        super().__init__(size, word_std, word_factor)
        rows = row_factor * sinusoidal_table(size.seq_len, size.d_model)
        self.rows: Tensor = nn.Buffer(rows)

    def enter(self, words: Tensor) -> Tensor:
        return words + self.rows

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
        return words + self.factor * self.rows

    def tables(self, words: Tensor) -> tuple[Tensor, Tensor]:
        return words, self.factor * self.rows


class SideBySide(NoPositions):
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


class Project(NoPositions):
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


class Folded(NoPositions):
    """Add two given tables: what remains of `Project` when its matrix is multiplied into both."""

    def __init__(self, size: Size, rows: Tensor) -> None:
        super().__init__(size)
        self.word_factor = 1.0
        self.rows = nn.Parameter(rows)

    def enter(self, words: Tensor) -> Tensor:
        return words + self.rows

    def tables(self, words: Tensor) -> tuple[Tensor, Tensor]:
        return words, self.rows


class Untied(NoPositions):
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

    def bias(self) -> Tensor:
        heads = self.project(self.rows).unflatten(-1, (2, self.size.heads, -1))
        queries, keys = heads.permute(1, 2, 0, 3)
        scores: Tensor = queries @ keys.mT * (2 * queries.shape[-1]) ** -0.5
        return scores


class RelativeBias(NoPositions):
    """Add one trained number for each head and each offset to the scores, shared by all layers.

    These are the biases of T5 (Raffel et al., 2020) without its buckets, which the short windows
    do not need. They start with the standard deviation 0.02.
    """

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        offsets = 2 * size.seq_len - 1
        self.values = nn.Parameter(0.02 * torch.randn(size.heads, offsets))
        self.offset = nn.Buffer(ahead(size.seq_len) + size.seq_len - 1)

    def bias(self) -> Tensor:
        return self.values[:, self.offset]


class ALiBi(NoPositions):
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

    def bias(self) -> Tensor:
        return self.fixed


class Rotary(NoPositions):
    """Turn queries and keys by their position: RoPE (Su et al., 2021)."""

    def __init__(self, size: Size, word_factor: float | None = None) -> None:
        super().__init__(size, word_factor=word_factor)
        self.rotate = RotaryPositionalEncoding(size.d_model // size.heads, layout="interleaved")

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return self.rotate(queries), self.rotate(keys)


def ahead(length: int) -> Tensor:
    """How far key n lies ahead of query m: n − m, (length, length)."""
    t = torch.arange(length)
    return t - t[:, None]


def causal_bias(length: int) -> Tensor:
    """What hides later words when it joins the scores: −∞ where the key lies ahead, else 0."""
    return torch.zeros(length, length).masked_fill(ahead(length) > 0, -math.inf)


WAYS: dict[str, Callable[[Size], NoPositions]] = {
    "none": NoPositions,
    "add": Add,
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
    "untied": Untied,
    "relative-bias": RelativeBias,
    "alibi": ALiBi,
    "alibi-unmasked": lambda size: ALiBi(size, sided=False),
    "mask-alone": lambda size: ALiBi(size, sloped=False),
    "rotary": Rotary,
    "rotary-norm-1": lambda size: Rotary(size, word_factor=1.0),
}


# The model


class Attention(nn.Module):
    """Multi-head self-attention, written out so that its weights can be looked at."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(
        self, x: Tensor, way: NoPositions, bias: Tensor | None, seen: list[Tensor] | None
    ) -> Tensor:
        heads = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)
        queries, keys = way.turn(queries, keys)
        scores = queries @ keys.mT * queries.shape[-1] ** -0.5
        if bias is not None:
            scores = scores + bias
        weights = scores.softmax(dim=-1)
        if seen is not None:
            seen.append(weights)
        mixed: Tensor = self.out((weights @ values).transpose(1, 2).flatten(-2))
        return mixed


class Layer(nn.Module):
    """Attention, then two linear maps, each beside a residual and with a LayerNorm.

    ``norm`` is "pre" where the LayerNorm comes before each of the two, and "post" where it comes
    after the sum with the residual.
    """

    def __init__(self, width: int, heads: int, d_hidden: int, norm: str) -> None:
        super().__init__()
        self.norm = norm
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attend = Attention(width, heads)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, d_hidden), nn.ReLU(), nn.Linear(d_hidden, width)
        )

    def forward(
        self, x: Tensor, way: NoPositions, bias: Tensor | None, seen: list[Tensor] | None
    ) -> Tensor:
        first, second = self.norms
        if self.norm == "post":
            x = first(x + self.attend(x, way, bias, seen))
            x = second(x + self.feed_forward(x))
        else:
            x = x + self.attend(first(x), way, bias, seen)
            x = x + self.feed_forward(second(x))
        return x


class Encoder(nn.Module):
    """Words in, a score for each word of the vocabulary out, at the places asked for.

    ``causal`` hides later words from earlier ones. ``norm_sum`` puts a LayerNorm where the words,
    with whatever has joined them, enter the first layer. ``tied`` uses the table of words for the
    output as well.
    """

    def __init__(
        self,
        way: NoPositions,
        d_hidden: int,
        *,
        causal: bool = False,
        norm: str = "pre",
        norm_sum: bool = False,
        tied: bool = False,
    ) -> None:
        super().__init__()
        size, width = way.size, way.d_stream
        self.way, self.d_hidden, self.norm_of_layers = way, d_hidden, norm
        self.embed = nn.Embedding(size.vocabulary, way.d_words)
        nn.init.normal_(self.embed.weight, std=way.word_std)
        self.norm_sum = nn.LayerNorm(width) if norm_sum else nn.Identity()
        self.layers = nn.ModuleList(
            Layer(width, size.heads, d_hidden, norm) for _ in range(size.layers)
        )
        self.norm = nn.LayerNorm(width)
        self.score = nn.Linear(width, size.vocabulary)
        if tied:
            self.score.weight = self.embed.weight
        self.mask = nn.Buffer(causal_bias(size.seq_len)) if causal else None

    def forward(
        self, tokens: Tensor, target_indices: Tensor, seen: list[Tensor] | None = None
    ) -> Tensor:
        """Scores at ``target_indices``, which count through the batch: (targets, vocabulary).

        The attention weights of each layer are appended to ``seen``, if it is given.
        """
        x = self.norm_sum(self.way.enter(self.embed(tokens) * self.way.word_factor))
        bias = self.bias()
        for layer in self.layers:
            x = layer(x, self.way, bias, seen)
        scores: Tensor = self.score(self.norm(x.flatten(0, 1)[target_indices]))
        return scores

    def bias(self) -> Tensor | None:
        """What joins the scores of all layers: the bias of the way, and the causal mask."""
        bias = self.way.bias()
        if bias is None or self.mask is None:
            return self.mask if bias is None else bias
        return bias + self.mask


def parameters(model: nn.Module) -> int:
    """How many numbers training may change."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def matched_hidden(way: str, size: Size) -> int:
    """The width between the two linear maps of a layer that makes all ways equally large.

    `add` has four times the width of the stream. A way that brings parameters of its own, or saves
    some, gets so many fewer or more here that its total comes nearest to that of `add`.
    """
    wanted = parameters(Encoder(WAYS["add"](size), 4 * size.d_model))
    one, two = (parameters(Encoder(WAYS[way](size), width)) for width in (1, 2))
    return round(1 + (wanted - one) / (two - one))


@torch.no_grad()
def folded(model: Encoder) -> Encoder:
    """The same model, with the matrix of `Project` multiplied into a table of words and of rows."""
    project = model.way
    if not isinstance(project, Project):
        raise TypeError(f"only Project can be folded, got {type(project).__name__}")
    words, rows = project.tables(model.embed.weight * project.word_factor)
    # A tied model has two tables afterwards: only the one that words come from is multiplied.
    result = Encoder(
        Folded(project.size, rows),
        model.d_hidden,
        causal=model.mask is not None,
        norm=model.norm_of_layers,
        norm_sum=isinstance(model.norm_sum, nn.LayerNorm),
    )
    kept = {k: v for k, v in model.state_dict().items() if not k.startswith("way.")}
    result.load_state_dict(kept | {"embed.weight": words, "way.rows": rows})
    return result
