"""A closer look at some of the small models: what they attend to, and what disturbs them.

They are trained again, with the same settings and seeds. They are then asked what they attend to,
and what happens if far letters are hidden, rows exchanged, or single pairs of RoPE given other
frequencies. Three kinds of models are new: causal ones, small ones with wide heads, and large ones
with narrow heads.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from experiments.common import TEST_STREAM, Transformer, seconds_of
from experiments.length_transfer import run as lt
from experiments.length_transfer.model import (
    LENGTH,
    Learned,
    code_values,
    rotary_of,
    stretched,
)
from experiments.length_transfer.run import LENGTHS
from experiments.stored import Run
from pe_lib.torch import frequencies

NEW = {"2L": 2.0, "4L": 4.0}  # how many times as long as in training
ONE_PAIR = ((0, 0.75), (0, 1.0), (1, 0.75), (1, 1.0))  # a pair, and its multiple at 2L
CAUSAL_WAYS = ("as trained", "interpolation", "NTK", "YaRN by pair")


class Job(NamedTuple):
    """The name of a control, and a seed."""

    control: str
    seed: int


def jobs(seeds: int) -> list[Job]:
    """Every run."""
    return [Job(control, seed) for control in CONTROLS for seed in range(seeds)]


def run(job: Job) -> Run:
    """Train the model of one control, and measure it."""
    started = time.process_time()
    done = job._asdict() | CONTROLS[job.control](job.seed)
    done["cpu_seconds"] = seconds_of(started)
    return done


# RoPE, where each letter sees all letters


def first(seed: int) -> Run:
    """RoPE on *first*: the places of a longer text, far letters hidden, other frequencies."""
    model = lt.train("rotary", "first", seed=seed)
    done = accuracy_at_trained_length(model, "first", seed)
    done["cut"] = lowest_if_cut(model, seed)
    done["attention"] = attention_on_answer(model, "first", seed)
    layers: dict[str, tuple[int, ...]] = {
        "nowhere": (),
        "layer 0": (0,),
        "layer 1": (1,),
        "both layers": (0, 1),
    }
    done["hidden"] = {name: far_letters_hidden(model, seed, at) for name, at in layers.items()}
    omega = frequencies(16).double()
    done["changed"] = {
        "2L": {
            name: with_frequencies(model, "first", new, "2L", seed)
            for name, new in at_twice_the_length(omega).items()
        },
        "4L": {
            name: with_frequencies(model, "first", new, "4L", seed)
            for name, new in at_four_times_the_length(omega).items()
        },
    }
    by_pair = stretched(omega, "YaRN by pair", 2)
    done["changed"]["2L"]["YaRN by pair, with its factor"] = with_frequencies(
        model, "first", by_pair, "2L", seed, factor=yarn_factor(2)
    )
    return done


def copy(seed: int) -> Run:
    """RoPE on *copy*: what it attends to, and YaRN with the factor on its scores."""
    model = lt.train("rotary", "copy", seed=seed)
    done = accuracy_at_trained_length(model, "copy", seed)
    done["attention"] = attention_on_answer(model, "copy", seed)
    omega = frequencies(16).double()
    done["changed"] = {
        at: {
            name: with_frequencies(
                model, "copy", stretched(omega, "YaRN", times), at, seed, factor=factor
            )
            for name, factor in (("YaRN", 1.0), ("YaRN, with its factor", yarn_factor(times)))
        }
        for at, times in NEW.items()
    }
    return done


def accuracy_at_trained_length(model: nn.Module, task: str, seed: int) -> Run:
    return {"accuracy": {"L": rounded(lt.accuracy(model, task, LENGTH, seed=seed))}}


def rounded(share: Tensor | float) -> float:
    return round(float(share), 4)


@torch.no_grad()
def lowest_if_cut(model: nn.Module, seed: int) -> float:
    """How often *first* is right at the worst place of texts of 2L, if they are cut after L."""
    (texts,) = lt.batches(TEST_STREAM + seed, 1, lt.MEASURED, LENGTHS["2L"])
    right = model(texts[:, :LENGTH])[:, 1:].argmax(-1) == texts[:, :1]
    return rounded(right.double().mean(0).min())


@torch.no_grad()
def attention_on_answer(model: Transformer, task: str, seed: int) -> dict[str, float]:
    """Mean attention of the last layer on the letter asked for, and on letters L or more away.

    The letters that attend are those up to place 23, so all letters L or more away come later.
    """
    found: dict[str, float] = {}
    for at in ("L", "2L"):
        (texts,) = lt.batches(TEST_STREAM + seed, 1, 128, LENGTHS[at])
        attention = last_attention(model, texts)
        scored, source = lt.sources(task, LENGTHS[at])
        source, scored = source[scored < LENGTH], scored[scored < LENGTH]
        found[f"on the answer, {at}"] = rounded(attention[scored, source].mean())
        far = distances(LENGTHS[at]) >= LENGTH
        found[f"far, {at}"] = rounded((attention * far)[scored].sum(-1).mean())
        found[f"far if even, {at}"] = rounded(far[scored].double().mean())
    return found


def distances(length: int) -> Tensor:
    """|m − n| for all places: (length, length)."""
    at = torch.arange(length)
    return (at - at[:, None]).abs()


def last_attention(model: Transformer, texts: Tensor) -> Tensor:
    """The attention of the last layer, on average over texts and heads: (length, length)."""
    seen: list[Tensor] = []
    model(texts, seen=seen)
    return seen[-1].mean((0, 1))


def early_and_late(share: Tensor) -> dict[str, float]:
    """The mean share at the places 1 to 23, and from 24 on. Place 0 is not asked for anything."""
    return {
        "early": rounded(share[: LENGTH - 1].mean()),
        "late": rounded(share[LENGTH - 1 :].mean()),
    }


@torch.no_grad()
def far_letters_hidden(model: Transformer, seed: int, layers: tuple[int, ...]) -> dict[str, float]:
    """How often *first* is right at 2L if these layers do not see letters L or more away."""
    (texts,) = lt.batches(TEST_STREAM + seed, 1, lt.MEASURED, LENGTHS["2L"])
    far = distances(LENGTHS["2L"]) >= LENGTH
    near_only = torch.zeros(far.shape).masked_fill(far, -math.inf)
    x = model.entered(texts)
    for number, layer in enumerate(model.layers):
        x = layer(x, model.encoding, near_only if number in layers else None, None)
    right = model.score(model.norm(x))[:, 1:].argmax(-1) == texts[:, :1]
    return early_and_late(right.double().mean(0))


def at_twice_the_length(omega: Tensor) -> dict[str, Tensor]:
    """All frequencies halved, then one pair with another multiple, a method, and a control."""
    new = {"all halved": omega / 2}
    for pair, multiple in ONE_PAIR:
        changed = omega / 2
        changed[pair] = multiple * omega[pair]
        new[f"pair {pair} times {multiple:g}"] = changed
    for way in ("YaRN by pair", "fastest pair"):
        new[way] = stretched(omega, way, 2)
    return new


def at_four_times_the_length(omega: Tensor) -> dict[str, Tensor]:
    ways = ("all but the fastest", "slow pairs", "YaRN by pair")
    return {way: stretched(omega, way, 4) for way in ways}


def with_frequencies(
    model: Transformer, task: str, omega: Tensor, at: str, seed: int, *, factor: float = 1.0
) -> float:
    """The accuracy with these frequencies, which the model keeps, and with q and k × `factor`."""
    rotary = rotary_of(model)
    rotary.omega, rotary.factor = omega, factor
    reached = rounded(lt.accuracy(model, task, LENGTHS[at], seed=seed))
    rotary.factor = 1.0
    return reached


def yarn_factor(times: float) -> float:
    """YaRN's factor on queries and on keys: 0.1 ln s + 1."""
    return 0.1 * math.log(times) + 1


