"""A small model of `experiments/positions.py`, its words, and made-up results of its runs."""

from typing import Any

import torch
from torch import Tensor

from experiments.positions_model import WAYS, Encoder, Size
from experiments.positions_results import PLAIN, Run

TINY = Size(d_model=64, layers=2, heads=4, seq_len=12, vocabulary=50)
EVERYWHERE = torch.arange(TINY.seq_len)


def tiny(way: str, *, d_hidden: int = 32, **options: Any) -> Encoder:
    torch.manual_seed(0)
    return Encoder(WAYS[way](TINY), d_hidden, **options)


def some_words(seed: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(2, TINY.vocabulary, (1, TINY.seq_len), generator=draw)


def made_up(way: str, seed: int, loss: float, **changed: Any) -> Run:
    run = {"task": "masked", "way": way, "seed": seed, "steps": 300, "rate": 1e-3, "loss": loss}
    curve = {"curve": [[100, 5.0, 5.1], [200, 4.6, 4.7]]}  # step, loss held out, loss in training
    return run | PLAIN | curve | changed
