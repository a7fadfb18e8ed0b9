"""`nice python experiments/length_transfer.py`: every encoding of the book in one experiment.

A small Transformer encoder learns to copy tokens inside sequences of length L. Then it is asked
the same of sequences of length 2L and 4L, which it has never seen. Which token a position has to
copy is the task: one is relative (three back), two are absolute (the start of its block, the start
of all).

Nothing but the encoding differs between two runs of one task, size and seed. All go to
results/length_transfer.json. Where nothing is said, the choices are PyTorch's defaults.

With `--named` it trains the RoPE models of *copy* again instead, changes their frequencies, and
counts how far back the letter stands that they name: results/length_transfer_named.json.
"""

import argparse
import datetime
import json
import math
import multiprocessing
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.run import cpu
from pe_lib.torch import frequencies, rotary_frequencies, sinusoidal_table

CODES: tuple[str, ...] = (
    "none",
    "index",
    "normalised",
    "binary",
    "gray",
    "sine",
    "add",
    "concatenate",
    "learned",
    "rotary",
    "alibi",
    "alibi, no mask",
    "mask alone",
)
TASKS: tuple[str, ...] = ("copy", "block", "first")

LENGTH = 24  # L: the length of every sequence in training
VOCABULARY = 16
HEADS = 4
DIGITS = 7  # of the binary codes: enough for 128 positions
MEASURED = 1024  # sequences to take an accuracy from
BATCH, STEPS = 16, 500
LEARNING_RATE = 4e-3  # at the start, for all codes alike: see `rates`
RESULTS = Path(__file__).parent / "results" / "length_transfer.json"
NAMED_RESULTS = Path(__file__).parent / "results" / "length_transfer_named.json"


class Size(NamedTuple):
    """The size of a model. All codes are tried in the small one, a few in the large one."""

    d_model: int
    layers: int
    d_hidden: int


SIZES = {"small": Size(64, 2, 128), "large": Size(128, 3, 256)}
SMALL = SIZES["small"]
CODES_OF_LARGE = ("add", "learned", "rotary", "alibi", "mask alone")


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


TRAINING_STREAM, TEST_STREAM = 1_000_000, 2_000_000  # so that weights, training and test are apart


def batches(
    seed: int, steps: int, batch: int, length: int, vocabulary: int = VOCABULARY
) -> Iterator[Tensor]:
    """Random sequences of tokens: `steps` times (batch, length)."""
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        yield torch.randint(vocabulary, (batch, length), generator=draw)


# The model


def code_values(code: str, length: int, d_model: int = SMALL.d_model) -> Tensor:
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
        return sinusoidal_table(length, d_model)
    raise ValueError(f"{code!r} is not a fixed table")


class Position(nn.Module):
    """Give embeddings (batch, length, d_model) their positions, for codes that do so at the input.

    A code of one or six coordinates enters along as many fixed random directions. One number added
    to every coordinate alike would be lost: LayerNorm subtracts the mean.
    """

    def __init__(self, code: str, max_len: int, d_model: int = SMALL.d_model) -> None:
        super().__init__()
        self.code = code
        if code in ("index", "normalised", "binary", "gray", "sine"):
            coordinates = code_values(code, 1).shape[1]
            self.directions = nn.Buffer(torch.randn(coordinates, d_model))
        elif code == "concatenate":
            self.project = nn.Linear(2 * d_model, d_model, bias=False)
        elif code == "learned":  # rows that training never reaches stay as they are drawn here
            self.table = nn.Parameter(torch.randn(max_len, d_model))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        if self.code in ("none", *IN_ATTENTION):
            return x
        if self.code == "learned":
            return x + self.table[:length]
        values = code_values(self.code, length, x.shape[2])
        if self.code == "add":
            return x + values
        if self.code == "concatenate":
            joined: Tensor = self.project(torch.cat((x, values.expand_as(x)), dim=-1))
            return joined
        return x + values @ self.directions


IN_ATTENTION = ("rotary", "alibi", "alibi, no mask", "mask alone")


def turned(x: Tensor, omega: Tensor) -> Tensor:
    """RoPE in its plain form: pair i of position t turned by ω_i t. x is (…, length, d_head)."""
    angle = torch.arange(x.shape[-2])[:, None] * omega
    cos, sin = angle.cos().float(), angle.sin().float()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


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


