"""`python experiments/positions.py`: ways of giving a Transformer its positions, compared.

A small Transformer learns masked words, or the next word, of Shakespeare's works. Between two runs
only the way of giving positions differs, and the width inside the layers that makes all ways
equally large. See README.md for what is run, and positions_model.py for the ways.

Each run is stored in results/positions when it ends, in a file of its own. So the command may be
stopped at any time, and goes on where it stopped. `--list` says which runs are stored and which
are missing, `--summary` prints medians and ranges.
"""

import argparse
import datetime
import json
import math
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from experiments.positions_model import WAYS, Encoder, Size, folded, matched_hidden, parameters
from experiments.positions_results import (
    GRID_SEED,
    GRID_STEPS,
    MAIN_WAYS,
    RATE,
    RESULTS,
    STEPS,
    best_rate,
    load_results,
    read,
    summary,
)
from experiments.positions_text import MASK, Corpus, archive, corpus, sonnets

BATCH = 32
MASKED = 7  # words of each window that are masked: 7 of 48 are 14.6 %
ASKED = 12  # words of each window whose next word is asked for in training, drawn at random
EVERY = 100  # steps between two points of a curve
SIZES = {"small": Size(), "large": Size(d_model=208, layers=3, heads=8)}
TASKS = ("masked", "next")
# What the settings of a run may be that are names.
CHOICES = {
    "way": tuple(WAYS),
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
        """What the file of this run is called: task, way, and all that is not the default."""
        rest = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)[2:]
            if field.name in ("seed", "rate", "steps") or getattr(self, field.name) != field.default
        ]
        return " ".join([self.task, self.way, *rest]).replace(" ", "_")


SHORT = RESULTS.parent / "positions_short.json"


# Text in batches

TRAINING_STREAM, HELD_OUT_STREAM = 1_000_000, 2_000_000  # seeds that are apart from the weights'


class Batch(NamedTuple):
    """Windows of words, the places asked for (counted through the batch), and their answers."""

    tokens: Tensor  # (windows, length)
    target_indices: Tensor  # (targets,)
    answers: Tensor  # (targets,)


def asked(task: str, windows: Tensor, draw: torch.Generator, places: int) -> Batch:
    """The questions about windows of one word more than the model reads: (windows, length + 1).

    Of each window so many ``places`` are drawn at random. In the task "masked" the words there are
    hidden and asked for. In the task "next" the words after them are asked for.
    """
    read, following = windows[:, :-1], windows[:, 1:]
    number, length = read.shape
    drawn = torch.rand(number, length, generator=draw).topk(places).indices
    target_indices = (drawn + length * torch.arange(number)[:, None]).flatten()
    if task == "next":
        return Batch(read, target_indices, following.flatten()[target_indices])
    answers = read.flatten()[target_indices]
    hidden = read.flatten().index_fill(0, target_indices, MASK).view_as(read)
    return Batch(hidden, target_indices, answers)


def training_batches(words: Tensor, setting: Setting) -> Iterator[Batch]:
    """Windows from anywhere in the training text. One seed shows every way the same batches."""
    draw = torch.Generator().manual_seed(TRAINING_STREAM + setting.seed)
    window = torch.arange(SIZES[setting.size].seq_len + 1)
    places = MASKED if setting.task == "masked" else ASKED
    for _ in range(setting.steps):
        starts = torch.randint(len(words) - len(window) + 1, (BATCH,), generator=draw)
        yield asked(setting.task, words[starts[:, None] + window], draw, places)


def held_out_batches(words: Tensor, setting: Setting, *, every: int = 1) -> list[Batch]:
    """One window in ``every`` of the text held out, one after the other, always the same places."""
    draw = torch.Generator().manual_seed(HELD_OUT_STREAM)
    length = SIZES[setting.size].seq_len
    windows = words.unfold(0, length + 1, length)[::every]
    places = MASKED if setting.task == "masked" else length
    return [asked(setting.task, part, draw, places) for part in windows.split(BATCH)]


