"""The experiment "Add or concatenate": ways of giving a Transformer its positions, compared.

A small Transformer learns masked words, or the next word, of Shakespeare's works. Between two runs
only the encoding of positions differs, and the width inside the layers that makes all encodings
equally large. See README.md for what is run, and `encodings` for the ways (as the stored rows and
the book's pages call the encodings of this experiment).
"""

import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from experiments import words
from experiments.common import (
    SIZES,
    Results,
    Transformer,
    made,
    parameters,
    seconds_of,
    train,
)
from experiments.encodings import ENCODINGS, folded, matched_hidden
from experiments.positions.results import (
    GRID_SEED,
    GRID_STEPS,
    MAIN_WAYS,
    RATE,
    RESULTS,
    STEPS,
    best_rate,
)
from experiments.stored import Run
from experiments.words import Batch, Corpus, losses, neighbours

EVERY = 100  # steps between two points of a curve
TASKS = ("masked", "next")
# What the settings of a run may be that are names.
CHOICES = {
    "way": tuple(ENCODINGS),
    "task": TASKS,
    "size": tuple(SIZES),
    "optimiser": ("AdamW", "SGD"),
    "norm": ("pre", "post"),
}


@dataclass(frozen=True)
class Setting:
    """All that one run depends on, besides the code, the text and the versions."""

    way: str
    task: str = "masked"
    size: str = "small"
    seed: int = 0
    steps: int = STEPS
    rate: float = RATE  # the learning rate, before warm-up and decay multiply it
    warm_up: int = 100  # steps in which the rate rises from 0
    optimiser: str = "AdamW"
    embedding_rate: float = 1.0  # times the rate, for the table of words
    norm: str = "pre"
    norm_sum: bool = False  # a LayerNorm after words and positions have been added
    tied: bool = False  # the table of words is the matrix of the output too
    matched: bool = True  # as many parameters as `add`

    def __post_init__(self) -> None:
        """Refuse an unknown name, under which some other run would be stored."""
        for setting, choices in CHOICES.items():
            chosen = getattr(self, setting)
            if chosen not in choices:
                allowed = ", ".join(map(repr, choices))
                raise ValueError(f"{setting} must be one of {allowed}, got {chosen!r}")

    @property
    def name(self) -> str:
        """Task, way, and all that is not the default."""
        rest = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)[2:]
            if field.name in ("seed", "rate", "steps") or getattr(self, field.name) != field.default
        ]
        return " ".join([self.task, self.way, *rest])


STORED = Results(RESULTS)
SHORT = STORED.short  # the run that a test makes again


def training_batches(text: Tensor, setting: Setting) -> Iterator[Batch]:
    """The batches of a run."""
    length = SIZES[setting.size].seq_len
    return words.training_batches(
        text, setting.task, length, seed=setting.seed, steps=setting.steps
    )


def held_out_batches(text: Tensor, setting: Setting, *, every: int = 1) -> list[Batch]:
    """The windows that a run is measured on."""
    return words.held_out_batches(text, setting.task, SIZES[setting.size].seq_len, every=every)


# What is looked at during training


@torch.no_grad()
def overlap(model: Transformer, frequency: Tensor) -> dict[str, float] | None:
    """How the tables of words and positions lie to each other, where the input is their sum.

    Words count as often as they come in the training text. All positions come equally often.
    """
    tables = model.encoding.tables(model.embed.weight * model.encoding.word_factor)
    if tables is None:
        return None
    of_words, rows = (table.detach().double() for table in tables)
    return overlap_of(of_words, rows, frequency.double())


