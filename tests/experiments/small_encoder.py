"""A small model of `experiments/common.py`, its words, and made-up results of its runs."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from experiments.common import Size, Transformer
from experiments.encodings import ENCODINGS
from experiments.positions.results import PLAIN
from experiments.stored import Run

TINY = Size(d_model=64, layers=2, heads=4, seq_len=12, vocabulary=50)
EVERYWHERE = torch.arange(TINY.seq_len)


def tiny(way: str, *, d_hidden: int = 32, **options: Any) -> Transformer:
    torch.manual_seed(0)
    return Transformer(ENCODINGS[way](TINY), d_hidden, **options)


def some_words(seed: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(2, TINY.vocabulary, (1, TINY.seq_len), generator=draw)


def made_up(way: str, seed: int, loss: float, **changed: Any) -> Run:
    run = {"task": "masked", "way": way, "seed": seed, "steps": 300, "rate": 1e-3, "loss": loss}
    curve = {"curve": [[100, 5.0, 5.1], [200, 4.6, 4.7]]}  # step, loss held out, loss in training
    return run | PLAIN | curve | changed


class Recorder(torch.optim.SGD):
    """Notes the rate of every step, and changes nothing."""

    rates: list[float]

    def __init__(self, weights: Any, lr: float, **_: Any) -> None:
        super().__init__(weights, lr=lr)
        Recorder.rates = []

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        Recorder.rates.append(self.param_groups[0]["lr"])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in the experiment, because the order of sums may depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