@torch.no_grad()
def losses(model: Encoder, batches: list[Batch]) -> Tensor:
    """The mean loss of each window, in nats a word: (windows,)."""
    found = []
    for tokens, target_indices, answers in batches:
        each = F.cross_entropy(model(tokens, target_indices), answers, reduction="none")
        found.append(each.view(len(tokens), -1).mean(dim=1))
    return torch.cat(found)


# What is looked at during training


@torch.no_grad()
def neighbours(model: Encoder, batch: Batch) -> list[list[list[float]]]:
    """Of each layer and head, the mean attention to the word before, the same and the next word."""
    seen: list[Tensor] = []
    model(batch.tokens, batch.target_indices, seen)
    means = [
        torch.stack([weights.diagonal(offset, 2, 3).mean(dim=(0, 2)) for offset in (-1, 0, 1)])
        for weights in seen
    ]
    return [[[round(share, 3) for share in head] for head in mean.T.tolist()] for mean in means]


@torch.no_grad()
def overlap(model: Encoder, frequency: Tensor) -> dict[str, float] | None:
    """How the tables of words and positions lie to each other, where the input is their sum.

    Words count as often as they come in the training text. All positions come equally often.
    """
    tables = model.way.tables(model.embed.weight * model.way.word_factor)
    if tables is None:
        return None
    words, rows = (table.detach().double() for table in tables)
    return overlap_of(words, rows, frequency.double())


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


def encoder(setting: Setting) -> Encoder:
    """The model of a run as it starts."""
    size = SIZES[setting.size]
    d_hidden = matched_hidden(setting.way, size) if setting.matched else 4 * size.d_model
    torch.manual_seed(setting.seed)  # here, because finding the width draws models too
    return Encoder(
        WAYS[setting.way](size),
        d_hidden,
        causal=setting.task == "next",
        norm=setting.norm,
        norm_sum=setting.norm_sum,
        tied=setting.tied,
    )


def optimiser_of(model: Encoder, setting: Setting) -> torch.optim.Optimizer:
    """AdamW, or SGD with momentum. The table of words and all vectors are free of weight decay."""
    table = [model.embed.weight]
    rest = [weight for weight in model.parameters() if weight is not model.embed.weight]
    groups: list[dict[str, Any]] = [
        {"params": table, "lr": setting.rate * setting.embedding_rate, "weight_decay": 0.0},
        {"params": [w for w in rest if w.ndim < 2], "weight_decay": 0.0},
        {"params": [w for w in rest if w.ndim >= 2]},
    ]
    if setting.optimiser == "SGD":
        return torch.optim.SGD(groups, lr=setting.rate, momentum=0.9, weight_decay=0.0)
    return torch.optim.AdamW(groups, lr=setting.rate, weight_decay=0.01, fused=True)


def train(
    model: Encoder, batches: Iterator[Batch], setting: Setting, watch: Callable[[int, float], None]
) -> None:
    """Train on each batch once. The rate rises for a short while, then falls to 0 in a line.

    `watch(step, loss)` is called after every step, with the loss of its batch.
    """
    optimiser = optimiser_of(model, setting)

    def factor(step: int) -> float:
        return min((step + 1) / (setting.warm_up + 1), 1 - step / setting.steps)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, factor)
    for step, (tokens, target_indices, answers) in enumerate(batches, 1):
        loss = F.cross_entropy(model(tokens, target_indices), answers)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        watch(step, loss.item())


def run(setting: Setting, text: Corpus) -> dict[str, Any]:
    """Train one model, and look at it on the way."""
    training, held_out = torch.from_numpy(text.training), torch.from_numpy(text.held_out)
    counts = np.bincount(text.training, minlength=SIZES[setting.size].vocabulary)
    frequency = torch.from_numpy(counts / counts.sum())
    sample = held_out_batches(held_out, setting, every=13)
    model = encoder(setting)
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
    seconds = round(time.process_time() - started, 1)
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

    model = encoder(setting)
    words = torch.arange(1000) % SIZES[setting.size].vocabulary
    tokens, target_indices, answers = next(training_batches(words, setting))
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(model(tokens, target_indices), answers).backward()
    return int(counter.get_total_flops())


