"""`nice python experiments/rank.py`: does the rank of the positions decide whether adding works?

The words of a sequence are drawn from as many as to span the whole space, and every position's row
has the same norm. The table has r singular values, all equal: r/2 circles, each in a plane of its
own. An encoder has to copy the word three back, which needs both word and place. Either one sum
x + p enters it, or x and p joined and mapped to the same width, so that each has its matrix. Words
are trained, or left as drawn, so that they cannot make way for the positions. Two controls repeat
the hardest of these runs with longer rows and with longer training.

The price theorem of chapter 5 says what one matrix for two jobs loses, see `price`. How well the
place can be read off one sum is another matter, see `read_off`. The checks page of chapter 6 draws
both beside what the models reach.
"""

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from experiments import length_transfer as lt

RANKS, WAYS, WORDS = (2, 8, 32, 62), ("add", "join"), ("trained", "as drawn")
LENGTH = D_MODEL = 64
VOCABULARY = 256
SIZE = lt.Size(D_MODEL, 2, 128)
STEPS, LEARNING_RATE, TASK = 800, 4e-3, "copy"
MEASURED = 256
RESULTS = Path(__file__).parent / "results" / "rank.json"
CONTROL_RESULTS = Path(__file__).parent / "results" / "rank_controls.json"


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


class Encoder(nn.Module):
    """Words (batch, length) in, a score for each word out."""

    def __init__(self, rank: int, way: str, words: str, rows_times: float = 1.0) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, D_MODEL)
        self.embed.weight.requires_grad = words == "trained"
        self.layers = nn.Sequential(*(lt.Layer("none", SIZE) for _ in range(SIZE.layers)))
        self.score = nn.Sequential(nn.LayerNorm(D_MODEL), nn.Linear(D_MODEL, VOCABULARY))
        self.positions = nn.Buffer(rows_times * table(rank))
        self.join = nn.Linear(2 * D_MODEL, D_MODEL, bias=False) if way == "join" else None

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        p = self.positions.expand_as(x)
        x = x + p if self.join is None else self.join(torch.cat((x, p), dim=-1))
        scores: Tensor = self.score(self.layers(x))
        return scores


def run(job: Job) -> dict[str, Any]:
    """Train one model, and measure it on sequences that it has not seen."""
    started = time.process_time()
    torch.manual_seed(job.seed)
    model = Encoder(job.rank, job.way, job.words, job.rows_times)
    shown = lt.batches(lt.TRAINING_STREAM + job.seed, job.steps, lt.BATCH, LENGTH, VOCABULARY)
    lt.fit(model, TASK, shown, job.steps, LEARNING_RATE)
    share = lt.right(
        model, TASK, LENGTH, seed=job.seed, sequences=MEASURED, vocabulary=VOCABULARY
    ).mean()
    seconds = round(time.process_time() - started, 1)
    return job._asdict() | {"accuracy": round(float(share), 4), "cpu_seconds": seconds}


def provenance(seeds: int) -> dict[str, Any]:
    settings = {
        "length": LENGTH,
        "d_model": D_MODEL,
        "vocabulary": VOCABULARY,
        "ranks": list(RANKS),
        "layers": SIZE.layers,
        "d_hidden": SIZE.d_hidden,
        "heads": lt.HEADS,
        "task": TASK,
        "learning_rate": LEARNING_RATE,
        "batch": lt.BATCH,
        "steps": STEPS,
        "sequences_measured": MEASURED,
        "seeds": seeds,
    }
    return lt.made_by("rank.py", seeds) | {"settings": settings, "runs": []}


def main() -> None:
    seeds = lt.seeds_asked_for(__doc__ or "")
    jobs = [
        Job(words, rank, way, seed)
        for seed in range(seeds)
        for words in WORDS
        for rank in RANKS
        for way in WAYS
    ]
    with lt.pool() as processes:
        lt.store(RESULTS, provenance(seeds), processes.imap(run, jobs))
        lt.store(CONTROL_RESULTS, provenance(seeds), processes.imap(run, controls(seeds)))


def controls(seeds: int) -> list[Job]:
    """Words as drawn, and added positions of low rank: longer rows, or longer training."""
    return [
        Job("as drawn", rank, "add", seed, **changed)
        for changed in ({"rows_times": 3.0}, {"steps": 4 * STEPS})
        for rank in (2, 8)
        for seed in range(seeds)
    ]


if __name__ == "__main__":
    main()
