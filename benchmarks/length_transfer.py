"""`nice python benchmarks/length_transfer.py`: every code of the book in one experiment.

A small Transformer encoder learns to copy tokens inside sequences of length L. Then it is asked the
same of sequences of length 2L, which it has never seen. Which token a position has to copy is the
task: one is relative (three back), two are absolute (the start of its block, the start of all).

Nothing but the code differs between two runs of one task and seed. The results of every code, task
and seed go to results/length_transfer.json, with their provenance. Where nothing is said, the
choices are PyTorch's defaults.
"""

import argparse
import datetime
import json
import math
import multiprocessing
import multiprocessing.pool
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from run import cpu
from torch import Tensor, nn
from torch.nn import functional as F

from pe_lib.torch import RotaryPositionalEncoding, sinusoidal_table

CODES: tuple[str, ...] = (
    "none", "index", "normalised", "binary", "gray", "sine",
    "add", "concatenate", "learned", "rotary", "alibi", "alibi, no mask",
)  # fmt: skip
TASKS: tuple[str, ...] = ("copy", "block", "first")

LENGTH = 24  # L: the length of every sequence in training
VOCABULARY = 16
D_MODEL, HEADS, LAYERS, D_HIDDEN = 64, 4, 2, 128
DIGITS = 6  # of the binary codes: enough for 64 positions
MEASURED = 1024  # sequences to take an accuracy from
BATCH, STEPS = 16, 500
LEARNING_RATE = 4e-3  # at the start, for all codes alike: see `rates`
RESULTS = Path(__file__).parent / "results" / "length_transfer.json"


# The tasks


def sources(task: str, length: int) -> tuple[Tensor, Tensor]:
    """The positions that are scored, and for each the position whose token it has to copy.

    No position copies its own token, so that all tasks are equally hard to guess: see `chance`.
    """
    t = torch.arange(length)
    if task == "copy":  # relative: three back
        source, scored = t - 3, t >= 3
    elif task == "block":  # absolute: the first token of the present block of four
        source, scored = t - t % 4, t % 4 > 0
    elif task == "first":  # absolute: the first token of the sequence
        source, scored = torch.zeros_like(t), t > 0
    else:
        raise ValueError(f"task must be one of {TASKS}, got {task!r}")
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


TRAINING_STREAM, TEST_STREAM = 1_000_000, 2_000_000  # so that weights, training and test are apart


def batches(seed: int, steps: int, batch: int, length: int) -> Iterator[Tensor]:
    """Random sequences of tokens: `steps` times (batch, length)."""
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        yield torch.randint(VOCABULARY, (batch, length), generator=draw)


# The model


def code_values(code: str, length: int) -> Tensor:
    """The codes that are a fixed table: (length, coordinates)."""
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
    if code in ("add", "concatenate"):
        return sinusoidal_table(length, D_MODEL)
    raise ValueError(f"{code!r} is not a fixed table")


class Position(nn.Module):
    """Give embeddings (batch, length, d_model) their positions, for codes that do so at the input.

    A code of one or six coordinates enters along as many fixed random directions. One number added
    to every coordinate alike would be lost: LayerNorm subtracts the mean.
    """

    def __init__(self, code: str, max_len: int) -> None:
        super().__init__()
        self.code = code
        if code in ("index", "normalised", "binary", "gray", "sine"):
            coordinates = code_values(code, 1).shape[1]
            self.directions = nn.Buffer(torch.randn(coordinates, D_MODEL))
        elif code == "concatenate":
            self.project = nn.Linear(2 * D_MODEL, D_MODEL, bias=False)
        elif code == "learned":  # rows that training never reaches stay as they are drawn here
            self.table = nn.Parameter(torch.randn(max_len, D_MODEL))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        if self.code in ("none", "rotary", "alibi", "alibi, no mask"):
            return x  # the last three act inside attention
        if self.code == "learned":
            return x + self.table[:length]
        values = code_values(self.code, length)
        if self.code == "add":
            return x + values
        if self.code == "concatenate":
            joined: Tensor = self.project(torch.cat((x, values.expand_as(x)), dim=-1))
            return joined
        return x + values @ self.directions


