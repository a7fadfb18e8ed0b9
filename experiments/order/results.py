"""What the experiment on order has stored, for the pages of the book. Needs no PyTorch."""

import math
from statistics import NormalDist, mean, median
from typing import NamedTuple

from experiments.positions.results import (
    left_plateau,
    loss_from,
    spread,
    strongest_neighbour,
    where,
)
from experiments.stored import Run, rows_beside

MARGIN = 0.1  # nats below the plateau, from where on a model counts as having left it
SMALLEST_SHARE = 1 / 16  # 3 of 48: attention to a neighbour, three times what even attention gives

# How encodings act, in the words of the chapters.
LABELS = {
    "none": "no positions",
    "add": "add",
    "rotary": "rotary, both layers",
    "rotary-first": "rotary, first layer",
    "rotary-last": "rotary, last layer",
    "untied": "untied score, both layers",
    "untied-first": "untied score, first layer",
    "untied-last": "untied score, last layer",
    "score-rows": "sinusoid into q and k, both layers",
    "score-rows-first": "sinusoid into q and k, first layer",
    "score-rows-last": "sinusoid into q and k, last layer",
    "relative-bias": "relative bias, started at 0",
    "relative-bias-kernel": "relative bias, started at K(Δ)",
    "add-base-100": "add, base 100",
    "add-base-10": "add, base 10",
}


def load_results() -> list[Run]:
    """All runs that are stored, in the order in which they ended."""
    return rows_beside(__file__)


def load_on_gpu() -> list[Run]:
    """The runs of seed 0, made once more on a GPU from the same weights and batches."""
    return rows_beside(__file__, "on_gpu.jsonl")


def made_on(run: Run) -> tuple[str, str]:
    """The device that made a run, and the version of PyTorch."""
    made = run["made"]
    return made.get("gpu", made["processor"]), made["torch"]


def plain(runs: list[Run], **wanted: object) -> list[Run]:
    """The runs of 3,000 steps at the usual rates on masked words of verse, or as ``wanted``."""
    usual = {"task": "masked", "text": "verse", "size": "small", "steps": 3000}
    rates = {"rate": 2e-3, "embedding_rate": 1.0}
    return where(runs, **(usual | rates | wanted))


def plateau(runs: list[Run]) -> float:
    """The lowest point on the curves of the runs without positions, in nats a word."""
    return float(min(loss for run in where(runs, encoding="none") for _, loss, _ in run["curve"]))


def exit_step(run: Run, plateau: float) -> int | None:
    """The first step on the curve that lies `MARGIN` below the plateau, if there is one."""
    return left_plateau(run, plateau - MARGIN)


def head_step(run: Run) -> int | None:
    """The first step after which a head looks at a neighbour more than three times as much as even.

    Heads are looked at after each 50 steps.
    """
    steps = (
        step
        for step, heads in run["heads"]
        if strongest_neighbour({"neighbours": heads}) > SMALLEST_SHARE
    )
    return next(steps, None)


def loss_after_exit(run: Run, plateau: float, steps: int = 1000) -> float | None:
    """The loss on the curve so many steps after the exit, or None where the run ends before."""
    left = exit_step(run, plateau)
    return None if left is None else loss_from(run, left + steps)


class Line(NamedTuple):
    """An encoding in the table: its seeds, the steps at which they leave, and the losses."""

    encoding: str
    seeds: int
    exits: list[int | None]  # of each seed, in the order of the seeds
    heads: list[int | None]
    median: float
    lowest: float
    highest: float
    known: float  # median of the loss of the answers that are not unknown words


def table(runs: list[Run]) -> list[Line]:
    """One line for each encoding, those that leave the plateau first at the top."""
    level = plateau(runs)
    lines = []
    for encoding in {run["encoding"]: None for run in runs}:
        of = sorted(where(runs, encoding=encoding), key=lambda run: run["seed"])
        lines.append(
            Line(
                encoding,
                len(of),
                [exit_step(run, level) for run in of],
                [head_step(run) for run in of],
                *spread(of)[:3],
                median(run["loss_known"] for run in of),
            )
        )
    return sorted(lines, key=lambda line: (median(map(late, line.exits)), line.median))


def late(step: int | None) -> float:
    """A step as a number, infinite for a run that never left the plateau."""
    return math.inf if step is None else step


class Difference(NamedTuple):
    """How much higher one loss is than another on the same windows, in nats a word."""

    seed: int
    mean: float
    lowest: float  # ends of the interval that holds the mean of such texts with 95 %
    highest: float


def paired(runs: list[Run], higher: str, lower: str) -> list[Difference]:
    """The loss of ``higher`` minus that of ``lower``, window by window, for each seed of both.

    The interval is that of a normal distribution over windows. It says how far the windows that
    were drawn may mislead; other seeds are another matter, so each seed has its own line.
    """
    found = []
    for one in where(runs, encoding=higher):
        for other in where(runs, encoding=lower, seed=one["seed"]):
            gaps = [a - b for a, b in zip(one["windows"], other["windows"], strict=True)]
            centre = mean(gaps)
            variance = sum((gap - centre) ** 2 for gap in gaps) / (len(gaps) - 1)
            half = NormalDist().inv_cdf(0.975) * math.sqrt(variance / len(gaps))
            found.append(Difference(one["seed"], centre, centre - half, centre + half))
    return sorted(found)