def overlap_of(words: Tensor, rows: Tensor, frequency: Tensor) -> dict[str, float]:
    """The price of overlap, and what it hangs on.

    * `price` is the share 2 tr R/(tr S + tr C) of two random jobs that one matrix for both loses,
      by the theorem "The price of overlap" of the book, with R = S(S + C)⁻¹C. The theorem asks for
      a mean of 0 in one of the two, so the mean row counts among the words.
    * `ratio_db` is how far the words are above the positions: 10 log₁₀ of the ratio of the mean
      squares of their norms.
    * `aligned` is the cosine between the covariances K of words and C of positions as vectors,
      tr(K C)/(‖K‖ ‖C‖): 0 where they share no direction, 1 where they are proportional.
    * `word_share` is the share of the variance of the words that lies in the principal directions
      of the positions that hold nine tenths of theirs, and `even_share` what it would be if the
      words were spread evenly over all directions.
    """
    mean_row = rows.mean(dim=0)
    moved = rows - mean_row
    of_positions = moved.T @ moved / len(rows)
    shifted = words + mean_row
    second_moment = shifted.T @ (frequency[:, None] * shifted)
    mean_word = frequency @ words
    of_words = words.T @ (frequency[:, None] * words) - mean_word[:, None] * mean_word
    inverse = torch.linalg.pinv(second_moment + of_positions, hermitian=True)
    lost = (second_moment @ inverse @ of_positions).trace()
    total = second_moment.trace() + of_positions.trace()
    variances, axes = torch.linalg.eigh(of_positions)
    held = variances.flip(0).cumsum(0) / variances.sum()
    rank = int((held < 0.9).sum()) + 1
    main = axes[:, -rank:]
    share = (main.T @ of_words @ main).trace() / of_words.trace()
    aligned = (of_words * of_positions).sum() / (of_words.norm() * of_positions.norm())
    found = {
        "price": 2 * lost / total,
        "ratio_db": 10 * torch.log10(frequency @ squares(words) / squares(rows).mean()),
        "aligned": aligned,
        "word_share": share,
        "even_share": rank / len(variances),
    }
    return {name: round(float(value), 4) + 0.0 for name, value in found.items()}  # no −0.0


def squares(rows: Tensor) -> Tensor:
    """The square of the norm of each row."""
    return rows.square().sum(dim=1)


def looked_at(step: int, steps: int) -> bool:
    """Whether heads and tables are looked at after this step: often at first."""
    return step == steps or step % (200 if step <= 2000 else 1000) == 0


# One run


def transformer(setting: Setting) -> Transformer:
    """The model of a run as it starts."""
    size = SIZES[setting.size]
    d_hidden = matched_hidden(setting.way, size) if setting.matched else 4 * size.d_model
    torch.manual_seed(setting.seed)  # here, because finding the width draws models too
    return Transformer(
        ENCODINGS[setting.way](size),
        d_hidden,
        causal=setting.task == "next",
        norm=setting.norm,
        norm_sum=setting.norm_sum,
        tied=setting.tied,
    )


def run_on(setting: Setting, text: Corpus) -> Run:
    """Train one model, and look at it on the way."""
    training, held_out = torch.from_numpy(text.training), torch.from_numpy(text.held_out)
    counts = np.bincount(text.training, minlength=SIZES[setting.size].vocabulary)
    frequency = torch.from_numpy(counts / counts.sum())
    sample = held_out_batches(held_out, setting, every=13)
    model = transformer(setting)
    curve: list[tuple[int, float, float]] = []
    looks: list[dict[str, Any]] = []
    since: list[float] = []

    def watch(step: int, loss: float) -> None:
        since.append(loss)
        if step % EVERY == 0 or step == setting.steps:
            now = float(losses(model, sample).mean())
            curve.append((step, round(now, 4), round(sum(since) / len(since), 4)))
            since.clear()
        if looked_at(step, setting.steps):
            look(step)

    def look(step: int) -> None:
        found: dict[str, Any] = {"step": step, "neighbours": neighbours(model, sample[0])}
        tables = overlap(model, frequency)
        if tables is not None:
            found["overlap"] = tables
        looks.append(found)

    look(0)
    started = time.process_time()
    train(model, training_batches(training, setting), setting, watch)
    seconds = seconds_of(started)
    at_end = losses(model, held_out_batches(held_out, setting))
    done = asdict(setting) | {
        "parameters": parameters(model),
        "d_hidden": model.d_hidden,
        "flops_per_step": flops_per_step(setting),
        "cpu_seconds": seconds,
        "loss": round(float(at_end.mean()), 5),
        "standard_error": round(float(at_end.std() / math.sqrt(len(at_end))), 5),
        "curve": curve,
        "looks": looks,
        "made": made(),
    }
    if setting.way == "project" and not is_control(setting):
        after = losses(folded(model), held_out_batches(held_out, setting))
        done["folding_moves_loss_by"] = float((after - at_end).abs().max())
    return done


def is_control(setting: Setting) -> bool:
    """Whether anything is changed that all the compared runs have in common."""
    usual = Setting(
        setting.way, setting.task, setting.size, setting.seed, setting.steps, setting.rate
    )
    return setting != usual


def flops_per_step(setting: Setting) -> int:
    """How many operations the products of one step of training take, forwards and backwards."""
    from torch.utils.flop_counter import FlopCounterMode

    model = transformer(setting)
    text = torch.arange(1000) % SIZES[setting.size].vocabulary
    tokens, target_indices, answers = next(training_batches(text, setting))
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(model(tokens, target_indices), answers).backward()
    return int(counter.get_total_flops())


# What is stored


def setting_of(run: Run) -> Setting:
    """The setting that a stored run was made with."""
    return Setting(**{field.name: run[field.name] for field in fields(Setting)})