def bias_of(code: str, length: int) -> Tensor | None:
    """What is added to the scores of each head, (heads, length, length), for the codes that do so.

    ALiBi's bias is −m|r − s|: with it alone a head cannot tell left from right. With the mask every
    second head looks back only, as the causal heads that ALiBi was made for do, and the others look
    ahead only. "mask alone" has the mask, and no bias.
    """
    if code not in ("alibi", "alibi, no mask", "mask alone"):
        return None
    slopes = 2.0 ** (-8 * torch.arange(1, HEADS + 1) / HEADS) * (code != "mask alone")
    t = torch.arange(length)
    ahead = t - t[:, None]
    bias = -slopes[:, None, None] * ahead.abs()
    if code == "alibi, no mask":
        return bias
    side = torch.tensor([-1, 1]).repeat(HEADS // 2)[:, None, None]
    return bias.masked_fill(side * ahead < 0, -math.inf)


class Attention(nn.Module):
    """Multi-head attention from every position to every position."""

    def __init__(self, code: str, d_model: int) -> None:
        super().__init__()
        self.code = code
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.omega = frequencies(d_model // HEADS).double()

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        if self.code == "rotary":
            q, k = turned(q, self.omega), turned(k, self.omega)
        bias = bias_of(self.code, x.shape[1])
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        result: Tensor = self.out(mixed.transpose(1, 2).flatten(-2))
        return result


class Layer(nn.Module):
    """Attention, then two linear maps, each after a LayerNorm and beside a residual (pre-LN)."""

    def __init__(self, code: str, size: Size) -> None:
        super().__init__()
        d_model, _, d_hidden = size
        self.attend = nn.Sequential(nn.LayerNorm(d_model), Attention(code, d_model))
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(d_model),
            nn.Linear(d_model, d_hidden),
            nn.ReLU(),
            nn.Linear(d_hidden, d_model),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(x)
        x = x + self.feed_forward(x)
        return x


class Encoder(nn.Module):
    """Tokens (batch, length) in, a score for each word of the vocabulary out."""

    def __init__(self, code: str, size: Size = SMALL) -> None:
        super().__init__()
        d_model = size.d_model
        self.embed = nn.Embedding(VOCABULARY, d_model)
        self.layers = nn.Sequential(*(Layer(code, size) for _ in range(size.layers)))
        self.score = nn.Sequential(nn.LayerNorm(d_model), nn.Linear(d_model, VOCABULARY))
        # Drawn last: with one seed, all that the codes have in common starts the same for each.
        self.position = Position(code, 4 * LENGTH, d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.score(self.layers(self.position(self.embed(tokens))))
        return scores

    def stretch(self, way: str, factor: float) -> None:
        """Give RoPE's pairs the frequencies for longer texts, without training."""
        for part in self.modules():
            if isinstance(part, Attention):
                trained = frequencies(2 * len(part.omega)).double()
                part.omega = stretched(trained, way, factor)


def parameters(code: str, size: Size = SMALL) -> int:
    """How many numbers training may change."""
    return sum(p.numel() for p in Encoder(code, size).parameters())


# Training and measuring


def train(
    code: str,
    task: str,
    *,
    seed: int,
    size: Size = SMALL,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
    watch: Callable[[int, nn.Module], None] | None = None,
) -> Encoder:
    """A trained model. The seed sets the initial weights and the sequences."""
    torch.manual_seed(seed)
    model = Encoder(code, size)
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

LENGTHS = {"L": LENGTH, "2L": 2 * LENGTH, "4L": 4 * LENGTH}
RATES = (2e-3, 4e-3, 8e-3)
PROBES = (
    ("normalised", "copy"),
    ("index", "copy"),
    ("add", "block"),
    ("rotary", "copy"),
)
PROBE_SEED = 1000
Job = tuple[str, str, str, int]  # size, code, task, seed


def main() -> None:
    parser = parser_of(__doc__ or "")
    parser.add_argument("--named", action="store_true", help="what the models of copy name")
    asked = parser.parse_args()
    with pool() as processes:
        if asked.named:
            runs = processes.imap(run_named, jobs_named(asked.seeds))
            store(NAMED_RESULTS, made_by_named(asked.seeds), runs)
        else:
            results = provenance(asked.seeds)
            results["rates"] = rates(processes)
            store(RESULTS, results, processes.imap(run, jobs(asked.seeds)))


def jobs(seeds: int) -> list[Job]:
    """Every run of the experiment."""
    return [
        (size, code, task, seed)
        for size, codes in (("small", CODES), ("large", CODES_OF_LARGE))
        for seed in range(seeds)
        for task in TASKS
        for code in codes
    ]


def jobs_named(seeds: int) -> list[Job]:
    """The runs of RoPE on *copy*."""
    return [job for job in jobs(seeds) if job[1:3] == ("rotary", "copy")]


def parser_of(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seeds", type=int, default=5)
    return parser


def seeds_asked_for(description: str) -> int:
    return int(parser_of(description).parse_args().seeds)


def pool() -> Any:
    """As many processes as there are cores, of one thread each."""
    spawning = multiprocessing.get_context("spawn")
    return spawning.Pool(None, torch.set_num_threads, (1,))


def store(file: Path, results: dict[str, Any], runs: Iterable[dict[str, Any]]) -> None:
    """Do the runs, say of each when it is done, and write them all."""
    for done in runs:
        results["runs"].append(done)
        print(*list(done.values())[:4], done["accuracy"], flush=True)
    results["cpu_seconds"] = round(sum(run["cpu_seconds"] for run in results["runs"]))
    file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def made_by(script: str, seeds: int) -> dict[str, Any]:
    """When, where and by what a result is made."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": f"python experiments/{script} --seeds {seeds}",
        "cpu": cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"numpy": np.__version__, "torch": torch.__version__},
    }


def provenance(seeds: int) -> dict[str, Any]:
    """All that the numbers depend on, and an empty list of runs."""
    return made_by("length_transfer.py", seeds) | {
        "settings": {
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
        },
        "chance": {task: {at: chance(n) for at, n in LENGTHS.items()} for task in TASKS},
        "parameters": {
            "small": {code: parameters(code) for code in CODES},
            "large": {code: parameters(code, SIZES["large"]) for code in CODES_OF_LARGE},
        },
        "runs": [],
    }


def made_by_named(seeds: int) -> dict[str, Any]:
    """The provenance of the runs with `--named`, which have the settings of the others."""
    made = provenance(seeds)
    made["command"] = f"python experiments/length_transfer.py --named --seeds {seeds}"
    return {name: made[name] for name in made if name not in ("chance", "parameters")}


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
    done: dict[str, Any] = {"size": size, "code": code, "task": task, "seed": seed}
    done["accuracy"] = {at: round(float(share.mean()), 4) for at, share in reached.items()}
    done["curve"] = curve
    if task == "block":  # three scored positions each
        done["blocks"] = [round(float(b), 3) for b in reached["4L"].view(-1, 3).mean(dim=1)]
    if code == "rotary":
        done["stretched"] = stretched_accuracies(model, task, seed)
    done["cpu_seconds"] = round(time.process_time() - started, 1)
    return done


def run_named(job: Job) -> dict[str, Any]:
    """Train one model, and count which letter it names with frequencies stretched in each way."""
    size, code, task, seed = job
    started = time.process_time()
    model = train(code, task, seed=seed, size=SIZES[size])
    done: dict[str, Any] = {"size": size, "code": code, "task": task, "seed": seed}
    done["accuracy"] = {"L": round(accuracy(model, task, LENGTH, seed=seed), 4)}
    done["named"] = {way: {} for way in WAYS_NAMED}
    for way in WAYS_NAMED:
        for at, factor in (("2L", 2), ("4L", 4)):
            model.stretch(way, factor)
            shares = named(model, LENGTHS[at], seed=seed).tolist()
            done["named"][way][at] = [round(share, 4) for share in shares]
    done["cpu_seconds"] = round(time.process_time() - started, 1)
    return done


def stretched_accuracies(model: Encoder, task: str, seed: int) -> dict[str, dict[str, float]]:
    """The accuracy of one trained model with frequencies stretched in each way, untrained."""
    found: dict[str, dict[str, float]] = {}
    for way in WAYS:
        found[way] = {}
        for at, factor in (("2L", 2), ("4L", 4)):
            model.stretch(way, factor)
            found[way][at] = round(accuracy(model, task, LENGTHS[at], seed=seed), 4)
    return found


if __name__ == "__main__":
    main()
