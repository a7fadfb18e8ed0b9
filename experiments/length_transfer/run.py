"""Every encoding of the book in one experiment: which still work on texts longer than trained?

A small Transformer learns to copy letters inside texts of length L. Then it is asked the same of
texts of length 2L and 4L, which it has never seen. Which letter a position has to copy is the task:
one is relative (three back), two are absolute (the start of its block, the start of all).

Nothing but the encoding differs between two runs of one task, size and seed. Where nothing is said,
the choices are PyTorch's defaults.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from experiments import common
from experiments.common import TEST_STREAM, TRAINING_STREAM, Transformer, seconds_of
from experiments.length_transfer.model import (
    DIGITS,
    ENCODINGS,
    HEADS,
    LENGTH,
    RANDOM,
    STEPWISE,
    WAYS,
    WAYS_NAMED,
    rotary_of,
    transformer,
)

TASKS: tuple[str, ...] = ("copy", "block", "first")

VOCABULARY = 16
MEASURED = 1024  # sequences to take an accuracy from
BATCH, STEPS = 16, 500
LEARNING_RATE = 4e-3  # at the start, for all encodings alike: see `rates`
LENGTHS = {"L": LENGTH, "2L": 2 * LENGTH, "4L": 4 * LENGTH}


class Size(NamedTuple):
    """The size of a model. All encodings are tried in the small one, a few in the large one."""

    d_model: int
    layers: int
    d_hidden: int


SIZES = {"small": Size(64, 2, 128), "large": Size(128, 3, 256)}
SMALL = SIZES["small"]
ENCODINGS_OF_LARGE = ("add", "learned", "rotary", "alibi", "mask alone")


# The tasks


def sources(task: str, length: int) -> tuple[Tensor, Tensor]:
    """The positions that are scored, and for each the position whose token it has to copy.

    No position copies its own token, so that all tasks are equally hard to guess: see `chance`.
    """
    t = torch.arange(length)
    source, scored = {
        "copy": (t - 3, t >= 3),  # relative: three back
        "block": (t - t % 4, t % 4 > 0),  # absolute: the first token of the present block of four
        "first": (torch.zeros_like(t), t > 0),  # absolute: the first token of the sequence
    }[task]
    return t[scored], source[scored]


def chance(length: int) -> float:
    """What the best encoder without a code is expected to reach, in any of the tasks.

    It knows which other tokens there are, not where: to it each is as likely as the next to be the
    one asked for. The best guess is the most frequent of them.
    """
    others = length - 1
    expected = 0.0
    for most in range(others):
        # P(no token comes more than `most` times), by the exponential generating function.
        counts = [1 / math.factorial(k) for k in range(most + 1)]
        ways = np.polynomial.polynomial.polypow(counts, VOCABULARY)
        within = ways[others] if others < len(ways) else 0.0
        expected += 1 - within * math.factorial(others) / float(VOCABULARY) ** others
    return float(expected / others)


def batches(
    seed: int, steps: int, batch: int, length: int, vocabulary: int = VOCABULARY
) -> Iterator[Tensor]:
    """Random sequences of tokens: `steps` times (batch, length)."""
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        yield torch.randint(vocabulary, (batch, length), generator=draw)


# Training and measuring


def encoder(
    code: str, size: Size = SMALL, *, heads: int = HEADS, causal: bool = False
) -> Transformer:
    """The model of a run as it starts."""
    shape = common.Size(size.d_model, size.layers, heads, LENGTHS["4L"], VOCABULARY)
    return transformer((ENCODINGS | RANDOM | STEPWISE)[code], shape, size.d_hidden, causal=causal)


def parameters(code: str, size: Size = SMALL) -> int:
    """How many numbers training may change."""
    return common.parameters(encoder(code, size))


def train(
    code: str,
    task: str,
    *,
    seed: int,
    size: Size = SMALL,
    heads: int = HEADS,
    causal: bool = False,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
    watch: Callable[[int, nn.Module], None] | None = None,
) -> Transformer:
    """A trained model. The seed sets the initial weights and the sequences."""
    torch.manual_seed(seed)
    model = encoder(code, size, heads=heads, causal=causal)
    shown = batches(TRAINING_STREAM + seed, steps, BATCH, LENGTH)
    fit(model, task, shown, steps, learning_rate, watch)
    return model


def fit(
    model: nn.Module,
    task: str,
    shown: Iterator[Tensor],
    steps: int,
    learning_rate: float,
    watch: Callable[[int, nn.Module], None] | None = None,
) -> None:
    """Train on each batch once. The rate falls to zero in a straight line.

    `watch(step, model)` is called after every step.
    """
    changing = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(changing, lr=learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=steps)
    for step, tokens in enumerate(shown, 1):
        scored, source = sources(task, tokens.shape[1])
        scores = model(tokens)[:, scored]
        loss = F.cross_entropy(scores.flatten(0, 1), tokens[:, source].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if watch:
            watch(step, model)


@torch.no_grad()
def right(
    model: nn.Module,
    task: str,
    length: int,
    *,
    seed: int,
    sequences: int = MEASURED,
    vocabulary: int = VOCABULARY,
) -> Tensor:
    """The share of right answers at each scored position of fresh random sequences."""
    (tokens,) = batches(TEST_STREAM + seed, 1, sequences, length, vocabulary)
    scored, source = sources(task, length)
    answers = model(tokens)[:, scored].argmax(dim=-1)
    hits: Tensor = answers == tokens[:, source]
    return hits.double().mean(dim=0)


def accuracy(
    model: nn.Module, task: str, length: int, *, seed: int, sequences: int = MEASURED
) -> float:
    """The share of right answers among the scored positions of fresh random sequences."""
    return float(right(model, task, length, seed=seed, sequences=sequences).mean())


@torch.no_grad()
def named(
    model: nn.Module, length: int, *, seed: int, farthest: int = LENGTH, sequences: int = MEASURED
) -> Tensor:
    """How often the answer is the token 0, 1, …, `farthest` places back, where there is one.

    The sequences are those that `accuracy` measures, so that of *copy* entry 3 is the accuracy. A
    token that has nothing to do with the answer agrees with it in one of VOCABULARY cases.
    """
    (tokens,) = batches(TEST_STREAM + seed, 1, sequences, length)
    answers = model(tokens).argmax(dim=-1)
    agree = [answers[:, n:] == tokens[:, : length - n] for n in range(farthest + 1)]
    return torch.stack([same.double().mean() for same in agree])


# The full run

RATES = (2e-3, 4e-3, 8e-3)
PROBES = (
    ("normalised", "copy"),
    ("index", "copy"),
    ("add", "block"),
    ("rotary", "copy"),
)
PROBE_SEED = 1000
RESULTS = common.Results(Path(__file__).parent / "results.jsonl")


class Job(NamedTuple):
    """What one run depends on."""

    size: str
    code: str  # the encoding, by its name in ENCODINGS
    task: str
    seed: int


def jobs(seeds: int) -> list[Job]:
    """Every run of the experiment."""
    return [
        Job(size, code, task, seed)
        for size, codes in (("small", tuple(ENCODINGS)), ("large", ENCODINGS_OF_LARGE))
        for seed in range(seeds)
        for task in TASKS
        for code in codes
    ]


def jobs_random(seeds: int) -> list[Job]:
    """The runs of random rows, in the small model."""
    return [Job("small", *one) for one in itertools.product(RANDOM, TASKS, range(seeds))]


def jobs_stepwise(seeds: int) -> list[Job]:
    """The runs of the steps from the index to the sinusoid, in the small model, of two tasks."""
    tasks = ("copy", "block")
    return [Job("small", *one) for one in itertools.product(STEPWISE, tasks, range(seeds))]


def jobs_named(seeds: int) -> list[Job]:
    """The runs of RoPE on *copy*."""
    return [job for job in jobs(seeds) if (job.code, job.task) == ("rotary", "copy")]


def settings(seeds: int) -> dict[str, Any]:
    """All that the numbers of every series depend on."""
    return {
        "length": LENGTH,
        "vocabulary": VOCABULARY,
        "heads": HEADS,
        "digits": DIGITS,
        "sizes": {name: list(size) for name, size in SIZES.items()},
        "norm": "pre-LN",
        "optimiser": "Adam, its rate falling to 0 in a straight line",
        "learning_rate": LEARNING_RATE,
        "batch": BATCH,
        "steps": STEPS,
        "sequences_measured": MEASURED,
        "probe_seed": PROBE_SEED,
        "seeds": seeds,
    }


def provenance(seeds: int) -> dict[str, Any]:
    """How the runs of the whole experiment are made, and what they are measured against."""
    return made(seeds) | {
        "settings": settings(seeds),
        "chance": {task: {at: chance(n) for at, n in LENGTHS.items()} for task in TASKS},
        "parameters": {
            "small": {code: parameters(code) for code in ENCODINGS},
            "large": {code: parameters(code, SIZES["large"]) for code in ENCODINGS_OF_LARGE},
        },
    }


def closer_look(seeds: int) -> dict[str, Any]:
    """How the runs are made that look closer at some of the same models."""
    return made(seeds) | {"settings": settings(seeds)}


def made(seeds: int) -> dict[str, Any]:
    return common.made_by(f"python -m experiments.length_transfer --seeds {seeds}")


def rates(pool: Any) -> dict[str, dict[str, float]]:
    """How the learning rate was chosen: the lowest with which every probe reaches 0.99 at length L.

    Accuracy beyond L has no part in it, and the probes' seed is none of those that are compared.
    """
    found: dict[str, dict[str, float]] = {}
    for rate in RATES:
        reached = pool.starmap(reach, [(*probe, rate) for probe in PROBES], 1)
        found[str(rate)] = dict(zip(map(", ".join, PROBES), reached, strict=True))
    return found


def reach(code: str, task: str, rate: float) -> float:
    model = train(code, task, seed=PROBE_SEED, learning_rate=rate)
    return round(accuracy(model, task, LENGTH, seed=PROBE_SEED), 4)


def run(job: Job) -> dict[str, Any]:
    """Train one model, and measure it at L after each tenth of its steps, then at all lengths.

    Of "block" each block is measured, of RoPE each way to stretch its frequencies.
    """
    size, code, task, seed = job
    curve = []

    def watch(step: int, model: nn.Module) -> None:
        if step % (STEPS // 10) == 0:
            curve.append(round(accuracy(model, task, LENGTH, seed=seed, sequences=64), 3))

    started = time.process_time()
    model = train(code, task, seed=seed, size=SIZES[size], watch=watch)
    reached = {at: right(model, task, n, seed=seed) for at, n in LENGTHS.items()}
    done: dict[str, Any] = job._asdict()
    done["accuracy"] = {at: round(float(share.mean()), 4) for at, share in reached.items()}
    done["curve"] = curve
    if task == "block":  # three scored positions each
        done["blocks"] = [round(float(b), 3) for b in reached["4L"].view(-1, 3).mean(dim=1)]
    if code == "rotary":
        done["stretched"] = stretched_accuracies(model, task, seed)
    done["cpu_seconds"] = seconds_of(started)
    return done


def run_named(job: Job) -> dict[str, Any]:
    """Train one model, and count which letter it names with frequencies stretched in each way."""
    size, code, task, seed = job
    started = time.process_time()
    model = train(code, task, seed=seed, size=SIZES[size])
    done: dict[str, Any] = job._asdict()
    done["accuracy"] = {"L": round(accuracy(model, task, LENGTH, seed=seed), 4)}
    done["named"] = {way: {} for way in WAYS_NAMED}
    for way in WAYS_NAMED:
        for at, factor in (("2L", 2), ("4L", 4)):
            rotary_of(model).stretch(way, factor)
            shares = named(model, LENGTHS[at], seed=seed).tolist()
            done["named"][way][at] = [round(share, 4) for share in shares]
    done["cpu_seconds"] = seconds_of(started)
    return done


def stretched_accuracies(model: Transformer, task: str, seed: int) -> dict[str, dict[str, float]]:
    """The accuracy of one trained model with frequencies stretched in each way, untrained."""
    found: dict[str, dict[str, float]] = {}
    for way in WAYS:
        found[way] = {}
        for at, factor in (("2L", 2), ("4L", 4)):
            rotary_of(model).stretch(way, factor)
            found[way][at] = round(accuracy(model, task, LENGTHS[at], seed=seed), 4)
    return found