def stored(setting: Setting) -> bool:
    return any(setting_of(run) == setting for run in STORED.rows())


def load(setting: Setting) -> Run:
    return next(run for run in STORED.rows() if setting_of(run) == setting)


# Which runs there are, in the order in which they are made

GRID = (1e-3, 2e-3, 4e-3)
SEEDS, FIRST_SEEDS = range(5), range(3)  # the controls and the large model have the first three

# Behind a causal mask, their heads that look ahead would see nothing but their own place. There,
# ALiBi is "alibi-unmasked".
MASKED_ONLY = ("alibi", "mask-alone")
CONTROL_ONLY = ("rotary-norm-1", "add-small", "split-16-small", "add-learned-fast")
# These belong to the experiment `order`.
NOT_HERE = tuple(
    name
    for name in ENCODINGS
    if name.startswith(("score-rows", "add-base")) or name.endswith(("-first", "-last", "-kernel"))
)
LARGE = ("none", "add", "project", "split-32", "untied", "rotary")


def others(task: str) -> list[str]:
    """The ways compared in a task beside the main ones."""
    ways = [way for way in ENCODINGS if way not in (*MAIN_WAYS, *CONTROL_ONLY, *NOT_HERE)]
    return [way for way in ways if task == "masked" or way not in MASKED_ONLY]


def narrow_grid(task: str, ways: Sequence[str]) -> list[Setting]:
    """Short runs of each way at each rate, of a seed that is not compared."""
    short = Setting("add", task=task, steps=GRID_STEPS, seed=GRID_SEED)
    return [replace(short, way=way, rate=rate) for way in ways for rate in GRID]


def wider_grid(task: str, ways: Sequence[str]) -> list[Setting]:
    """The grid, and up to two rates more for each way, until its best rate lies between others.

    Where a run of it is missing, the list ends with it, because the next rate depends on the run.
    """
    settings = narrow_grid(task, ways)
    for _ in range(2):
        if not all(map(stored, settings)):
            break
        for way in ways:
            settings += beyond([setting for setting in settings if setting.way == way])
    return settings


def beyond(tried: list[Setting]) -> list[Setting]:
    """Half or twice the best rate, where that is the lowest or the highest of those tried."""
    tried = sorted(tried, key=lambda setting: setting.rate)
    best = min(tried, key=lambda setting: load(setting)["loss"])
    if best == tried[0]:
        return [replace(best, rate=best.rate / 2)]
    if best == tried[-1]:
        return [replace(best, rate=best.rate * 2)]
    return []


def compared(task: str, ways: Sequence[str], seed: int) -> list[Setting]:
    """These ways, all at one rate."""
    return [Setting(way, task=task, steps=STEPS, seed=seed, rate=RATE) for way in ways]


def at_best_rate(task: str, ways: Sequence[str], seed: int) -> list[Setting]:
    """Each way in full length at the rate that was best in its short runs, once these are there."""
    if not all(map(stored, wider_grid(task, ways))):
        return []
    runs = STORED.rows()
    return [
        replace(usual, rate=best_rate(runs, task, usual.way))
        for usual in compared(task, ways, seed)
    ]


def length() -> list[Setting]:
    """Is the order of the ways the same after twice and four times the steps?"""
    ways = MAIN_WAYS[:5]
    return [
        Setting(way, steps=factor * STEPS, seed=seed, rate=RATE)
        for factor, seeds in ((1, (0, 1)), (2, (0, 1)), (4, (0,)))
        for seed in seeds
        for way in ways
    ]


def large(task: str) -> list[Setting]:
    """The ways that matter in a model four times as large, at half the rate for twice the width."""
    return [
        Setting(way, task=task, size="large", steps=STEPS, seed=seed, rate=RATE / 2)
        for seed in FIRST_SEEDS
        for way in LARGE
    ]


