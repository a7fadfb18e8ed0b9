"""Encodings and methods of lengthening for the models of length_transfer, beside the shared ones.

All models read texts of any length up to four times that of the training.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from experiments.common import Encoding, Size, Transformer
from experiments.encodings import ALiBi
from pe_lib.torch import frequencies, rotary_frequencies, sinusoidal_table

DIGITS = 7  # of the binary codes: enough for 128 positions
HEADS = 4
LENGTH = 24  # L: the length of every text in training
CLOCKS = {"one clock": (0.003,), "two clocks": (1.0, 0.01)}


# Encodings


class Plain(Encoding):
    """Words as PyTorch draws them: with variance 1, and not multiplied by anything."""

    def __init__(self, size: Size) -> None:
        super().__init__(size, word_factor=1.0)
        self.word_std = None


def code_values(code: str, length: int, d_model: int = 64) -> Tensor:
    """The encodings that are a fixed table: (length, coordinates)."""
    t = torch.arange(length)[:, None]
    digit = torch.arange(DIGITS)
    if code == "index":
        return t.float()
    if code == "normalised":
        return t / max(length - 1, 1)
    if code == "binary":
        return (t >> digit & 1).float()
    if code == "gray":
        return ((t ^ t >> 1) >> digit & 1).float()
    if code == "sine":
        return torch.sin(t / 10_000)
    if code == "index / 23":
        return t / (LENGTH - 1)
    if code == "sin x":
        return torch.sin(t.float())
    if code in CLOCKS:
        angles = t * torch.tensor(CLOCKS[code])
        return torch.cat((angles.sin(), angles.cos()), dim=1)
    if code in ("add", "concatenate"):
        return sinusoidal_table(length, d_model)
    raise ValueError(f"{code!r} is not a fixed table")


class AlongDirections(Plain):
    """Add a fixed table of few coordinates, along as many fixed random directions.

    One number added to every coordinate alike would be lost: LayerNorm subtracts the mean.
    """

    def __init__(self, size: Size, code: str) -> None:
        super().__init__(size)
        self.code = code
        self.directions = nn.Buffer(torch.randn(code_values(code, 1).shape[1], size.d_model))

    def enter(self, words: Tensor) -> Tensor:
        return words + code_values(self.code, words.shape[1]) @ self.directions


class AddSinusoids(Plain):
    """Add the sinusoidal table."""

    def enter(self, words: Tensor) -> Tensor:
        return words + code_values("add", *words.shape[1:])


class Concatenate(Plain):
    """Put the sinusoidal table beside the words, and map the 2d entries to d."""

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        self.project = nn.Linear(2 * size.d_model, size.d_model, bias=False)

    def enter(self, words: Tensor) -> Tensor:
        values = code_values("concatenate", *words.shape[1:])
        joined: Tensor = self.project(torch.cat((words, values.expand_as(words)), dim=-1))
        return joined


class RandomTable(Plain):
    """Add rows drawn once for all models, as long as sinusoidal ones and never trained."""

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        draw = torch.Generator().manual_seed(0)
        rows = torch.randn(size.seq_len, size.d_model, generator=draw)
        self.rows = nn.Buffer(F.normalize(rows) * (size.d_model / 2) ** 0.5)

    def enter(self, words: Tensor) -> Tensor:
        return words + self.rows[: words.shape[1]]


class Learned(Plain):
    """Add a trained table. Rows that training never reaches stay as they are drawn."""

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        self.table = nn.Parameter(torch.randn(size.seq_len, size.d_model))

    def enter(self, words: Tensor) -> Tensor:
        return words + self.table[: words.shape[1]]


def turned(x: Tensor, omega: Tensor) -> Tensor:
    """RoPE in its plain form: pair i of position t turned by ω_i t. x is (…, length, d_head)."""
    angle = torch.arange(x.shape[-2])[:, None] * omega
    cos, sin = angle.cos().float(), angle.sin().float()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


class Rotary(Plain):
    """RoPE with frequencies ``omega`` that can be changed, and a ``factor`` on queries and keys."""

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        self.omega = frequencies(size.d_model // size.heads).double()
        self.factor = 1.0

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return (
            self.factor * turned(queries, self.omega),
            self.factor * turned(keys, self.omega),
        )

    def stretch(self, way: str, factor: float) -> None:
        """Take the frequencies for longer texts, without training."""
        trained = frequencies(2 * len(self.omega)).double()
        self.omega = stretched(trained, way, factor)


class PlainALiBi(ALiBi):
    """ALiBi beside words as PyTorch draws them."""

    def __init__(self, size: Size, *, sided: bool = True, sloped: bool = True) -> None:
        super().__init__(size, sided=sided, sloped=sloped)
        self.word_std, self.word_factor = None, 1.0


def directions(code: str) -> Callable[[Size], Encoding]:
    return lambda size: AlongDirections(size, code)


ENCODINGS: dict[str, Callable[[Size], Encoding]] = {
    "none": Plain,
    "index": directions("index"),
    "normalised": directions("normalised"),
    "binary": directions("binary"),
    "gray": directions("gray"),
    "sine": directions("sine"),
    "add": AddSinusoids,
    "concatenate": Concatenate,
    "learned": Learned,
    "rotary": Rotary,
    "alibi": PlainALiBi,
    "alibi, no mask": lambda size: PlainALiBi(size, sided=False),
    "mask alone": lambda size: PlainALiBi(size, sloped=False),
}


# Beside the encodings that are compared, in two series. Does it matter what the rows are, if each
# is another? And what do the steps from the index to the sinusoid do, tried one by one?
RANDOM: dict[str, Callable[[Size], Encoding]] = {"random table": RandomTable}
STEPWISE: dict[str, Callable[[Size], Encoding]] = {
    code: directions(code) for code in ("index / 23", "sin x", *CLOCKS)
}


def transformer(
    encoding: Callable[[Size], Encoding], size: Size, d_hidden: int, *, causal: bool = False
) -> Transformer:
    """A model whose encoding is drawn last.

    So with one seed, all that the encodings have in common starts the same for each.
    """
    model = Transformer(Plain(size), d_hidden, causal=causal)
    model.encoding = encoding(size)
    return model


def rotary_of(model: Transformer) -> Rotary:
    """The RoPE of a model."""
    if not isinstance(model.encoding, Rotary):
        raise TypeError(f"model must have RoPE, got {type(model.encoding).__name__}")
    return model.encoding


# Frequencies for longer texts


def stretched(omega: Tensor, way: str, factor: float, length: int = LENGTH) -> Tensor:
    """Frequencies for texts ``factor`` times as long as in training, by the ways of the literature.

    "interpolation" divides all; "NTK" raises the base so that the slowest pair alone is divided by
    the factor; "YaRN" divides pairs with less than one turn within the length, keeps those with 32
    or more, and mixes between, evenly in the number of turns, as its paper says; "YaRN by pair"
    mixes evenly from pair to pair, as its code does; "slow pairs" divides the pairs with less than
    one turn alone. Of the fastest pair there are two controls: it alone is divided, or it is kept
    and all others are divided.
    """
    pairs, turns = len(omega), length * omega / (2 * math.pi)
    kept = ((turns - 1) / (32 - 1)).clamp(0, 1)
    by_pair: Tensor = rotary_frequencies(
        2 * pairs,
        rope_theta=10_000,  # the base of `omega` in all models here
        rope_type="yarn",
        factor=factor,
        original_max_position_embeddings=length,
    ).frequencies
    return {
        "as trained": omega,
        "interpolation": omega / factor,
        "NTK": omega * factor ** (-torch.arange(pairs) / (pairs - 1)),
        "YaRN": omega * (kept + (1 - kept) / factor),
        "YaRN by pair": by_pair.to(omega),
        "slow pairs": torch.where(turns < 1, omega / factor, omega),
        "fastest pair": torch.where(omega == omega.max(), omega / factor, omega),
        "all but the fastest": torch.where(omega == omega.max(), omega, omega / factor),
    }[way]


WAYS = ("as trained", "interpolation", "NTK", "YaRN", "YaRN by pair", "slow pairs")
WAYS_NAMED = (*WAYS, "fastest pair", "all but the fastest")
