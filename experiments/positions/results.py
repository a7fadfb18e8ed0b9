"""What the experiment on positions has stored, for the pages of the book.

Needs neither PyTorch nor the text.
"""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata, spearmanr

from experiments.stored import Run, rows_beside

RESULTS = Path(__file__).parent / "results.jsonl"


SMALL = {"size": "small", "optimiser": "AdamW", "norm": "pre", "matched": True, "tied": False}
PLAIN = SMALL | {"norm_sum": False, "embedding_rate": 1.0, "warm_up": 100}  # no control
# The ways that the pages compare, run first and with the most seeds.
MAIN_WAYS = ("add", "split-16", "rotary", "project", "untied", "none", "relative-bias")
WIDTH = 96  # of the small model: `Size.d_model`, which needs PyTorch
STEPS, RATE = 3000, 2e-3  # of the runs that are compared, the same for every way
GRID_STEPS, GRID_SEED = 1500, 100  # of the short runs that try other rates
# All but the seed, in the order by which a summary is sorted.
SETTINGS = (
    "task",
    "size",
    "steps",
    "optimiser",
    "norm",
    "matched",
    "tied",
    "norm_sum",
    "embedding_rate",
    "warm_up",
    "rate",
    "way",
)


class Spread(NamedTuple):
    """The final losses of runs that differ in the seed alone, in nats a word."""

    median: float
    lowest: float
    highest: float
    seeds: int


def load_results() -> list[Run]:
    """All runs that are stored, in the order of task, way and the other settings by name."""
    return rows_beside(__file__)


def where(runs: list[Run], **wanted: Any) -> list[Run]:
    """The runs with these settings, such as ``task="next", way="rotary"``."""
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def plain(runs: list[Run], **wanted: Any) -> list[Run]:
    """The runs of the small model that belong to no control, with these settings."""
    return where(runs, **(PLAIN | wanted))


def compared(runs: list[Run], task: str) -> dict[str, list[Run]]:
    """The runs of each main way, in the order of the median loss."""
    same = where(plain(runs, task=task), steps=STEPS, rate=RATE)
    main = [run for run in same if run["way"] in MAIN_WAYS and run["seed"] != GRID_SEED]
    return by(main, "way")


def scale_or_rate(runs: list[Run], way: str) -> dict[tuple[str, str], list[Run]]:
    """The runs of a way by how large its words start and how fast they learn, on masked words.

    "large" words are multiplied by √d, "small" ones are not. "fast" words change √d times as much
    in a step as "slow" ones: because of the factor, or because their table has the larger rate.
    """
    root = math.sqrt(WIDTH)
    cells = {
        ("large", "slow"): (way, 1 / root),
        ("large", "fast"): (way, 1.0),
        ("small", "slow"): (f"{way}-norm-1", 1.0),
        ("small", "fast"): (f"{way}-norm-1", root),
    }
    return {
        cell: plain(runs, task="masked", way=name, embedding_rate=rate, steps=STEPS, rate=RATE)
        for cell, (name, rate) in cells.items()
    }


def best_rate(runs: list[Run], task: str, way: str) -> float:
    """The learning rate with the lowest loss among the short runs of one way."""
    grid = where(plain(runs, task=task), way=way, steps=GRID_STEPS, seed=GRID_SEED)
    best = min(grid, key=lambda run: diverged_last(run["loss"]))
    return float(best["rate"])


def spread(runs: list[Run]) -> Spread:
    """Median and range of the final losses. A run that diverged counts as the highest of them."""
    losses = sorted((run["loss"] for run in runs), key=diverged_last)
    return Spread(median(losses), losses[0], losses[-1], len(losses))


def diverged_last(loss: float) -> tuple[bool, float]:
    """What to sort losses by: a run that diverged has NaN, which the usual order cannot place."""
    return math.isnan(loss), loss


def by(runs: list[Run], key: str) -> dict[Any, list[Run]]:
    """The runs by the value of one setting, in the order of the median loss, diverged runs last."""
    groups = {run[key]: where(runs, **{key: run[key]}) for run in runs}

    return dict(sorted(groups.items(), key=lambda item: diverged_last(spread(item[1]).median)))


def left_plateau(run: Run, level: float) -> int | None:
    """The first step on the curve whose held-out loss is below a level, if there is one.

    Let the level be a little below the lowest point on the curve of `none`, which cannot use the
    order of the words. Then this is the step at which a model has begun to use it. The level has to
    come from a curve: the final ``loss`` of a run is measured on more windows.
    """
    return next((step for step, loss, _ in run["curve"] if loss < level), None)


class ExitAndLoss(NamedTuple):
    """When a run left the plateau, and where it ended."""

    way: str
    seed: int
    step: int
    loss: float
    since: float | None = None  # the loss on the curve `SINCE` steps after it left, if so many came