def controls() -> dict[str, list[Setting]]:
    """Runs that explain, each beside runs of `compared`. On masked words, where nothing is said."""
    seeds = FIRST_SEEDS
    root = math.sqrt(SIZES["small"].d_model)

    def with_change(way: str, **changed: Any) -> list[Setting]:
        """A way with one thing changed."""
        usual = Setting(way, steps=STEPS, rate=RATE)
        return [replace(usual, seed=seed, **changed) for seed in seeds]

    return {
        # The factor √d sets a ratio of norms and multiplies the rate of the table of words. Each of
        # the two with the other undone: high ratio and low rate, low ratio and high rate.
        "scale or rate": [
            setting
            for way, embedding_rate in (
                ("add", 1 / root),
                ("add-variance-1", root),
                ("add-norm-1", root),
                ("add-0.02", root),
                ("add", 1.0),
                ("add-variance-1", 1.0),
                ("add-norm-1", 1.0),
            )
            for setting in with_change(way, embedding_rate=embedding_rate)
        ],
        # The same change of the words where nothing is added to them, so that there is no ratio.
        "scale or rate, without a sum": [
            setting
            for way, embedding_rate in (
                ("rotary", 1 / root),
                ("rotary-norm-1", root),
                ("rotary-norm-1", 1.0),
            )
            for setting in with_change(way, embedding_rate=embedding_rate)
        ],
        # A trained table starts with small rows and small words. Is it the training, or the size?
        "small rows and words": [
            setting for way in ("add-small", "split-16-small") for setting in with_change(way)
        ],
        # Without the factor √d, a trained table learns slowly, and so do words. Does it gain if
        # both learn as fast as words with the factor do, or the words alone?
        "trained table, fast": [
            setting
            for task in TASKS
            for setting in (
                *with_change("add-learned-fast", task=task),
                *with_change("add-learned", task=task, embedding_rate=root),
            )
        ],
        "layer norm": [
            setting
            for change in ({"norm": "post"}, {"norm_sum": True})
            for way in ("add", "add-norm-1", "split-16", "rotary", "untied")
            for setting in with_change(way, **change)
        ],
        "tied output": [
            setting
            for way in ("none", "add", "add-norm-1", "project", "untied", "rotary")
            for setting in with_change(way, tied=True)
        ],
        "not matched": [
            setting
            for way in ("split-16", "keep-both-16", "project", "untied")
            for setting in with_change(way, matched=False)
        ],
        "no warm-up": [s for way in MAIN_WAYS[:5] for s in with_change(way, warm_up=0)],
        "SGD": [
            Setting(way, steps=STEPS, optimiser="SGD", rate=rate)
            for rate in (0.1, 0.3, 1.0)
            for way in (*MAIN_WAYS[:5], "none")
        ],
    }


GROUPS: dict[str, Callable[[str], Sequence[str]]] = {  # the ways of a task
    "the ways that matter": lambda task: MAIN_WAYS,
    "the other ways": others,
}


def other_rates(group: str) -> Iterator[tuple[str, list[Setting]]]:
    """The learning rates of these ways in short runs, and the best of them in full length."""
    for task in TASKS:
        ways = GROUPS[group](task)
        yield f"{task}: other learning rates, {group}", narrow_grid(task, ways)
        for more in ("one rate more", "two rates more"):
            yield f"{task}: {more}, {group}", wider_grid(task, ways)
        yield f"{task}: the best of these in full, {group}", at_best_rate(task, ways, SEEDS[0])


def best_rates_again(group: str, tasks: Sequence[str]) -> Iterator[tuple[str, list[Setting]]]:
    """The best learning rates in full length, with two seeds more."""
    for seed in FIRST_SEEDS[1:]:
        for task in tasks:
            settings = at_best_rate(task, GROUPS[group](task), seed)
            yield f"{task}: seed {seed} at the best rates, {group}", settings


def series() -> Iterator[tuple[str, list[Setting]]]:
    """All runs by name, in the order in which they are made.

    Between two series, every way of a group has been run equally often. A list is made when its
    turn comes, because some depend on what the runs before have found.
    """
    for seed in SEEDS:
        for task in TASKS:
            yield f"{task}: seed {seed}, the ways that matter", compared(task, MAIN_WAYS, seed)
        if seed == FIRST_SEEDS[-1]:  # what explains comes before what only makes ranges surer
            for name, settings in controls().items():
                yield f"control: {name}", sorted(settings, key=lambda setting: setting.seed)
    yield from other_rates("the ways that matter")
    yield from best_rates_again("the ways that matter", TASKS)
    yield "length of training", length()
    for task in TASKS:
        yield f"{task}: large model", large(task)
    for task in TASKS:
        for seed in SEEDS:
            yield f"{task}: seed {seed}, the other ways", compared(task, others(task), seed)
    yield from other_rates("the other ways")
    # On masked words the best rates of the short runs hardly helped the long ones.
    yield from best_rates_again("the other ways", ["next"])


# One run as the command makes it


def make(setting: Setting) -> Run:
    """One run on the text of the experiment."""
    return run_on(setting, whole_text())


def make_short() -> Run:
    """A short run on a text that is at hand, which a test makes again."""
    return run_on(Setting("untied", steps=25, warm_up=5), words.sonnets())


@functools.cache
def whole_text() -> Corpus:
    """The works of Shakespeare, read once in a process."""
    return words.text("all verse")