def made() -> dict[str, str]:
    """When, where and by what a run is made."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
    }


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    parts = ("model name", "cpu family", "model\t")
    found = [next((line for line in lines if line.startswith(part)), "") for part in parts]
    return ", ".join(line.split(":", 1)[1].strip() for line in found if line) or platform.machine()


# What is stored


def store(done: dict[str, Any], file: Path) -> None:
    """Write one run, one line a key, all at once, so that an interruption leaves no half file."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in done.items())
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    unfinished.rename(file)


def file_of(setting: Setting) -> Path:
    return RESULTS / f"{setting.name}.json"


def stored(setting: Setting) -> bool:
    return file_of(setting).exists()


def load(setting: Setting) -> dict[str, Any]:
    return read(file_of(setting))


# Which runs there are, in the order in which they are made

GRID = (1e-3, 2e-3, 4e-3)
SEEDS, FIRST_SEEDS = range(5), range(3)  # the controls and the large model have the first three

# Behind a causal mask, their heads that look ahead would see nothing but their own place. There,
# ALiBi is "alibi-unmasked".
MASKED_ONLY = ("alibi", "mask-alone")
CONTROL_ONLY = ("rotary-norm-1", "add-small", "split-16-small", "add-learned-fast")
LARGE = ("none", "add", "project", "split-32", "untied", "rotary")


def others(task: str) -> list[str]:
    """The ways compared in a task beside the main ones."""
    ways = [way for way in WAYS if way not in (*MAIN_WAYS, *CONTROL_ONLY)]
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
    runs = load_results()
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


# The commands


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--list", action="store_true", help="say what is stored and missing")
    parser.add_argument("--summary", action="store_true", help="print medians and ranges")
    parser.add_argument(
        "--short", action="store_true", help="store the run that a test makes again"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes at a time")
    options = parser.parse_args()
    if options.list:
        print_list()
    elif options.summary:
        print("\n".join(summary(load_results())))
    elif options.short:
        store(make_short(), SHORT)
    else:
        make_all(options.workers)


def make_all(workers: int) -> None:
    """Make what is missing, one series after the other, in as many processes as asked for."""
    archive()  # here, or each process would download the text
    spawning = multiprocessing.get_context("spawn")
    with spawning.Pool(workers, torch.set_num_threads, (1,)) as pool:
        for name, settings in series():
            missing = [setting for setting in settings if not stored(setting)]
            print(f"{name}: {len(missing)} of {len(settings)} runs are missing", flush=True)
            for line in pool.imap_unordered(make, missing):
                print(datetime.datetime.now().strftime("%H:%M:%S"), line, flush=True)


def make_short() -> dict[str, Any]:
    """A short run on a text that is at hand, which a test makes again."""
    return run(Setting("untied", steps=25, warm_up=5), sonnets())


TEXT: list[Corpus] = []  # read once in each process


def make(setting: Setting) -> str:
    """Do one run and store it, unless it is stored. The answer says how it went."""
    if stored(setting):
        return f"{setting.name} is stored"
    TEXT[:] = TEXT or [corpus()]
    done = run(setting, TEXT[0])
    store(done, file_of(setting))
    return f"{setting.name} {done['loss']:.4f} ({done['cpu_seconds']:.0f} s)"


def print_list() -> None:
    """How many runs of each series are stored, and how long the missing ones may take.

    A run that belongs to several series is counted in the first.
    """
    listed: set[Setting] = set()
    missing: list[Setting] = []
    for name, settings in series():
        new = [setting for setting in settings if setting not in listed]
        listed.update(new)
        if not new and not (settings and all(map(stored, settings))):
            print(f"not known yet  {name}")  # it depends on runs that are missing
            continue
        missing_here = [setting for setting in new if not stored(setting)]
        missing += missing_here
        print(f"{len(new) - len(missing_here):6d} of {len(new):3d}  {name}")
    made = sum(run["cpu_seconds"] for run in load_results()) / 3600
    left = sum(map(expected_seconds, missing)) / 3600
    print(f"{made:.1f} hours of one core so far, and {left:.1f} for what is known to be missing")


def expected_seconds(setting: Setting) -> float:
    """About 50 ms a step of the small model, by what stored runs took. The large takes 6 times."""
    return setting.steps * 0.05 * (6 if setting.size == "large" else 1)


if __name__ == "__main__":
    main()