def alibi(length: int, *, masked: bool) -> Tensor:
    """ALiBi's bias −m|r − s| for an encoder, and its mask where asked: (heads, length, length).

    With the bias alone a head cannot tell left from right. With the mask every second head looks
    back only, as the causal heads that ALiBi was made for do, and the others look ahead only.
    """
    slopes = 2.0 ** (-8 * torch.arange(1, HEADS + 1) / HEADS)
    t = torch.arange(length)
    ahead = t - t[:, None]
    bias = -slopes[:, None, None] * ahead.abs()
    if not masked:
        return bias
    side = torch.tensor([-1, 1]).repeat(HEADS // 2)[:, None, None]
    return bias.masked_fill(side * ahead < 0, -math.inf)


class Attention(nn.Module):
    """Multi-head attention from every position to every position."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self.code = code
        self.qkv = nn.Linear(D_MODEL, 3 * D_MODEL)
        self.out = nn.Linear(D_MODEL, D_MODEL)
        self.turn = RotaryPositionalEncoding(D_MODEL // HEADS)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        if self.code == "rotary":
            q, k = self.turn(q), self.turn(k)
        bias = None
        if self.code in ("alibi", "alibi, no mask"):
            bias = alibi(x.shape[1], masked=self.code == "alibi")
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        result: Tensor = self.out(mixed.transpose(1, 2).flatten(-2))
        return result


class Layer(nn.Module):
    """Attention, then two linear maps, each after a LayerNorm and beside a residual (pre-LN)."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(D_MODEL), Attention(code))
        self.think = nn.Sequential(
            nn.LayerNorm(D_MODEL),
            nn.Linear(D_MODEL, D_HIDDEN),
            nn.ReLU(),
            nn.Linear(D_HIDDEN, D_MODEL),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(x)
        x = x + self.think(x)
        return x


class Encoder(nn.Module):
    """Tokens (batch, length) in, a score for each word of the vocabulary out."""

    def __init__(self, code: str, *, max_len: int = 2 * LENGTH) -> None:
        super().__init__()
        if code not in CODES:
            raise ValueError(f"code must be one of {CODES}, got {code!r}")
        self.embed = nn.Embedding(VOCABULARY, D_MODEL)
        self.layers = nn.Sequential(*(Layer(code) for _ in range(LAYERS)))
        self.score = nn.Sequential(nn.LayerNorm(D_MODEL), nn.Linear(D_MODEL, VOCABULARY))
        # Drawn last: with one seed, all that the codes have in common starts the same for each.
        self.position = Position(code, max_len)

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.score(self.layers(self.position(self.embed(tokens))))
        return scores


def parameters(code: str) -> int:
    """How many numbers training may change."""
    return sum(p.numel() for p in Encoder(code).parameters())


# Training and measuring


def train(
    code: str,
    task: str,
    *,
    seed: int,
    steps: int = STEPS,
    length: int = LENGTH,
    batch: int = BATCH,
    learning_rate: float = LEARNING_RATE,
    watch: Callable[[int, Encoder], None] | None = None,
) -> Encoder:
    """A model that has seen `steps` batches of random sequences, each of them once.

    The seed sets the initial weights and the sequences. The rate falls to zero in a straight
    line. `watch(step, model)` is called after every step.
    """
    torch.manual_seed(seed)
    model = Encoder(code, max_len=2 * length)
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=steps)
    scored, source = sources(task, length)
    for step, tokens in enumerate(batches(TRAINING_STREAM + seed, steps, batch, length), 1):
        scores = model(tokens)[:, scored]
        loss = F.cross_entropy(scores.flatten(0, 1), tokens[:, source].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if watch:
            watch(step, model)
    return model


@torch.no_grad()
def accuracy(
    model: Encoder, task: str, length: int, *, seed: int, sequences: int = MEASURED
) -> float:
    """The share of right answers among the scored positions of fresh random sequences."""
    (tokens,) = batches(TEST_STREAM + seed, 1, sequences, length)
    scored, source = sources(task, length)
    answers = model(tokens)[:, scored].argmax(dim=-1)
    return float((answers == tokens[:, source]).double().mean())


# The full run

RATES = (2e-3, 4e-3, 8e-3)
PROBES = (
    ("normalised", "copy"), ("index", "copy"), ("add", "block"), ("rotary", "copy"),
)  # fmt: skip
PROBE_SEED = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--add", action="store_true", help="train what the stored results lack, and keep the rest"
    )
    options = parser.parse_args()
    processes = multiprocessing.get_context("spawn")
    with processes.Pool(options.processes, torch.set_num_threads, (1,)) as pool:
        results = (add_missing if options.add else train_all)(pool, options.seeds)
    for line in summary(results["runs"]):
        print(line)


def train_all(pool: multiprocessing.pool.Pool, seeds: int) -> dict[str, Any]:
    """Every code, task and seed, after the probes of the learning rate."""
    started = time.perf_counter()
    results = provenance(seeds)
    results["rates"] = rates(pool)
    for seed in range(seeds):
        jobs = [(code, task, seed, LEARNING_RATE) for task in TASKS for code in CODES]
        results["runs"] += pool.map(run, jobs, chunksize=1)
        results["settings"]["seeds"].append(seed)
        results["seconds"] = round(time.perf_counter() - started)
        store(results)
    return results


MADE_BY = ("date", "command", "cpu", "system", "python", "versions", "seconds")


def add_missing(pool: multiprocessing.pool.Pool, seeds: int) -> dict[str, Any]:
    """The stored runs as they stand, then those of codes that have come since.

    Runs depend on no other run, so each is what a full run would have given. What was added, and by
    what, stands under "added". Settings other than the stored ones are refused.
    """
    started = time.perf_counter()
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    now = provenance(seeds)
    now["settings"]["seeds"] = list(range(seeds))
    if results["settings"] != now["settings"]:
        raise SystemExit("the stored runs were made with other settings: leave --add out")
    held = {(one["code"], one["task"], one["seed"]) for one in results["runs"]}
    jobs = [
        (code, task, seed, LEARNING_RATE)
        for seed in range(seeds) for task in TASKS for code in CODES
        if (code, task, seed) not in held
    ]  # fmt: skip
    if not jobs:
        return results
    results["runs"] += pool.map(run, jobs, chunksize=1)
    results["parameters"] = now["parameters"]
    now["command"] += " --add"
    now["seconds"] = round(time.perf_counter() - started)
    codes = [code for code in CODES if any(code == job[0] for job in jobs)]
    added = {"codes": codes, "runs": len(jobs)} | {name: now[name] for name in MADE_BY}
    results.setdefault("added", []).append(added)
    store(results)
    return results


def store(results: dict[str, Any]) -> None:
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def provenance(seeds: int) -> dict[str, Any]:
    """All that the numbers depend on, and an empty list of runs."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": f"python benchmarks/length_transfer.py --seeds {seeds}",
        "cpu": cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"numpy": np.__version__, "torch": torch.__version__},
        "seconds": 0,
        "settings": {
            "length": LENGTH, "vocabulary": VOCABULARY, "d_model": D_MODEL, "heads": HEADS,
            "layers": LAYERS, "d_hidden": D_HIDDEN, "digits": DIGITS, "norm": "pre-LN",
            "optimiser": "Adam, its rate falling to 0 in a straight line",
            "learning_rate": LEARNING_RATE, "batch": BATCH, "steps": STEPS,
            "sequences_measured": MEASURED, "probe_seed": PROBE_SEED, "seeds": [],
        },
        "chance": {task: {"L": chance(LENGTH), "2L": chance(2 * LENGTH)} for task in TASKS},
        "parameters": {code: parameters(code) for code in CODES},
        "runs": [],
    }  # fmt: skip


def rates(pool: multiprocessing.pool.Pool) -> dict[str, dict[str, float]]:
    """How the learning rate was chosen: the lowest with which every probe reaches 0.99 at length L.

    Accuracy at 2L has no part in it, and the probes' seed is none of those that are compared.
    """
    tried = [(code, task, PROBE_SEED, rate) for rate in RATES for code, task in PROBES]
    found: dict[str, dict[str, float]] = {str(rate): {} for rate in RATES}
    for (code, task, _, rate), result in zip(tried, pool.map(run, tried, 1), strict=True):
        found[str(rate)][f"{code}, {task}"] = result["accuracy"]["L"]
    return found


def run(job: tuple[str, str, int, float]) -> dict[str, Any]:
    """Train one model, and measure it at L, at 2L, and at L after each tenth of its steps."""
    code, task, seed, rate = job
    curve = []

    def watch(step: int, model: Encoder) -> None:
        if step % (STEPS // 10) == 0:
            curve.append(round(accuracy(model, task, LENGTH, seed=seed, sequences=64), 3))

    started = time.process_time()
    model = train(code, task, seed=seed, learning_rate=rate, watch=watch)
    return {
        "code": code,
        "task": task,
        "seed": seed,
        "accuracy": {
            "L": round(accuracy(model, task, LENGTH, seed=seed), 4),
            "2L": round(accuracy(model, task, 2 * LENGTH, seed=seed), 4),
        },
        "curve": curve,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def summary(runs: list[dict[str, Any]]) -> list[str]:
    """Lowest, median and highest accuracy of every code and task, at L and at 2L."""
    lines = []
    for task in TASKS:
        for code in CODES:
            reached = [r["accuracy"] for r in runs if (r["code"], r["task"]) == (code, task)]
            numbers = ""
            for at in ("L", "2L"):
                low, middle, high = np.quantile([a[at] for a in reached], (0, 0.5, 1))
                numbers += f"  {at} {low:.2f} {middle:.2f} {high:.2f}"
            lines.append(f"{task:5} {code:14}{numbers}")
    return lines


if __name__ == "__main__":
    main()