SINCE = 1000


# Ways that cannot use the order of all words: no positions, and two controls of ALiBi.
CRIPPLED = ("none", "alibi-unmasked", "mask-alone")


def exits_and_losses(runs: list[Run], margin: float = 0.1) -> list[ExitAndLoss]:
    """Step to exit and final loss of all comparable runs that left the plateau.

    Comparable are runs on masked words of the small model, pre-LN, with AdamW and 3,000 steps, at
    any rate and of any control that keeps these, except those of `CRIPPLED`. A run has left the
    plateau where its curve lies ``margin`` below the lowest point of all runs without positions.
    """
    usual = {"task": "masked", "size": "small", "optimiser": "AdamW", "norm": "pre"}
    same = where(runs, steps=STEPS, **usual)
    without = where(plain(runs, task="masked", way="none"), steps=STEPS, rate=RATE)
    level = min(loss for run in without for _, loss, _ in run["curve"])
    found = []
    for run in same:
        step = left_plateau(run, level - margin)
        if run["way"] not in CRIPPLED and step is not None:
            since = loss_from(run, step + SINCE)
            found.append(ExitAndLoss(run["way"], run["seed"], step, run["loss"], since))
    return found


def loss_from(run: Run, step: int) -> float | None:
    """The first loss on the curve at this step or after it, or None where the run ends before."""
    return next((float(loss) for at, loss, _ in run["curve"] if at >= step), None)


def rank_correlation(pairs: list[ExitAndLoss]) -> float:
    """Spearman's correlation of step to exit and final loss: 1 where they rank runs alike."""
    return float(spearmanr([p.step for p in pairs], [p.loss for p in pairs]).statistic)


class Within(NamedTuple):
    """How the order of the seeds by step agrees with their order by loss, within each way."""

    correlation: (
        float  # 1 where both orders agree in every way, 0 where they have nothing in common
    )
    chance: float  # how often exchanged seeds correlate as strongly, in either direction
    ways: int
    runs: int


def rank_within(
    pairs: list[ExitAndLoss],
    loss: Callable[[ExitAndLoss], float | None] = lambda pair: pair.loss,
) -> Within:
    """Rank correlation of step to exit and loss between the seeds of one way, for all ways at once.

    Seeds are ranked within their way, so differences between ways do not count. Used are the ways
    that have a loss for every seed. A run of one seed sees the same windows in every way, so the
    chance exchanges the seeds in all ways at once: each of the orders of the seeds is tried.
    """
    seeds = sorted({pair.seed for pair in pairs})
    of_ways: dict[str, dict[int, tuple[int, float]]] = {}
    for pair in pairs:
        value = loss(pair)
        if value is not None:
            of_ways.setdefault(pair.way, {})[pair.seed] = pair.step, value
    whole = [
        [of_way[seed] for seed in seeds] for of_way in of_ways.values() if len(of_way) == len(seeds)
    ]
    ranks = rankdata(np.array(whole), axis=1)  # (way, seed, step and loss)
    steps, losses = np.moveaxis(ranks - ranks.mean(axis=1, keepdims=True), 2, 0)
    scale = math.sqrt(float((steps**2).sum() * (losses**2).sum()))
    exchanged = [
        float((steps * losses[:, order]).sum()) / scale
        for order in itertools.permutations(range(len(seeds)))
    ]
    observed = exchanged[0]  # the first order is the order itself
    as_strong = [abs(value) >= abs(observed) - 1e-9 for value in exchanged]
    return Within(observed, sum(as_strong) / len(as_strong), len(whole), steps.size)


def strongest_neighbour(look: Run) -> float:
    """The largest mean attention that any head of any layer gives to the word before or after."""
    heads = [head for layer in look["neighbours"] for head in layer]
    return float(max(max(before, after) for before, _, after in heads))


def summary(runs: list[Run]) -> list[str]:
    """A line for each group of runs that differ in the seed alone: median, range, seeds."""
    groups: dict[tuple, list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(run[key] for key in SETTINGS), []).append(run)
    return [line(groups[key]) for key in sorted(groups)]


def line(runs: list[Run]) -> str:
    """Runs that differ in the seed alone, in one line."""
    first, found = runs[0], spread(runs)
    changed = [f"{key}={first[key]}" for key, usual in PLAIN.items() if first[key] != usual]
    name = " ".join([first["task"], first["way"], *changed])
    return (
        f"{name:50s} {first['steps']:6d} steps  rate {first['rate']:<7g}"
        f" {found.median:.3f} ({found.lowest:.3f} to {found.highest:.3f}, {found.seeds} seeds)"
    )