# RoPE, where a letter sees the letters before it, and heads of another width


def causal(task: str) -> Callable[[int], Run]:
    """RoPE under a causal mask, with new frequencies in longer texts."""

    def measured(seed: int) -> Run:
        model = lt.train("rotary", task, seed=seed, causal=True)
        done = accuracy_at_trained_length(model, task, seed)
        share = lt.right(model, task, LENGTHS["2L"], seed=seed)
        scored, _ = lt.sources(task, LENGTHS["2L"])
        done["early"] = rounded(share[scored < LENGTH].mean())
        done["late"] = rounded(share[scored >= LENGTH].mean())
        done["stretched"] = accuracies(model, task, CAUSAL_WAYS, seed)
        if task == "copy":
            rotary_of(model).stretch("interpolation", 2)
            done["six back"] = rounded(lt.named(model, LENGTHS["2L"], seed=seed)[6])
        return done

    return measured


def heads(size: str, number: int) -> Callable[[int], Run]:
    """RoPE on *copy* with another number of heads, so with heads of another width."""

    def measured(seed: int) -> Run:
        model = lt.train("rotary", "copy", seed=seed, size=lt.SIZES[size], heads=number)
        done = accuracy_at_trained_length(model, "copy", seed)
        done["stretched"] = accuracies(model, "copy", ("NTK", "slow pairs"), seed)
        return done

    return measured


