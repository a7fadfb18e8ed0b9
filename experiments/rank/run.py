"""Does the rank of the positions decide whether adding works?

The words of a sequence are drawn from as many as to span the whole space, and every position's row
has the same norm. The table has r singular values, all equal: r/2 circles, each in a plane of its
own. A model has to copy the word three back, which needs both word and place. Either one sum x + p
enters it, or x and p joined and mapped to the same width, so that each has its matrix. Words are
trained, or left as drawn, so that they cannot make way for the positions. Two controls repeat the
hardest of these runs with longer rows and with longer training.

The price theorem of "Add or concatenate" says what one matrix for two jobs loses, see `price`. How
well the place can be read off one sum is another matter, see `read_off`.
"""

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from experiments import common
from experiments import length_transfer as lt
from experiments.common import TRAINING_STREAM, Results, Size, Transformer, seconds_of
from experiments.length_transfer.model import Plain, transformer
from experiments.length_transfer.run import BATCH, fit

RANKS, WAYS, WORDS = (2, 8, 32, 62), ("add", "join"), ("trained", "as drawn")
LENGTH = D_MODEL = 64
VOCABULARY = 256
SIZE, D_HIDDEN = Size(D_MODEL, 2, lt.HEADS, LENGTH, VOCABULARY), 128
STEPS, LEARNING_RATE, TASK = 800, 4e-3, "copy"
MEASURED = 256
RESULTS = Results(Path(__file__).parent / "results.jsonl")


class Job(NamedTuple):
    """What one run depends on."""

    words: str
    rank: int
    way: str
    seed: int
    rows_times: float = 1.0  # the rows of the table are this many times longer
    steps: int = STEPS


def table(rank: int) -> Tensor:
    """Rows of norm √(d/2), of ``rank`` equal singular values: (64, 64).

    Circle k turns k times on 64 positions, so circles are orthogonal. A fixed rotation mixes their
    planes with the coordinates.
    """
    turns = torch.arange(1, rank // 2 + 1)
    angle = 2 * math.pi * torch.arange(LENGTH, dtype=torch.float64)[:, None] * turns / LENGTH
    circles = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1) * math.sqrt(D_MODEL / rank)
    draw = torch.Generator().manual_seed(0)
    mixed = torch.randn(D_MODEL, D_MODEL, generator=draw, dtype=torch.float64)
    basis: Tensor = torch.linalg.qr(mixed).Q
    return (circles @ basis[:rank]).float()


def price(rank: int) -> float:
    """The share of what two unrelated jobs ask for that one matrix loses, by the price theorem.

    In each of the r directions that the positions fill they have the variance c = (d/2)/r, and the
    words s = 1, as they are drawn. There one matrix for both loses 2sc/(s + c), twice because two
    unrelated jobs differ by twice the variance of one, of a sum of rc + ds.
    """
    c = D_MODEL / 2 / rank
    return 2 * rank * c / (1 + c) / (rank * c + D_MODEL)


def read_off(rank: int, draws: int = 20_000) -> float:
    """How often the row nearest to x + p is p, for words x as they are drawn.

    It is the most likely row, for who does not know which words there are.
    """
    draw = torch.Generator().manual_seed(1)
    rows = table(rank)
    at = torch.randint(LENGTH, (draws,), generator=draw)
    sums = rows[at] + torch.randn(draws, D_MODEL, generator=draw)
    nearest = torch.cdist(sums, rows).argmin(dim=1)
    return float((nearest == at).double().mean())


class AddTable(Plain):
    """Add a fixed table."""

    def __init__(self, size: Size, rows: Tensor) -> None:
        super().__init__(size)
        self.rows = nn.Buffer(rows)

    def enter(self, words: Tensor) -> Tensor:
        return words + self.rows


class JoinTable(AddTable):
    """Put a fixed table beside the words, and map the 2d entries to d."""

    def __init__(self, size: Size, rows: Tensor) -> None:
        super().__init__(size, rows)
        self.join = nn.Linear(2 * size.d_model, size.d_model, bias=False)

    def enter(self, words: Tensor) -> Tensor:
        joined: Tensor = self.join(torch.cat((words, self.rows.expand_as(words)), dim=-1))
        return joined


def encoder(job: Job) -> Transformer:
    """The model of a run as it starts."""
    encoding = AddTable if job.way == "add" else JoinTable
    rows = job.rows_times * table(job.rank)
    model = transformer(lambda size: encoding(size, rows), SIZE, D_HIDDEN)
    model.embed.weight.requires_grad = job.words == "trained"
    return model


def run(job: Job) -> dict[str, Any]:
    """Train one model, and measure it on sequences that it has not seen."""
    started = time.process_time()
    torch.manual_seed(job.seed)
    model = encoder(job)
    shown = lt.batches(TRAINING_STREAM + job.seed, job.steps, BATCH, LENGTH, VOCABULARY)
    fit(model, TASK, shown, job.steps, LEARNING_RATE)
    share = lt.right(
        model, TASK, LENGTH, seed=job.seed, sequences=MEASURED, vocabulary=VOCABULARY
    ).mean()
    return job._asdict() | {
        "accuracy": round(float(share), 4),
        "cpu_seconds": seconds_of(started),
    }


def provenance(seeds: int) -> dict[str, Any]:
    """How the runs are made."""
    settings = {
        "length": LENGTH,
        "d_model": D_MODEL,
        "vocabulary": VOCABULARY,
        "ranks": list(RANKS),
        "layers": SIZE.layers,
        "d_hidden": D_HIDDEN,
        "heads": SIZE.heads,
        "task": TASK,
        "learning_rate": LEARNING_RATE,
        "batch": BATCH,
        "steps": STEPS,
        "sequences_measured": MEASURED,
        "seeds": seeds,
    }
    return common.made_by(f"python -m experiments.rank --seeds {seeds}") | {"settings": settings}


def jobs(seeds: int) -> list[Job]:
    """Every run that is compared."""
    return [
        Job(words, rank, way, seed)
        for seed in range(seeds)
        for words in WORDS
        for rank in RANKS
        for way in WAYS
    ]


def controls(seeds: int) -> list[Job]:
    """Words as drawn, and added positions of low rank: longer rows, or longer training."""
    return [
        Job("as drawn", rank, "add", seed, **changed)
        for changed in ({"rows_times": 3.0}, {"steps": 4 * STEPS})
        for rank in (2, 8)
        for seed in range(seeds)
    ]