def accuracies(model: Transformer, task: str, ways: tuple[str, ...], seed: int) -> Run:
    """The accuracy at 2L and 4L with the frequencies of each way."""
    found: Run = {way: {} for way in ways}
    for way in ways:
        for at, times in NEW.items():
            rotary_of(model).stretch(way, times)
            found[way][at] = rounded(lt.accuracy(model, task, LENGTHS[at], seed=seed))
    return found


# Tables of rows


@torch.no_grad()
def rows_used(model: Transformer, table: Tensor, seed: int) -> dict[str, float]:
    """How often the answers name letter `asked`, in texts of L with the rows in another order."""
    as_trained, exchanged = torch.arange(LENGTH), torch.arange(LENGTH)
    exchanged[[0, 9]] = exchanged[[9, 0]]
    order = torch.randperm(LENGTH - 1, generator=torch.Generator().manual_seed(seed))
    shuffled = torch.cat((torch.tensor([0]), 1 + order))
    (texts,) = lt.batches(TEST_STREAM + seed, 1, lt.MEASURED, LENGTH)
    found = {}
    for name, rows, asked in (
        ("as trained", as_trained, 0),
        ("rows 1 to 23 shuffled", shuffled, 0),
        ("rows 0 and 9 exchanged", exchanged, 9),
    ):
        answers = model.scores_of(model.embed(texts) + table[rows]).argmax(-1)
        others = torch.arange(LENGTH) != asked
        found[name] = rounded((answers == texts[:, [asked]])[:, others].double().mean())
    return found


def table_first(code: str) -> Callable[[int], Run]:
    """A table of rows on *first*: which rows does the model use?"""

    def measured(seed: int) -> Run:
        model = lt.train(code, "first", seed=seed)
        done = accuracy_at_trained_length(model, "first", seed)
        encoding = model.encoding
        table = encoding.table if isinstance(encoding, Learned) else code_values(code, LENGTH)
        done["rows"] = rows_used(model, table, seed)
        return done

    return measured


def add_copy(seed: int) -> Run:
    """Added sinusoids on *copy*, in texts that are one letter longer than those of the training."""
    model = lt.train("add", "copy", seed=seed)
    done = accuracy_at_trained_length(model, "copy", seed)
    share = lt.right(model, "copy", LENGTH + 1, seed=seed)
    done["one letter more"] = {"place 23": rounded(share[-2]), "place 24": rounded(share[-1])}
    return done


CONTROLS: dict[str, Callable[[int], Run]] = {
    "rotary, first": first,
    "rotary, copy": copy,
    "causal, first": causal("first"),
    "causal, copy": causal("copy"),
    "small, wide heads": heads("small", 2),
    "large, narrow heads": heads("large", 8),
    "learned, first": table_first("learned"),
    "add, first": table_first("add"),
    "add, copy": add_copy,
}
